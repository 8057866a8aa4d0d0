//! Figures: formulas with their results, and what is drawn of them.

use serde_json::Value;
use vramscope_course::{List, Sheet, SheetError, Unit, read_number};

use super::book::{Block, items, text};
use super::chart::{self, Bars, Drawing};
use super::given::{Input, amount};

/// Number of points of a drawn curve.
const POINTS: usize = 64;

/// Evaluates the formulas of a block with these inputs.
///
/// # Errors
/// Fails if a line cannot be parsed or evaluated.
pub fn sheet(block: Block, inputs: &[Input]) -> Result<Sheet, SheetError> {
    let values = inputs.iter().map(|input| (input.name.clone(), input.value.clone()));
    let mut sheet = Sheet::new(values.collect());
    for line in block.line_data() {
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

/// A line of a sheet as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// Name in formulas.
    pub name: &'a str,
    /// Name of the quantity.
    pub label: &'a str,
    /// Formula with the names of quantities.
    pub formula: String,
    /// Formula with the numbers of quantities.
    pub numbers: String,
    /// Result in its unit, or an answer to a question.
    pub result: String,
    /// Result in the base unit, to six decimals.
    pub exact: String,
    /// The course's figure, if it prints one.
    pub printed: Option<Printed<'a>>,
}

/// A figure that the course prints, compared with a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed<'a> {
    /// Figure with its unit.
    pub figure: String,
    /// True if the figure is known to differ.
    pub slips: bool,
    /// Words on how the figure compares with the result.
    pub comparison: &'a str,
}

/// Returns true if the course prints a figure for a line of the block.
pub fn is_printed(block: Block) -> bool {
    block.line_data().iter().any(|line| line.get("course").is_some())
}

/// Returns each line of a sheet: formula, inserted numbers, result, and the course's figure.
pub fn lines<'a>(block: Block<'a>, inputs: &[Input], sheet: &Sheet) -> Vec<Line<'a>> {
    let book = block.row.book;
    let is_own = inputs.iter().all(|input| input.is_own);
    let line = |(data, result): (&'a Value, &vramscope_course::Line)| {
        let (unit, decimals) = shown_in(data);
        let name = text(data, "name");
        let exact: Vec<_> = result.value.0.iter().map(|value| format!("{value:.6}")).collect();
        Line {
            name,
            label: block.label(name),
            formula: result.formula.write(&|name| block.label(name).to_owned()),
            numbers: result.formula.write(&|name| number(block, name, inputs, sheet)),
            result: match data.get("yes") {
                Some(_) => book
                    .word(if result.value.sum() > 0.0 { "yes" } else { "no" })
                    .to_owned(),
                None => amount(&result.value, unit, decimals),
            },
            exact: exact.join(" "),
            printed: printed(block, data, is_own),
        }
    };
    block.line_data().iter().zip(&sheet.lines).map(line).collect()
}

fn printed<'a>(block: Block<'a>, line: &Value, is_own: bool) -> Option<Printed<'a>> {
    let figure = text(line, "course");
    if figure.is_empty() {
        return None;
    }
    let unit = text(line, "unit");
    let space = if matches!(unit, "" | "%" | "×") { "" } else { "\u{a0}" };
    let figure = figure.replacen('-', "−", 1);
    let slips = line.get("slip").is_some();
    let comparison = match (is_own, slips) {
        (false, _) => "other_numbers",
        (true, true) => "slip",
        (true, false) => "agrees",
    };
    Some(Printed {
        figure: format!("{figure}{space}{unit}"),
        slips,
        comparison: block.row.book.word(comparison),
    })
}

/// Number that replaces a name when a formula is shown with its numbers.
fn number(block: Block, name: &str, inputs: &[Input], sheet: &Sheet) -> String {
    if let Some(input) = inputs.iter().find(|input| input.name == name) {
        return bracketed(amount(&input.value, input.unit, 6), &input.value);
    }
    let (unit, decimals) = block.line_named(name).map_or((Unit::COUNT, 3), shown_in);
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

/// Returns the drawings of a block.
pub fn drawings(block: Block, inputs: &[Input], sheet: &Sheet) -> Vec<Drawing> {
    let value = |name: &str| sheet.value(name).cloned().unwrap_or_default();
    let mut out = Vec::new();
    if let Some(plot) = block.data.get("plot") {
        out.push(plotted(block, plot, inputs, sheet));
    }
    if let Some(bars) = block.data.get("bars") {
        out.push(barred(block, bars, inputs, sheet));
    }
    if let Some(squares) = block.data.get("squares") {
        let label = block.label(text(squares, "outer"));
        out.push(chart::squares(
            &value(text(squares, "inner")),
            &value(text(squares, "outer")),
            label,
        ));
    }
    out
}

fn plotted(block: Block, plot: &Value, inputs: &[Input], own: &Sheet) -> Drawing {
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
    let label = format!("{} / {}", block.label(of), block.label(over));
    Drawing {
        has_caption: true,
        ..chart::curve(&points, (at(over), at(of)), unit, &label)
    }
}

fn barred(block: Block, bars: &Value, inputs: &[Input], sheet: &Sheet) -> Drawing {
    let also = items(bars.get("also"));
    let first = text(bars, "length");
    let names = std::iter::once(first).chain(also.iter().filter_map(Value::as_str));
    let value = |name: &str| sheet.value(name).cloned().unwrap_or_default();
    let of_line = block.line_named(first).map(shown_in);
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
            let label = if also.is_empty() { "" } else { block.label(name) };
            Bars {
                label: label.to_owned(),
                starts,
                lengths,
            }
        })
        .collect();
    let limit = sheet.value(text(bars, "limit")).and_then(List::single);
    chart::bars(&rows, limit, unit, decimals, block.label(first))
}
