//! Formulas as text: parsed once, then evaluated, or written out with names or numbers.

mod parser;

use super::{List, images, number};

/// A formula such as `batch * heads * L^2 * 4`.
///
/// It consists of the operators `+ - * / ^` and `< > <= >= =` (1 if true, else 0), parentheses, decimal numbers, names,
/// and these functions: `ceil floor round sqrt abs` of each number; `min max` of two values or of one list; `sum mean
/// count first last` of a list; `steps starts slope` (differences, running sums, least squares); and `padded(sizes,
/// groups)`. The exponent of `^` is a whole number from 0 to 8.
#[derive(Debug, Clone, PartialEq)]
pub enum Formula {
    /// A number, and its text as written.
    Number(f64, String),
    /// A named value.
    Name(String),
    /// An operator with its two operands.
    Binary(Operator, Box<(Formula, Formula)>),
    /// A function call.
    Call(String, Vec<Formula>),
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator(&'static str);

/// Error in a formula, as a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaError(pub String);

/// Operators from the weakest to the strongest: symbol, precedence, and symbol for display.
const OPERATORS: [(&str, u8, &str); 10] = [
    ("<=", 1, " ≤ "),
    (">=", 1, " ≥ "),
    ("<", 1, " < "),
    (">", 1, " > "),
    ("=", 1, " = "),
    ("+", 2, " + "),
    ("-", 2, " − "),
    ("*", 3, " × "),
    ("/", 3, " ÷ "),
    ("^", 4, "^"),
];

/// Largest exponent.
const MOST_TIMES: f64 = 8.0;

impl Operator {
    fn strength(self) -> u8 {
        OPERATORS.iter().find(|o| o.0 == self.0).map_or(0, |o| o.1)
    }

    fn apply(self, a: f64, b: f64) -> f64 {
        let holds = |yes: bool| f64::from(u8::from(yes));
        match self.0 {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "<" => holds(a < b),
            ">" => holds(a > b),
            "<=" => holds(a <= b),
            ">=" => holds(a >= b),
            "=" => holds(a == b),
            // Multiply repeatedly, since `powf` differs between platforms in the last bit.
            _ => (0..b.clamp(0.0, MOST_TIMES) as u32).fold(1.0, |product, _| product * a),
        }
    }
}

impl Formula {
    /// Parses a formula.
    ///
    /// # Errors
    /// If the text is not a formula; the message says what is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        parser::parse(text)
    }

    /// Evaluates the formula with the named values that `value` returns.
    ///
    /// # Errors
    /// If a name or function is unknown, or lists differ in length.
    pub fn evaluate(&self, value: &dyn Fn(&str) -> Option<List>) -> Result<List, FormulaError> {
        match self {
            Self::Number(number, _) => Ok((*number).into()),
            Self::Name(name) => value(name).ok_or_else(|| FormulaError(format!("nothing is called `{name}`"))),
            Self::Binary(operator, sides) => {
                let (left, right) = (sides.0.evaluate(value)?, sides.1.evaluate(value)?);
                let result = left.zip(&right, &|a, b| operator.apply(a, b));
                result.ok_or_else(|| FormulaError(format!("lists of different lengths at `{}`", operator.0)))
            }
            Self::Call(function, arguments) => {
                let values: Result<Vec<_>, _> = arguments.iter().map(|a| a.evaluate(value)).collect();
                let values = values?;
                call(function, &values)
                    .ok_or_else(|| FormulaError(format!("no function `{function}` of {} values", values.len())))
            }
        }
    }

    /// Writes the formula as it is taught, with `show` applied to each name.
    pub fn write(&self, show: &dyn Fn(&str) -> String) -> String {
        match self {
            Self::Number(_, text) => match number::read(text) {
                Some(value) if value >= 1e4 => number::write(value, 6),
                _ => text.clone(),
            },
            Self::Name(name) => show(name),
            Self::Binary(operator, sides) => {
                let left = sides.0.write_within(operator.strength(), show);
                if let (Operator("^"), Self::Number(times, _)) = (*operator, &sides.1) {
                    return format!("{left}{}", superscript(*times as usize));
                }
                // The right operand keeps its parentheses, as in a − (b − c) and a × (b ÷ c), unless the operator is
                // associative.
                let chain = |o: &str| matches!(o, "+" | "*");
                let same = matches!(&sides.1, Self::Binary(right, _) if right.0 == operator.0);
                let tighter = u8::from(!(chain(operator.0) && same));
                let right = sides.1.write_within(operator.strength() + tighter, show);
                let shown = OPERATORS.iter().find(|o| o.0 == operator.0).map_or("", |o| o.2);
                format!("{left}{shown}{right}")
            }
            Self::Call(function, arguments) => {
                let inner: Vec<_> = arguments.iter().map(|a| a.write(show)).collect();
                let inner = inner.join(", ");
                match function.as_str() {
                    "ceil" => format!("⌈{inner}⌉"),
                    "floor" => format!("⌊{inner}⌋"),
                    "sqrt" => format!("√({inner})"),
                    "sum" => format!("Σ({inner})"),
                    _ => format!("{function}({inner})"),
                }
            }
        }
    }

    fn write_within(&self, strength: u8, show: &dyn Fn(&str) -> String) -> String {
        let text = self.write(show);
        match self {
            Self::Binary(operator, _) if operator.strength() < strength => format!("({text})"),
            _ => text,
        }
    }
}

fn superscript(n: usize) -> &'static str {
    ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸"]
        .get(n)
        .copied()
        .unwrap_or_default()
}

