//! Figures: adjustable fields, formulas with their results, and simulated setups.

use serde_json::Value;
use vramscope_course::{List, Sheet, SheetError, Unit, read_number};

use super::book::{Book, Row, items, text};
use super::chart::{self, Bars};
use super::given::{Input, amount};
use super::html::{element, escape};

/// Number of points of a drawn curve.
const POINTS: usize = 64;

/// Evaluates the formulas of a block with these inputs.
///
/// # Errors
/// Fails if a line cannot be parsed or evaluated.
pub fn sheet(block: &Value, inputs: &[Input]) -> Result<Sheet, SheetError> {
    let values = inputs.iter().map(|input| (input.name.clone(), input.value.clone()));
    let mut sheet = Sheet::new(values.collect());
    for line in items(block.get("lines")) {
        sheet.add(text(line, "name"), text(line, "formula"))?;
    }
    Ok(sheet)
}

/// Unit and decimals that a line is shown in.
pub fn shown_in(line: &Value) -> (Unit, usize) {
    let unit = Unit::named(text(line, "unit")).unwrap_or(Unit::COUNT);
    let decimals = line.get("decimals").and_then(Value::as_u64).unwrap_or(2);
    (unit, decimals as usize)
}

/// Renders the fields of a block.
pub fn fields(book: &Book, row: Row, block: &Value, inputs: &[Input]) -> String {
    if inputs.is_empty() {
        return String::new();
    }
    let all = items(block.get("inputs")).iter().zip(inputs);
    let fields: String = all.map(|(data, input)| field(book, row, data, input)).collect();
    element("div", "course-fields", &fields)
}

fn field(book: &Book, row: Row, data: &Value, input: &Input) -> String {
    let (name, value) = (escape(&input.name), escape(&input.text));
    let label = escape(book.label(row, &input.name));
    let kind = if input.is_list {
        "type=\"text\""
    } else {
        "type=\"text\" inputmode=\"decimal\""
    };
    let entry = format!(
        "<input {kind} data-input=\"{name}\" data-testid=\"course-{name}\" value=\"{value}\" autocomplete=\"off\">"
    );
    let slider = match (text(data, "from"), text(data, "to"), text(data, "step")) {
        ("", ..) => String::new(),
        (from, to, step) => format!(
            "<input type=\"range\" data-input=\"{name}\" aria-label=\"{label}\" min=\"{from}\" max=\"{to}\" step=\"{step}\" value=\"{value}\">"
        ),
    };
    let unit = escape(input.unit.name);
    let class = if input.is_list {
        "course-field wide"
    } else {
        "course-field"
    };
    format!(
        "<div class=\"{class}\"><label><span class=\"label\">{label}</span><span class=\"entry\">{entry}<span class=\"unit\">{unit}</span></span></label>{slider}</div>"
    )
}

