//! Sums of whole numbers, as `$((…))`, `((…))`, `let` and `[[ -eq ]]` have them.

/// Brackets and signs within each other that are followed.
const MOST_NESTED: usize = 40;

/// Variables of a sum.
pub(super) trait Names {
    /// Value of a name; `None` if it is not known, or no number.
    fn number(&self, name: &str) -> Option<i64>;
    /// Gives a name a value; `None` is one that is not known.
    fn assign(&mut self, name: &str, value: Option<i64>);
}

/// Value of a sum, in which names stand for variables; `None` if it is not known or no sum.
pub(super) fn value(text: &str, names: &mut dyn Names) -> Option<i64> {
    let mut reader = Reader {
        rest: text.trim(),
        names,
        depth: 0,
    };
    let mut value = reader.assignment();
    while reader.take(",") {
        value = reader.assignment();
    }
    reader.rest.is_empty().then_some(value).flatten()
}

struct Reader<'a> {
    rest: &'a str,
    names: &'a mut dyn Names,
    depth: usize,
}

/// Signs between two values, the weakest first; those of a row bind alike.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn name(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if !super::is_name(name) {
            return None;
        }
        self.rest = rest.trim_start();
        Some(name.to_owned())
    }

    fn assignment(&mut self) -> Option<i64> {
        let before = self.rest;
        if let Some(name) = self.name() {
            for sign in ["+=", "-=", "*=", "/=", "%="] {
                if self.take(sign) {
                    let value = self.assignment();
                    let value = apply(&sign[..1], self.names.number(&name), value);
                    self.names.assign(&name, value);
                    return value;
                }
            }
            if self.rest.starts_with('=') && !self.rest.starts_with("==") {
                self.take("=");
                let value = self.assignment();
                self.names.assign(&name, value);
                return value;
            }
        }
        self.rest = before;
        self.choice()
    }

    fn choice(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            self.rest = "?";
            return None;
        }
        let condition = self.binary(0);
        let value = if self.take("?") {
            let yes = self.assignment();
            if !self.take(":") {
                return None;
            }
            let no = self.assignment();
            if condition? != 0 { yes } else { no }
        } else {
            condition
        };
        self.depth -= 1;
        value
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut value = self.binary(level + 1);
        while let Some(sign) = self.sign(signs) {
            self.take(sign);
            let right = self.binary(level + 1);
            value = apply(sign, value, right);
        }
        value
    }

    /// The next sign, if it is one of these and not the beginning of a longer one.
    fn sign(&self, signs: &[&'static str]) -> Option<&'static str> {
        let sign = signs.iter().find(|sign| self.rest.starts_with(**sign))?;
        let after = self.rest[sign.len()..].chars().next();
        let is_longer = match *sign {
            "|" | "&" => after == sign.chars().next(),
            "<" | ">" => after == sign.chars().next(),
            _ => false,
        };
        (!is_longer).then_some(sign)
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            self.rest = "?";
            return None;
        }
        let value = self.unary_within();
        self.depth -= 1;
        value
    }

    fn unary_within(&mut self) -> Option<i64> {
        for (sign, by) in [("++", 1), ("--", -1)] {
            if self.take(sign) {
                let name = self.name()?;
                return self.count(&name, by);
            }
        }
        if self.take("-") {
            return self.unary()?.checked_neg();
        }
        if self.take("+") {
            return self.unary();
        }
        if self.take("!") {
            return self.unary().map(|value| i64::from(value == 0));
        }
        if self.take("(") {
            let value = self.assignment();
            return if self.take(")") { value } else { None };
        }
        if let Some(name) = self.name() {
            let value = self.names.number(&name);
            for (sign, by) in [("++", 1), ("--", -1)] {
                if self.take(sign) {
                    self.count(&name, by);
                }
            }
            return value;
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        match digits.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        }
    }

    fn count(&mut self, name: &str, by: i64) -> Option<i64> {
        let value = self.names.number(name).and_then(|value| value.checked_add(by));
        self.names.assign(name, value);
        value
    }
}

fn apply(sign: &str, left: Option<i64>, right: Option<i64>) -> Option<i64> {
    let (left, right) = (left?, right?);
    match sign {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => left.checked_shl(right.try_into().ok()?),
        ">>" => left.checked_shr(right.try_into().ok()?),
        "|" => Some(left | right),
        "&" => Some(left & right),
        "^" => Some(left ^ right),
        _ => Some(i64::from(match sign {
            "||" => left != 0 || right != 0,
            "&&" => left != 0 && right != 0,
            "==" => left == right,
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        })),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl Names for BTreeMap<String, i64> {
        fn number(&self, name: &str) -> Option<i64> {
            self.get(name).copied()
        }

        fn assign(&mut self, name: &str, value: Option<i64>) {
            match value {
                Some(value) => _ = self.insert(name.to_owned(), value),
                None => _ = self.remove(name),
            }
        }
    }

    #[test]
    fn sums_are_those_of_bash() {
        let mut names = BTreeMap::from([("n".to_owned(), 8)]);
        for (text, wanted) in [
            ("1 + 2 * 3", Some(7)),
            ("(1 + 2) * 3", Some(9)),
            ("128 / n / 2", Some(8)),
            ("-n + 10 % 4", Some(-6)),
            ("n > 4 && n <= 8", Some(1)),
            ("n == 8 ? 2 : 4", Some(2)),
            ("m = n * 2, m + 1", Some(17)),
            ("m", Some(16)),
            ("n++ + 1", Some(9)),
            ("n", Some(9)),
            ("n -= 1", Some(8)),
            ("1 << 4 | 1", Some(17)),
            ("!0", Some(1)),
            ("1 / 0", None),
            ("x + 1", None),
            ("1 +", None),
            ("1 2", None),
            ("", None),
        ] {
            assert_eq!(value(text, &mut names), wanted, "{text}");
        }
        assert_eq!(value(&"(".repeat(10_000), &mut names), None);
        assert_eq!(value(&"-".repeat(10_000), &mut names), None);
    }
}
