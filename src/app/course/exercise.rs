//! Exercises: the task, and the verdict on an answer.

use serde_json::Value;
use vramscope_course::{Judged, Sheet, Unit, judge, read_number, write_number};

use super::book::{Block, Book, items, text};
use super::figure::{sheet, shown_in};
use super::given::{Input, amount};

/// Verdict on an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the answer is right.
    pub is_right: bool,
    /// Message, a text with markup.
    pub message: String,
}

/// Returns the task with its numbers.
pub fn task(block: Block, inputs: &[Input]) -> String {
    let mut text = block.text("task").to_owned();
    for input in inputs {
        let value = amount(&input.value, input.unit, 6);
        text = text.replace(&format!("{{{}}}", input.name), &format!("**{value}**"));
    }
    text
}

/// Unit of the answer that an exercise asks for, and decimals that it is shown with.
pub fn asked(block: Block) -> (Unit, usize) {
    let line = block.line_named(text(block.data, "ask"));
    line.map_or((Unit::COUNT, 2), shown_in)
}

/// Compares an answer with the right one for these inputs.
pub fn check(block: Block, inputs: &[Input], typed: &str) -> Verdict {
    let book = block.row.book;
    let wrong = |message: String| Verdict {
        is_right: false,
        message,
    };
    let Ok(sheet) = sheet(block, inputs) else {
        return wrong(book.word("no_result").to_owned());
    };
    let right = sheet.value(text(block.data, "ask")).and_then(|value| value.single());
    let (Some(right), (unit, decimals)) = (right, asked(block)) else {
        return wrong(book.word("no_result").to_owned());
    };
    let tolerance = tolerance(block, right, unit, decimals);
    match judge(typed, right, unit, tolerance) {
        Judged::Right => {
            let exact = amount(&right.into(), unit, decimals.max(2));
            Verdict {
                is_right: true,
                message: book.word_with("right", &exact),
            }
        }
        Judged::Unreadable => wrong(book.word("unreadable").to_owned()),
        Judged::WrongUnit => wrong(book.word_with("wrong_unit", unit.name)),
        other => wrong(match slip(block, &sheet, typed, unit) {
            Some(hint) => hint.to_owned(),
            None => said(book, other),
        }),
    }
}

/// Relative tolerance of an answer: the exercise's own, or the rounding error of the displayed digits if that is
/// larger; at most 5%. Zero if the exercise states none.
fn tolerance(block: Block, right: f64, unit: Unit, decimals: usize) -> f64 {
    let own = read_number(text(block.data, "tolerance")).unwrap_or_default();
    let last_digit = unit.size / 10_u64.pow(decimals as u32) as f64;
    // Half a unit of the last digit, with a margin for floating-point error.
    let rounding = if own > 0.0 {
        last_digit * 0.51 / right.abs()
    } else {
        0.0
    };
    own.max(rounding).min(0.05)
}

/// Finds the hint for a known mistake.
fn slip<'a>(block: Block<'a>, sheet: &Sheet, typed: &str, unit: Unit) -> Option<&'a str> {
    let slips = items(block.data.get("slips")).iter().filter_map(Value::as_str);
    let is_this = |formula: &str| {
        let value = sheet.evaluate(formula).ok().and_then(|value| value.single());
        value.is_some_and(|value| judge(typed, value, unit, 0.005) == Judged::Right)
    };
    let (_, hint) = slips.zip(block.texts("slips")).find(|(formula, _)| is_this(formula))?;
    Some(hint)
}

/// Message on a wrong answer that is no known slip.
fn said(book: &Book, judged: Judged) -> String {
    match judged {
        Judged::RightWithUnit(unit) => book.word_with("other_unit", unit),
        Judged::WrongScale => book.word("wrong_scale").to_owned(),
        Judged::TooHigh(times) => book.word_with("too_high", &times_off(times)),
        Judged::TooLow(times) => book.word_with("too_low", &times_off(times)),
        _ => book.word("unreadable").to_owned(),
    }
}

/// Factor between an answer and the right one, as text.
fn times_off(times: f64) -> String {
    if times > 1000.0 {
        return "> 1000".to_owned();
    }
    write_number(times, if times < 1.1 { 3 } else { 1 })
}
