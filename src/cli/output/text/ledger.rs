//! What the peak adds up to, from the tensors out to the card.

use anstyle::Style;
use vramscope_engine::Report;
use vramscope_engine::format::gib;
use vramscope_engine::report::OutsideTerm;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Room;

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;

/// Columns before the words: sign, amount and the gaps.
const INDENT: usize = 16;

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
    let ledger = Ledger { width };
    let kept = report.peak_reserved.saturating_sub(report.peak_allocated);
    let mut out = format!("{STRONG}What it adds up to{STRONG:#}\n");
    out += &ledger.term(' ', report.peak_allocated, "in tensors at the peak");
    out += &ledger.term(
        '+',
        kept,
        "more that PyTorch's allocator keeps: its cache, and gaps in its segments",
    );
    out += &ledger.sum(report.peak_reserved, "reserved by PyTorch at most");
    if whole_card {
        for outside in &report.outside {
            out += &ledger.outside(outside);
        }
        out += &ledger.sum(report.peak_reserved + report.outside_torch(), "on the card");
    }
    out
}

struct Ledger {
    width: usize,
}

impl Ledger {
    fn term(&self, sign: char, bytes: Bytes, what: &str) -> String {
        self.line(sign, bytes, what, Style::new())
    }

    fn sum(&self, bytes: Bytes, what: &str) -> String {
        self.line('=', bytes, what, STRONG)
    }

    fn outside(&self, term: &OutsideTerm) -> String {
        let [low, high] = term.range.map(gib);
        let what = format!("{} outside PyTorch, {low} to {high}", words_of(term.name));
        let source = self.words(term.source).join(&self.line_break());
        let line = self.term('+', term.bytes, &what);
        format!("{line}{}{QUIET}{source}{QUIET:#}\n", " ".repeat(INDENT))
    }

    fn line(&self, sign: char, bytes: Bytes, what: &str, style: Style) -> String {
        let words = self.words(what).join(&self.line_break());
        format!("  {sign}{style}{:>11}  {words}{style:#}\n", gib(bytes))
    }

    fn words(&self, text: &str) -> Vec<String> {
        wrap(text, self.width.saturating_sub(INDENT))
    }

    fn line_break(&self) -> String {
        format!("\n{}", " ".repeat(INDENT))
    }
}

/// `cuda-context` → `CUDA context`.
fn words_of(name: &str) -> String {
    name.replace('-', " ").replace("cuda", "CUDA")
}
