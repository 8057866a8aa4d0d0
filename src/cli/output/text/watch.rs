//! Formats a run beside its prediction.

use serde_json::Value;
use vramscope_engine::units::Bytes;

use super::bar::bar;
use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use crate::commands::watch::{Compared, Comparison};
use crate::output::list::{self, Edge};

/// Number of steps that are listed, the newest.
const LISTED: usize = 8;
/// Cells of a bar.
const CELLS: usize = 24;

/// Formats the run, its newest steps, the highest step as bars, and what differs.
pub fn render(comparison: &Comparison, width: usize) -> String {
    let mut out = heading(comparison, width);
    out += &bars(comparison);
    out += &table(comparison);
    if let Some(why) = &comparison.reason {
        out += &paragraph(&format!("There is no prediction: {why}"), width);
    }
    for sentence in &comparison.differs {
        out += &paragraph(sentence, width);
    }
    if comparison.differs.is_empty() && comparison.compared.iter().any(|c| c.predicted.is_some()) {
        out += "As predicted.\n";
    }
    for source in comparison.sources.iter().flatten() {
        out += &wrap(&format!("time: {source}"), width)
            .iter()
            .map(|l| format!("{QUIET}{l}{QUIET:#}\n"))
            .collect::<String>();
    }
    out
}

fn heading(comparison: &Comparison, width: usize) -> String {
    let header = &comparison.header;
    let model = header
        .config
        .as_ref()
        .and_then(|config| config["model_type"].as_str())
        .unwrap_or("a model");
    let card = header.gpu.as_deref().unwrap_or("an unknown card");
    let steps = comparison.compared.len();
    let state = if comparison.is_ended { "ended" } else { "running" };
    let setup: Vec<String> = header.case.iter().filter_map(|(key, value)| word(key, value)).collect();
    let mut out = format!("{STRONG}{model}{STRONG:#}  on {card}, {steps} steps, {state}\n");
    for line in wrap(&setup.join(" · "), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out + "\n"
}

/// A setting in words; `None` for one that is off.
fn word(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(false) | Value::Null => None,
        Value::Bool(true) => Some(key.to_owned()),
        Value::String(text) => Some(format!("{key} {text}")),
        other => Some(format!("{key} {other}")),
    }
}

/// The step with the highest measured peak, predicted and measured.
fn bars(comparison: &Comparison) -> String {
    let with = comparison.compared.iter().filter_map(|c| Some((c, c.predicted?)));
    let Some((compared, predicted)) = with.max_by_key(|(c, _)| c.step.peak) else {
        return String::new();
    };
    let step = &compared.step;
    let rows = [
        ("peak, predicted", predicted.peak),
        ("peak, measured", step.peak),
        ("reserved, predicted", predicted.reserved),
        ("reserved, measured", step.reserved),
    ];
    let whole = rows.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
    let line = |(name, bytes): (&str, u64)| {
        let bytes = Bytes::new(bytes);
        let (bar, rest) = bar(bytes, Bytes::new(whole), CELLS);
        format!("  {name:<20} {bar}{rest} {bytes:>11}\n")
    };
    let peak = percent(step.peak as f64, predicted.peak as f64);
    let mut out: String = rows.into_iter().map(line).collect();
    out += &format!("  highest of step {}: measured {peak} against predicted\n\n", step.step);
    out
}

fn percent(measured: f64, predicted: f64) -> String {
    format!("{:+.2}%", 100.0 * (measured / predicted.max(1.0) - 1.0))
}

fn table(comparison: &Comparison) -> String {
    let from = comparison.compared.len().saturating_sub(LISTED);
    let rows: Vec<[String; 8]> = comparison.compared[from..].iter().map(cells).collect();
    let heads = [
        ("step", Edge::Right),
        ("batch", Edge::Right),
        ("peak", Edge::Right),
        ("predicted", Edge::Right),
        ("", Edge::Right),
        ("ms", Edge::Right),
        ("predicted", Edge::Right),
        ("", Edge::Right),
    ];
    list::render(heads, &rows) + "\n"
}

fn cells(Compared { step, predicted }: &Compared) -> [String; 8] {
    let side = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let shape = format!("{} × {}", side(step.shape.batch), side(step.shape.seq));
    // The first step, which makes optimizer states, is not predicted.
    let absent = || if step.step == 1 { "first" } else { "-" }.to_owned();
    let bytes = predicted.map_or_else(absent, |p| Bytes::new(p.peak).to_string());
    let ms = predicted.and_then(|p| p.time).map(|time| time.ms);
    [
        step.step.to_string(),
        shape,
        Bytes::new(step.peak).to_string(),
        bytes,
        predicted.map_or_else(String::new, |p| percent(step.peak as f64, p.peak as f64)),
        format!("{:.1}", step.ms),
        ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")),
        ms.map_or_else(String::new, |ms| {
            format!("{:+.0}%", 100.0 * (step.ms / ms.max(1e-9) - 1.0))
        }),
    ]
}

fn paragraph(text: &str, width: usize) -> String {
    format!("{}\n", wrap(text, width).join("\n"))
}
