//! Formats the largest live tensors at the peak.

use vramscope_engine::Report;
use vramscope_engine::format::gib;
use vramscope_engine::report::LiveTensor;

use super::paint::{self, QUIET, STRONG};
use super::wrap::{NO_BREAK, wrap};

/// Number of tensors shown.
const SHOWN: usize = 5;
/// Columns before the text.
const INDENT: usize = 15;

/// Formats each tensor with its shape, dtype, component, and the reason why it is live.
pub fn render(report: &Report, width: usize) -> String {
    let timeline = &report.timeline;
    let largest = timeline.largest_at(timeline.peak_instant(), SHOWN);
    if largest.is_empty() {
        return String::new();
    }
    let tensors: String = largest.iter().map(|tensor| entry(tensor, width)).collect();
    format!("{STRONG}Largest tensors at the peak{STRONG:#}\n{tensors}")
}

fn entry(tensor: &LiveTensor, width: usize) -> String {
    let kind = paint::kind(tensor.kind);
    let what = format!("{} {} {}", tensor.name, shape(tensor), tensor.dtype.name());
    let why = tensor.why.words();
    let about = [&*tensor.layer, tensor.kind.label(), &why];
    let about: Vec<&str> = about.into_iter().filter(|words| !words.is_empty()).collect();
    let lines = |text: &str| wrap(text, width.saturating_sub(INDENT)).join(&format!("\n{}", " ".repeat(INDENT)));
    format!(
        "  {:>11}  {kind}{}{kind:#}\n{}{QUIET}{}{QUIET:#}\n",
        gib(tensor.bytes),
        lines(&what),
        " ".repeat(INDENT),
        lines(&about.join(" · ")),
    )
}

/// Formats a shape as `[4, 2048, 32064]`, without line breaks.
fn shape(tensor: &LiveTensor) -> String {
    let sides: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
    format!("[{}]", sides.join(&format!(",{NO_BREAK}")))
}