fn call(function: &str, values: &[List]) -> Option<List> {
    let each = |list: &List, f: &dyn Fn(f64) -> f64| List(list.0.iter().map(|v| f(*v)).collect());
    let least = |a: f64, b: f64| if b < a { b } else { a };
    let most = |a: f64, b: f64| if b > a { b } else { a };
    Some(match (function, values) {
        ("ceil", [list]) => each(list, &f64::ceil),
        ("floor", [list]) => each(list, &f64::floor),
        ("round", [list]) => each(list, &f64::round),
        ("sqrt", [list]) => each(list, &f64::sqrt),
        ("abs", [list]) => each(list, &f64::abs),
        ("min", [a, b]) => a.zip(b, &least)?,
        ("max", [a, b]) => a.zip(b, &most)?,
        ("min", [list]) => list.0.iter().copied().reduce(least)?.into(),
        ("max", [list]) => list.0.iter().copied().reduce(most)?.into(),
        ("sum", [list]) => list.sum().into(),
        ("mean", [list]) => (list.sum() / list.0.len() as f64).into(),
        ("count", [list]) => (list.0.len() as f64).into(),
        ("first", [list]) => (*list.0.first()?).into(),
        ("last", [list]) => (*list.0.last()?).into(),
        ("steps", [list]) => list.steps(),
        ("starts", [list]) => list.starts(),
        ("slope", [list]) => list.slope().into(),
        ("padded", [sizes, groups]) => images::padded(sizes, groups.single()? as usize),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<List, FormulaError> {
        let known = |name: &str| match name {
            "L" => Some(2048.0.into()),
            "sizes" => Some(List(vec![224.0, 224.0, 1024.0])),
            _ => None,
        };
        Formula::parse(text)?.evaluate(&known)
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        for (text, wanted) in [
            ("2 + 3 * 4", 14.0),
            ("(2 + 3) * 4", 20.0),
            ("2 - 3 - 4", -5.0),
            ("12 / 3 / 2", 2.0),
            ("2 * L^2", 8388608.0),
            ("32*L^2*4 / 1048576", 512.0),
            ("floor(1024/14)^2", 5329.0),
            ("min(3, 2) + max(3, 2)", 5.0),
            ("max(sizes)", 1024.0),
            ("count(sizes) * max(sizes)^2 - sum(sizes^2)", 1996800.0),
            ("3 < 4", 1.0),
            ("1 + 1 >= 3", 0.0),
            ("last(steps(sizes))", 800.0),
            ("sum(starts(sizes))", 672.0),
            ("sum(padded(sizes, 2))", 1472.0),
        ] {
            assert_eq!(value(text), Ok(wanted.into()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("2 +", "a value was expected"),
            ("(2", "`)` was expected"),
            ("2 3", "`3` was not expected"),
            ("2x", "`2x` is no number"),
            ("width", "nothing is called `width`"),
            ("sin(2)", "no function `sin`"),
            ("steps(sizes) + sizes", "different lengths"),
        ] {
            let error = value(text).expect_err(text);
            assert!(error.0.contains(part), "{text}: {}", error.0);
        }
    }

    #[test]
    fn a_formula_is_written_as_it_is_taught() {
        let show = |name: &str| name.to_owned();
        for (text, wanted) in [
            ("batch*heads*L^2*4", "batch × heads × L² × 4"),
            ("1 - a/(b - c)", "1 − a ÷ (b − c)"),
            ("(H/p)*(W/p)", "H ÷ p × (W ÷ p)"),
            ("a/b*c", "a ÷ b × c"),
            ("(1/b)*c", "1 ÷ b × c"),
            ("a - (b - c)", "a − (b − c)"),
            ("ceil(7000000000 / n)", "⌈7,000,000,000 ÷ n⌉"),
            ("(a + b)^2", "(a + b)²"),
        ] {
            let formula = Formula::parse(text).expect(text);
            assert_eq!(formula.write(&show), wanted);
        }
    }
}
