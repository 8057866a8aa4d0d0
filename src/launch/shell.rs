//! Variables and sums of a shell script, as far as they are written out in it. Nothing is executed.

use std::collections::BTreeMap;

use crate::MOST_BYTES;

/// Variables that a script assigns; `None` where their value depends on a condition.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Option<String>>);

impl Variables {
    /// Assigns a variable. A value longer than any file that is read is not known: it may have doubled line by line.
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        let value = value.filter(|value| value.len() <= MOST_BYTES);
        self.0.insert(name.to_owned(), value.map(str::to_owned));
    }

    /// Puts values for variables and for sums. What is not known stays as it is, and is no number later.
    pub fn expand(&self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        let mut is_literal = false;
        while let Some(next) = rest.chars().next() {
            let taken = match next {
                '\'' => {
                    is_literal = !is_literal;
                    None
                }
                '\\' if !is_literal => {
                    let length = rest.chars().take(2).map(char::len_utf8).sum();
                    out.push_str(&rest[..length]);
                    rest = &rest[length..];
                    continue;
                }
                '$' if !is_literal && out.len() <= MOST_BYTES => self.substitute(&rest[1..]),
                _ => None,
            };
            let length = match taken {
                Some((value, length)) => {
                    out.push_str(&value);
                    1 + length
                }
                None => {
                    out.push(next);
                    next.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        out
    }

    /// Value for what stands behind a `$`, and its length there.
    fn substitute(&self, text: &str) -> Option<(String, usize)> {
        if let Some(inner) = text.strip_prefix("((") {
            let end = inner.find("))")?;
            return Some((self.sum(&inner[..end], true)?, end + 4));
        }
        if let Some(inner) = text.strip_prefix("(expr ") {
            let end = inner.find(')')?;
            return Some((self.sum(&self.expand(&inner[..end]), false)?, end + 7));
        }
        if let Some(inner) = text.strip_prefix('{') {
            let end = inner.find('}')?;
            let (name, default) = match inner[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (&inner[..end], None),
            };
            let known = self.0.get(name).cloned();
            let value = known.unwrap_or_else(|| default.map(|text| self.expand(text)))?;
            return Some((value, end + 2));
        }
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        Some((self.0.get(&text[..end])?.clone()?, end))
    }

    /// Value of a sum of whole numbers, in which names may stand for variables.
    fn sum(&self, text: &str, has_names: bool) -> Option<String> {
        let spaced = text.replace("\\*", "*");
        let spaced = ['+', '*', '/', '%']
            .iter()
            .fold(spaced, |text, sign| text.replace(*sign, &format!(" {sign} ")));
        let mut terms: Vec<i64> = Vec::new();
        let mut words = spaced.split_ascii_whitespace();
        let mut sign = "+";
        loop {
            let word = words.next()?;
            let named = has_names.then(|| self.0.get(word.trim_start_matches('$'))).flatten();
            let number: i64 = named.and_then(Option::as_deref).unwrap_or(word).parse().ok()?;
            match sign {
                "+" => terms.push(number),
                "-" => terms.push(number.checked_neg()?),
                "*" => *terms.last_mut()? = terms.last()?.checked_mul(number)?,
                "/" => *terms.last_mut()? = terms.last()?.checked_div(number)?,
                "%" => *terms.last_mut()? = terms.last()?.checked_rem(number)?,
                _ => return None,
            }
            match words.next() {
                Some(next) => sign = next,
                None => break,
            }
        }
        let total = terms.into_iter().try_fold(0_i64, i64::checked_add)?;
        Some(total.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_sums_are_put_in_as_a_shell_does() {
        let mut known = Variables::default();
        known.set("n", Some("2"));
        known.set("MODEL", Some("a/b"));
        known.set("mode", None);
        for (line, expanded) in [
            ("$MODEL ${MODEL}x $n", "a/b a/bx 2"),
            ("'$MODEL' \"$MODEL\" \\$n", "'$MODEL' \"a/b\" \\$n"),
            ("$(expr 16 / $n) $((n * 8 + 1)) $((8/n))", "8 17 4"),
            ("$(expr 2 \\* 3) $(nproc) $((1 +", "6 $(nproc) $((1 +"),
            (
                "${GPUS:-8} ${n:-8} $mode ${mode:-1} $1 $@",
                "8 2 $mode ${mode:-1} $1 $@",
            ),
            ("$((1 / 0)) $((x + 1)) ${", "$((1 / 0)) $((x + 1)) ${"),
        ] {
            assert_eq!(known.expand(line), expanded, "{line}");
        }
    }
}
