//! What was asked.

use vramscope_engine::format::count;

use super::Estimate;
use super::paint::{QUIET, STRONG};
use super::setup_words::setup_words;
use super::wrap::wrap;

/// Name and size of the model, and the setup in the words of its flags.
pub fn render(estimate: &Estimate, width: usize) -> String {
    let report = estimate.report;
    let size = match (report.params, report.trainable) {
        (all, trained) if all == trained => format!("{} parameters", count(all)),
        (all, trained) => format!("{} parameters, {} trained", count(all), count(trained)),
    };
    let mut out = format!("{STRONG}{}{STRONG:#}  {size}\n", estimate.model);
    for line in wrap(&setup_words(estimate.setup), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out
}