/// Renders each line of a sheet: formula, inserted numbers, result, and the course's figure.
pub fn lines(book: &Book, row: Row, block: &Value, inputs: &[Input], sheet: &Sheet) -> String {
    let is_own = inputs.iter().all(|input| input.is_own);
    let data = items(block.get("lines"));
    let with_course = data.iter().any(|line| line.get("course").is_some());
    let rows: String = data
        .iter()
        .zip(&sheet.lines)
        .map(|(line, result)| {
            let (unit, decimals) = shown_in(line);
            let names = escape(&result.formula.write(&|name| book.label(row, name).to_owned()));
            let numbers = escape(&result.formula.write(&|name| number(name, inputs, data, sheet)));
            let value = match line.get("yes") {
                Some(_) => book.word(if result.value.sum() > 0.0 { "yes" } else { "no" }),
                None => escape(&amount(&result.value, unit, decimals)),
            };
            let exact: Vec<_> = result.value.0.iter().map(|value| format!("{value:.6}")).collect();
            let course = if with_course { course_cell(book, line, is_own) } else { String::new() };
            let name = text(line, "name");
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"course-formula\"><span>{names}</span><span class=\"muted\">= {numbers}</span></td>\
                 <td class=\"course-result\" data-testid=\"course-line\" data-name=\"{name}\" data-value=\"{}\">{value}</td>{course}</tr>",
                escape(book.label(row, name)),
                exact.join(" "),
            )
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let course = if with_course {
        format!("<th scope=\"col\">{}</th>", book.word("course"))
    } else {
        String::new()
    };
    let head = format!(
        "<tr><th scope=\"col\"><span class=\"offscreen\">{}</span></th><th scope=\"col\">{}</th><th scope=\"col\">{}</th>{course}</tr>",
        book.word("quantity"),
        book.word("formula"),
        book.word("result")
    );
    scrolled(&format!(
        "<table class=\"course-stacked\"><thead>{head}</thead><tbody>{rows}</tbody></table>"
    ))
}

/// Attribute that labels a cell with its column, for screens too narrow for the table's head.
pub fn labelled(book: &Book, column: &str) -> String {
    format!(" data-label=\"{}\"", book.word(column))
}

/// Wraps a table so that it scrolls on its own on narrow screens.
pub fn scrolled(table: &str) -> String {
    format!("<div class=\"course-scroll\" tabindex=\"0\">{table}</div>")
}

fn course_cell(book: &Book, line: &Value, is_own: bool) -> String {
    let figure = text(line, "course");
    if figure.is_empty() {
        return "<td></td>".to_owned();
    }
    let unit = text(line, "unit");
    let space = if matches!(unit, "" | "%" | "×") { "" } else { "\u{a0}" };
    let slips = line.get("slip").is_some();
    let class = if slips {
        "course-figure-cell slip"
    } else {
        "course-figure-cell"
    };
    let mark = match (is_own, slips) {
        (false, _) => book.word("other_numbers"),
        (true, true) => book.word("slip"),
        (true, false) => book.word("agrees"),
    };
    let figure = escape(&figure.replacen('-', "−", 1));
    let label = labelled(book, "course");
    format!("<td class=\"{class}\"{label}>{figure}{space}{unit}<span class=\"muted small\">{mark}</span></td>")
}

/// Number that replaces a name when a formula is shown with its numbers.
fn number(name: &str, inputs: &[Input], data: &[Value], sheet: &Sheet) -> String {
    if let Some(input) = inputs.iter().find(|input| input.name == name) {
        return bracketed(amount(&input.value, input.unit, 6), &input.value);
    }
    let line = data.iter().find(|line| text(line, "name") == name);
    let (unit, decimals) = line.map_or((Unit::COUNT, 3), shown_in);
    let value = sheet.value(name).cloned().unwrap_or_default();
    bracketed(amount(&value, unit, decimals.max(2)), &value)
}

/// Puts several numbers in brackets within a formula.
fn bracketed(text: String, value: &List) -> String {
    if value.single().is_some() {
        text
    } else {
        format!("[{text}]")
    }
}

/// Renders the drawings of a block.
pub fn drawings(book: &Book, row: Row, block: &Value, inputs: &[Input], sheet: &Sheet) -> String {
    let value = |name: &str| sheet.value(name).cloned().unwrap_or_default();
    let mut out = String::new();
    if let Some(plot) = block.get("plot") {
        out += &plotted(book, row, (block, plot), inputs, sheet);
    }
    if let Some(bars) = block.get("bars") {
        out += &barred(book, row, (block, bars), inputs, sheet);
    }
    if let Some(squares) = block.get("squares") {
        let label = book.label(row, text(squares, "outer"));
        out += &chart::squares(&value(text(squares, "inner")), &value(text(squares, "outer")), label);
    }
    out
}

fn plotted(book: &Book, row: Row, (block, plot): (&Value, &Value), inputs: &[Input], own: &Sheet) -> String {
    let bound = |key: &str| read_number(text(plot, key)).unwrap_or_default();
    let (of, over) = (text(plot, "of"), text(plot, "over"));
    let (from, to) = (bound("from"), bound("to"));
    let unit = Unit::named(text(plot, "unit")).unwrap_or(Unit::COUNT);
    let mut moved = inputs.to_vec();
    let mut points = Vec::new();
    for i in 0..=POINTS {
        let x = from + (to - from) * i as f64 / POINTS as f64;
        if let Some(input) = moved.iter_mut().find(|input| input.name == over) {
            input.value = x.into();
        }
        let y = sheet(block, &moved).ok().and_then(|sheet| sheet.value(of)?.single());
        points.extend(y.map(|y| (x, y)));
    }
    let at = |name: &str| own.value(name).and_then(List::single).unwrap_or_default();
    let label = format!("{} / {}", book.label(row, of), book.label(row, over));
    let caption = element("p", "muted small", &escape(&label));
    format!("{}{caption}", chart::curve(&points, (at(over), at(of)), unit, &label))
}

fn barred(book: &Book, row: Row, (block, bars): (&Value, &Value), inputs: &[Input], sheet: &Sheet) -> String {
    let also = items(bars.get("also"));
    let first = text(bars, "length");
    let names = std::iter::once(first).chain(also.iter().filter_map(Value::as_str));
    let value = |name: &str| sheet.value(name).cloned().unwrap_or_default();
    let of_line = items(block.get("lines"))
        .iter()
        .find(|line| text(line, "name") == first)
        .map(shown_in);
    let of_input = inputs
        .iter()
        .find(|input| input.name == first)
        .map(|input| (input.unit, 1));
    let (unit, decimals) = of_line.or(of_input).unwrap_or((Unit::COUNT, 1));
    let rows: Vec<_> = names
        .map(|name| {
            let lengths = value(name);
            let starts = match text(bars, "start") {
                "" => List(vec![0.0; lengths.0.len()]),
                start => value(start),
            };
            let label = if also.is_empty() {
                String::new()
            } else {
                book.label(row, name).to_owned()
            };
            Bars { label, starts, lengths }
        })
        .collect();
    let limit = sheet.value(text(bars, "limit")).and_then(List::single);
    chart::bars(&rows, limit, unit, decimals, book.label(row, first))
}
