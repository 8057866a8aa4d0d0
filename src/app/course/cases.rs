//! Compares simulated setups with the course's figures and with measurements.

use serde_json::Value;
use vramscope_engine::format::gib;
use vramscope_engine::report::{Part, Phase};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;

use super::book::{Book, Row, items, text};
use super::figure::{labelled, scrolled};
use super::given::Input;
use super::html::{element, escape};
use crate::worker::view::Summary;

/// Names and colours for the parts of a report.
pub struct Names<'a> {
    /// Name of a phase.
    pub phase: &'a dyn Fn(Phase) -> String,
    /// Name of a part of the memory.
    pub part: &'a dyn Fn(Part) -> String,
    /// CSS class with the colour of a kind.
    pub class: &'a dyn Fn(Kind) -> &'static str,
}

/// Result of a setup: pending, its figures, or the reason why it has none.
pub type Outcome<'a> = Option<&'a Result<Summary, String>>;

/// Query of a case's setup, with the fields' values inserted.
pub fn query(case: &Value, inputs: &[Input]) -> String {
    let mut query = text(case, "setup").to_owned();
    for input in inputs {
        let value = input.value.single().unwrap_or_default();
        // Setups take whole numbers only.
        query = query.replace(&format!("{{{}}}", input.name), &format!("{value:.0}"));
    }
    query
}

/// Queries of a block's setups, in order.
pub fn queries<'a>(block: &'a Value, inputs: &'a [Input]) -> impl Iterator<Item = String> + 'a {
    items(block.get("cases")).iter().map(|case| query(case, inputs))
}

/// Renders the table of a block's setups.
pub fn table<'a>(
    book: &Book,
    row: Row,
    (block, name): (&Value, &str),
    inputs: &[Input],
    known: &dyn Fn(&str) -> Outcome<'a>,
    names: &Names,
) -> String {
    let cases = items(block.get("cases"));
    if cases.is_empty() {
        return String::new();
    }
    let labels = row.list(&format!("{name}.cases"));
    let has = |key: &str| cases.iter().any(|case| case.get(key).is_some());
    let show = Show {
        course: has("course"),
        measured: has("measured"),
        verdict: block.get("verdict").is_some(),
    };
    let summaries: Vec<_> = cases.iter().map(|case| known(&query(case, inputs))).collect();
    let highest = summaries.iter().flatten().flat_map(|s| s.as_ref().ok());
    let highest = highest.map(|s| s.figures.peak_allocated.get()).max().unwrap_or(1);
    let is_own = inputs.iter().all(|input| input.is_own);
    let rows: String = cases
        .iter()
        .zip(summaries)
        .enumerate()
        .map(|(place, (case, outcome))| {
            let label = labels.get(place).and_then(Value::as_str).unwrap_or_default();
            let query = query(case, inputs);
            let head = format!(
                "<th scope=\"row\">{}<a class=\"small\" href=\"#/?{}\">{}</a></th>",
                escape(label),
                escape(&query),
                book.word("open_planner")
            );
            let cells = match outcome {
                Some(Ok(summary)) => figures(book, summary, highest, (case, is_own), &show, names),
                Some(Err(message)) => format!("<td colspan=\"6\" class=\"oom\">{}</td>", escape(message)),
                None => format!("<td colspan=\"6\" class=\"muted\">{}</td>", book.word("simulating")),
            };
            format!("<tr>{head}{cells}</tr>")
        })
        .collect();
    let marks = match (block.get("marks"), known(&query(&cases[0], inputs))) {
        (None, _) | (_, Some(Err(_))) => String::new(),
        (Some(_), first) => step(book, first.and_then(|outcome| outcome.as_ref().ok())),
    };
    scrolled(&format!(
        "<table class=\"course-cases course-stacked\"><thead>{}</thead><tbody>{rows}</tbody></table>",
        show.head(book)
    )) + &marks
}

/// Columns that a table shows.
struct Show {
    course: bool,
    measured: bool,
    verdict: bool,
}

