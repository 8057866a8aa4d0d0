//! Exercises: task, judged answer, hints in steps, and a solution with the reader's own numbers.

use serde_json::Value;
use vramscope_course::{Judged, Sheet, Unit, judge, read_number, write_number};

use super::book::{Book, Row, items, text};
use super::figure::{fields, lines, sheet, shown_in};
use super::given::{Input, amount};
use super::html::{element, inline};

/// Verdict on an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the answer is right.
    pub is_right: bool,
    /// Message as HTML.
    pub message: String,
}

/// Renders an exercise with its fields.
pub fn whole(book: &Book, row: Row, (block, name): (&Value, &str), inputs: &[Input], seed: Option<u64>) -> String {
    let unit = asked(block).0;
    let placeholder = unit.name;
    let variant = seed.map_or_else(
        || book.word("own_numbers"),
        |seed| book.word_with("variant", &seed.to_string()),
    );
    format!(
        "<div data-out>{}</div>\
         <form class=\"course-answer\" data-answer><label><span class=\"label\">{}</span>\
         <input type=\"text\" inputmode=\"text\" data-testid=\"course-answer\" autocomplete=\"off\" placeholder=\"{placeholder}\"></label>\
         <button type=\"submit\" class=\"tool primary\" data-testid=\"course-check\">{}</button>\
         <button type=\"button\" class=\"tool\" data-act=\"hint\">{}</button>\
         <button type=\"button\" class=\"tool\" data-act=\"variant\" data-testid=\"course-variant\">{}</button>\
         <span class=\"muted small\">{variant}</span></form>\
         <p class=\"course-feedback\" role=\"status\" data-feedback data-testid=\"course-feedback\"></p>\
         <ol class=\"course-hints\" data-hints></ol>\
         <details class=\"course-own\"><summary>{}</summary>{}</details>\
         <details class=\"course-solution\"><summary>{}</summary><div data-solution>{}</div></details>",
        task(row, name, inputs),
        book.word("answer"),
        book.word("check"),
        book.word("hint"),
        book.word("another"),
        book.word("change_numbers"),
        fields(book, row, block, inputs),
        book.word("solution"),
        solution(book, row, (block, name), inputs),
    )
}

/// Renders the task with its numbers.
pub fn task(row: Row, name: &str, inputs: &[Input]) -> String {
    let mut text = row.plain(&format!("{name}.task")).to_owned();
    for input in inputs {
        let value = amount(&input.value, input.unit, 6);
        text = text.replace(&format!("{{{}}}", input.name), &format!("**{value}**"));
    }
    element("p", "course-task", &inline(&text))
}

/// Renders the solution line by line.
pub fn solution(book: &Book, row: Row, (block, name): (&Value, &str), inputs: &[Input]) -> String {
    let Ok(sheet) = sheet(block, inputs) else {
        return element("p", "muted", &book.word("no_result"));
    };
    lines(book, row, block, inputs, &sheet) + &row.paragraphs(&format!("{name}.end"))
}

/// Renders the hint with this index, from 0; `None` after the last.
pub fn hint(row: Row, name: &str, number: usize) -> Option<String> {
    let hints = row.list(&format!("{name}.hints"));
    let text = hints.get(number)?.as_str()?;
    Some(element("li", "", &inline(text)))
}

fn asked(block: &Value) -> (Unit, usize) {
    let name = text(block, "ask");
    let line = items(block.get("lines")).iter().find(|line| text(line, "name") == name);
    line.map_or((Unit::COUNT, 2), shown_in)
}

/// Compares an answer with the right one for these inputs.
pub fn check(book: &Book, row: Row, (block, name): (&Value, &str), inputs: &[Input], typed: &str) -> Verdict {
    let wrong = |message: String| Verdict {
        is_right: false,
        message,
    };
    let Ok(sheet) = sheet(block, inputs) else {
        return wrong(book.word("no_result"));
    };
    let right = sheet.value(text(block, "ask")).and_then(|value| value.single());
    let (Some(right), (unit, decimals)) = (right, asked(block)) else {
        return wrong(book.word("no_result"));
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
        Judged::Unreadable => wrong(book.word("unreadable")),
        Judged::WrongUnit => wrong(book.word_with("wrong_unit", unit.name)),
        other => wrong(slip(row, (block, name), &sheet, typed, unit).unwrap_or_else(|| said(book, other))),
    }
}

/// Relative tolerance of an answer: the exercise's own, or the rounding error of the displayed digits if that is
/// larger; at most 5%. Zero if the exercise states none.
fn tolerance(block: &Value, right: f64, unit: Unit, decimals: usize) -> f64 {
    let own = read_number(text(block, "tolerance")).unwrap_or_default();
    let last_digit = unit.size / 10_u64.pow(decimals as u32) as f64;
    let rounding = if own > 0.0 {
        last_digit * 0.51 / right.abs()
    } else {
        0.0
    };
    own.max(rounding).min(0.05)
}

/// Finds the hint for a known mistake.
fn slip(row: Row, (block, name): (&Value, &str), sheet: &Sheet, typed: &str, unit: Unit) -> Option<String> {
    let hints = row.list(&format!("{name}.slips"));
    let slips = items(block.get("slips")).iter().filter_map(Value::as_str);
    let is_this = |formula: &str| {
        let value = sheet.evaluate(formula).ok().and_then(|value| value.single());
        value.is_some_and(|value| judge(typed, value, unit, 0.005) == Judged::Right)
    };
    let (_, hint) = slips.zip(hints).find(|(formula, _)| is_this(formula))?;
    Some(inline(hint.as_str()?))
}

fn said(book: &Book, judged: Judged) -> String {
    match judged {
        Judged::RightWithUnit(unit) => book.word_with("other_unit", unit),
        Judged::WrongScale => book.word("wrong_scale"),
        Judged::TooHigh(times) => book.word_with("too_high", &times_off(times)),
        Judged::TooLow(times) => book.word_with("too_low", &times_off(times)),
        _ => book.word("unreadable"),
    }
}

fn times_off(times: f64) -> String {
    if times > 1000.0 {
        return "> 1000".to_owned();
    }
    write_number(times, if times < 1.1 { 3 } else { 1 })
}
