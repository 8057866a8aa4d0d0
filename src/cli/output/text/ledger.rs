//! Adds up the peak line by line, from tensors to the whole card.

use anstyle::Style;
use vramscope_engine::Report;
use vramscope_engine::format::gib;
use vramscope_engine::report::{OutsideTerm, Reserved};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;

/// Columns before the text: sign, amount and gaps.
const INDENT: usize = 16;

/// Formats the sum with one term per line. What lies outside PyTorch is a term only if the target is a card: a limit of
/// the allocator does not include it. `many_lengths` is what PyTorch may reserve once batches of many lengths have passed.
pub fn render(
    report: &Report,
    (target, many_lengths): (Option<&(Target, Fit)>, Option<&Reserved>),
    width: usize,
) -> String {
    let ledger = Ledger { width };
    let beyond_tensors = report.peak_reserved.saturating_sub(report.peak_allocated);
    let mut out = format!("{STRONG}What it adds up to{STRONG:#}\n");
    out += &ledger.term(' ', report.peak_allocated, "in tensors at the peak");
    out += &ledger.term(
        '+',
        beyond_tensors,
        "more that PyTorch's allocator keeps: its cache, and gaps in its segments",
    );
    out += &ledger.sum(report.peak_reserved, "reserved by PyTorch at most");
    // Such as "That is in a fresh process; 21.3 GiB in a process that has trained before."
    if let Some([least, most]) = report.reserved_range() {
        out += &ledger.remark(&format!(
            "That is {}; {} {}.",
            most.layout.label(),
            gib(least.bytes),
            least.layout.label()
        ));
    }
    if let Some(many) = many_lengths.filter(|many| many.bytes > report.peak_reserved) {
        out += &ledger.remark(&format!(
            "Up to {} {}: a cache of blocks that were cut for other lengths, which PyTorch gives back before it runs out of \
             memory.",
            gib(many.bytes),
            many.layout.label()
        ));
    }
    match target {
        Some((Target::Card(_), fit)) => out + &ledger.card(fit),
        Some((Target::Limit(_), _)) => out,
        None => out + &ledger.remark("What lies outside PyTorch (the CUDA context) depends on the card."),
    }
}

/// Formats lines for a layout of `width` columns.
struct Ledger {
    width: usize,
}

impl Ledger {
    fn term(&self, sign: char, bytes: Bytes, label: &str) -> String {
        self.line(sign, bytes, label, Style::new())
    }

    fn sum(&self, bytes: Bytes, label: &str) -> String {
        self.line('=', bytes, label, STRONG)
    }

    fn card(&self, fit: &Fit) -> String {
        if fit.outside.is_empty() {
            return self.remark("What this card holds outside PyTorch is not known and not counted.");
        }
        let terms: String = fit.outside.iter().map(|term| self.outside(term)).collect();
        terms + &self.sum(fit.needed, "on the card")
    }

    fn outside(&self, term: &OutsideTerm) -> String {
        let name = readable_name(term.name.name());
        let highest = gib(term.range[1]);
        let at_most = if highest == gib(term.bytes) {
            String::new()
        } else {
            format!(", at most {highest}")
        };
        self.term('+', term.bytes, &format!("{name}, outside PyTorch{at_most}"))
    }

    fn remark(&self, text: &str) -> String {
        let text = self.wrapped(text).join(&self.line_break());
        format!("{}{QUIET}{text}{QUIET:#}\n", " ".repeat(INDENT))
    }

    fn line(&self, sign: char, bytes: Bytes, label: &str, style: Style) -> String {
        let text = self.wrapped(label).join(&self.line_break());
        format!("  {sign}{style}{:>11}  {text}{style:#}\n", gib(bytes))
    }

    fn wrapped(&self, text: &str) -> Vec<String> {
        wrap(text, self.width.saturating_sub(INDENT))
    }

    fn line_break(&self) -> String {
        format!("\n{}", " ".repeat(INDENT))
    }
}

/// Makes a term's name readable: `cuda-context` → `CUDA context`.
fn readable_name(name: &str) -> String {
    name.replace('-', " ").replace("cuda", "CUDA").replace("vllm", "vLLM")
}