impl Show {
    fn head(&self, book: &Book) -> String {
        let columns = [
            ("setup", true),
            ("exact", true),
            ("at_peak", true),
            ("holds", true),
            ("course", self.course),
            ("measured", self.measured),
            ("on_card", self.verdict),
        ];
        let shown = columns.into_iter().filter(|(_, shown)| *shown);
        let cells: String = shown
            .map(|(key, _)| format!("<th scope=\"col\">{}</th>", book.word(key)))
            .collect();
        element("tr", "", &cells)
    }
}

fn figures(
    book: &Book,
    summary: &Summary,
    highest: u64,
    (case, is_own): (&Value, bool),
    show: &Show,
    names: &Names,
) -> String {
    let peak = summary.figures.peak_allocated;
    let mut out = format!(
        "<td class=\"course-result\" data-testid=\"course-peak\" data-value=\"{}\">{}</td><td class=\"wide\">{}</td><td data-testid=\"course-phase\"{}>{}</td>",
        peak.get(),
        gib(peak),
        stack(summary, highest, names),
        labelled(book, "holds"),
        escape(&(names.phase)(summary.figures.peak_phase))
    );
    if show.course {
        out += &cell(book, "course", &escape(text(case, "course")));
    }
    if show.measured {
        let measured = case.get("measured").and_then(Value::as_u64).filter(|_| is_own);
        let measured = measured.map(|bytes| gib(Bytes::new(bytes)));
        out += &cell(book, "measured", &measured.unwrap_or_default());
    }
    if show.verdict {
        out += &verdict(book, summary);
    }
    out
}

fn cell(book: &Book, column: &str, content: &str) -> String {
    format!("<td{}>{content}</td>", labelled(book, column))
}

fn verdict(book: &Book, summary: &Summary) -> String {
    match &summary.card {
        Ok(card) => {
            let fits = card.fit.verdict != Verdict::Oom;
            let class = if fits { "fits" } else { "oom" };
            let word = book.word(if fits { "fits" } else { "short_of" });
            format!(
                "<td class=\"{class}\">{}: {word}<span class=\"muted small\">{}</span></td>",
                escape(&card.name),
                gib(summary.needed())
            )
        }
        Err(message) => element("td", "muted", &escape(message)),
    }
}

/// Draws the memory live at the peak, by kind, as one bar.
fn stack(summary: &Summary, highest: u64, names: &Names) -> String {
    let (mut left, mut bars, mut words) = (0.0, String::new(), Vec::new());
    for (part, bytes) in &summary.parts {
        let Part::Live(kind) = part else { continue };
        let width = bytes.get() as f64 / highest as f64 * 240.0;
        bars += &format!(
            "<rect class=\"{}\" x=\"{left:.1}\" y=\"0\" width=\"{width:.1}\" height=\"16\"/>",
            (names.class)(*kind)
        );
        words.push(format!("{} {}", (names.part)(*part), gib(*bytes)));
        left += width;
    }
    let words = escape(&words.join(", "));
    format!(
        "<svg class=\"course-stack\" viewBox=\"0 0 240 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{words}\">{bars}</svg><span class=\"muted small course-parts\">{words}</span>"
    )
}

/// Draws the allocated bytes over one step; reserves the space while they are pending.
fn step(book: &Book, summary: Option<&Summary>) -> String {
    let steady = summary.map(|summary| summary.figures.steady).unwrap_or_default();
    let marks = [
        ("mark_before", steady.before_forward),
        ("mark_peak_forward", steady.peak_forward),
        ("mark_after_forward", steady.after_forward),
        ("mark_peak_backward", steady.peak_backward),
        ("mark_after_backward", steady.after_backward),
        ("mark_peak_optimizer", steady.peak_optimizer),
        ("mark_end", steady.end),
    ];
    let highest = steady.peak().get().max(1) as f64;
    let rows: String = marks
        .iter()
        .map(|(key, bytes)| {
            let width = bytes.get() as f64 / highest * 240.0;
            format!(
                "<tr><th scope=\"row\">{}</th><td><svg class=\"course-stack\" viewBox=\"0 0 240 16\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{width:.1}\" height=\"16\"/></svg></td><td class=\"course-result\">{}</td></tr>",
                book.word(key),
                summary.map(|_| gib(*bytes)).unwrap_or_default()
            )
        })
        .collect();
    scrolled(&format!(
        "<table class=\"course-cases course-stacked\"><tbody>{rows}</tbody></table>"
    ))
}
