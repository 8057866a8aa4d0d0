//! Formats the memory of inference as text.

use anstyle::Style;
use vramscope_engine::Setup;
use vramscope_engine::format::count;
use vramscope_engine::simulate::Inference;
use vramscope_engine::units::Bytes;

use super::paint::{QUIET, STRONG};
use super::row::Row;
use super::setup_words::setup_words;
use super::wrap::wrap;

/// Formats name and setup, then memory of the model, with its outputs, at the peak, and reserved.
pub fn inference(model: &str, setup: &Setup, figures: &Inference, width: usize) -> String {
    let mut out = format!("{STRONG}{model}{STRONG:#}  {} parameters\n", count(figures.params));
    for line in wrap(&setup_words(setup), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out += &format!("\n{STRONG}Without training{STRONG:#}\n");
    let rows = [
        ("  model", figures.after_model),
        ("  keys and values", figures.cache),
        ("  model and outputs", figures.with_outputs),
        ("  peak", figures.peak_allocated),
        ("  reserved", figures.peak_reserved),
    ];
    for (label, bytes) in rows.into_iter().filter(|(_, bytes)| *bytes > Bytes::ZERO) {
        let peak = bytes == figures.peak_allocated;
        let row = Row {
            label,
            bytes,
            of: Some(figures.peak_reserved),
            note: "",
            bar_style: if peak { Style::new() } else { QUIET },
            text_style: if peak { STRONG } else { Style::new() },
        };
        out += &row.render(width);
    }
    out
}
