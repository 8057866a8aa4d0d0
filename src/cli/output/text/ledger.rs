//! Itemises the peak, from tensors to the whole card.

use anstyle::Style;
use vramscope_engine::Report;
use vramscope_engine::format::gib;
use vramscope_engine::report::OutsideTerm;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;

/// Columns before the text: sign, amount and gaps.
const INDENT: usize = 16;

/// Formats a sum with one term per line. Terms outside PyTorch only count for a whole card; a limit of the allocator
/// does not include them.
pub fn render(report: &Report, target: Option<&(Target, Fit)>, width: usize) -> String {
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
    if let Some([least, most]) = report.reserved_range() {
        out += &ledger.remark(&format!(
            "That is {}; {} {}.",
            most.layout.label(),
            gib(least.bytes),
            least.layout.label()
        ));
    }
    match target {
        Some((Target::Card(_), fit)) => out + &ledger.card(fit),
        Some((Target::Limit(_), _)) => out,
        None => out + &ledger.remark("What lies outside PyTorch (the CUDA context) depends on the card."),
    }
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

    fn card(&self, fit: &Fit) -> String {
        if fit.outside.is_empty() {
            return self.remark("What this card holds outside PyTorch is not known and not counted.");
        }
        let terms: String = fit.outside.iter().map(|term| self.outside(term)).collect();
        terms + &self.sum(fit.needed, "on the card")
    }

    fn outside(&self, term: &OutsideTerm) -> String {
        let name = words_of(term.name.name());
        let high = gib(term.range[1]);
        let most = if high == gib(term.bytes) {
            String::new()
        } else {
            format!(", at most {high}")
        };
        self.term('+', term.bytes, &format!("{name}, outside PyTorch{most}"))
    }

    fn remark(&self, text: &str) -> String {
        let words = self.words(text).join(&self.line_break());
        format!("{}{QUIET}{words}{QUIET:#}\n", " ".repeat(INDENT))
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

/// Formats the name of a term: `cuda-context` → `CUDA context`.
fn words_of(name: &str) -> String {
    name.replace('-', " ").replace("cuda", "CUDA")
}
