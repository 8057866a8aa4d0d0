//! What was asked.

use vramscope_engine::format::count;
use vramscope_engine::{Report, Setup};

use super::paint::{QUIET, STRONG};
use super::setup_words::setup_words;
use super::wrap::wrap;

/// Name and size of the model, and the setup in the words of its flags.
pub fn render(model: &str, setup: &Setup, report: &Report, width: usize) -> String {
    let size = match (report.params, report.trainable) {
        (all, trained) if all == trained => format!("{} parameters", count(all)),
        (all, trained) => format!("{} parameters, {} trained", count(all), count(trained)),
    };
    let mut out = format!("{STRONG}{model}{STRONG:#}  {size}\n");
    for line in wrap(&setup_words(setup), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out
}
