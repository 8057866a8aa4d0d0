//! What the peak adds up to, from the tensors out to the card.

use vramscope_engine::Report;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;

const AMOUNT: usize = 11;

/// A sum, one term a line. Terms outside PyTorch count where a whole card is asked about; a limit
/// of the allocator does not hold them.
pub fn render(report: &Report, target: Option<&Target>, width: usize) -> String {
    let whole_card = !matches!(
        target,
        Some(Target {
            room: Room::Allocator(_),
            ..
        })
    );
    let kept = report.peak_reserved.saturating_sub(report.peak_allocated);
    let mut out = format!("{STRONG}What it adds up to{STRONG:#}\n");
    out += &term("", report.peak_allocated, "in tensors, at the steady step's peak");
    out += &term(
        "+",
        kept,
        "more that the allocator keeps: free parts of its segments, and its cache",
    );
    out += &term("=", report.peak_reserved, "reserved by PyTorch at most");
    if whole_card {
        for outside in &report.outside {
            let [low, high] = outside.range.map(gib);
            let name = outside.name.replace('-', " ");
            out += &term("+", outside.bytes, &format!("{name}, outside PyTorch: {low} to {high}"));
            out += &source(outside.source, width);
        }
        out += &term("=", report.peak_reserved + report.outside_torch(), "on the card");
    }
    out
}

fn term(sign: &str, bytes: Bytes, what: &str) -> String {
    format!("  {sign:1}{:>AMOUNT$}  {what}\n", gib(bytes))
}

fn source(text: &str, width: usize) -> String {
    let indent = " ".repeat(AMOUNT + 5);
    let lines = wrap(text, width.saturating_sub(indent.len()));
    lines
        .iter()
        .map(|line| format!("{indent}{QUIET}{line}{QUIET:#}\n"))
        .collect()
}
