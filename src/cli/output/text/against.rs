//! Formats two runs beside each other: verdicts, settings that differ, and where their memory differs.

use anstyle::Style;
use vramscope_engine::format::{difference, exact, gib, grouped};
use vramscope_engine::report::difference::{Alike, TensorDifference, more};
use vramscope_engine::report::{Difference, Part};
use vramscope_engine::setup::Setting;
use vramscope_engine::units::Bytes;

use super::paint::{self, QUIET, STRONG};
use super::wrap::{NO_BREAK, wrap};
use super::{Estimate, heading, verdict};

/// Tensors that are shown one by one.
const SHOWN: usize = 15;
/// Columns before the text of a tensor.
const INDENT: usize = 15;

/// Formats both runs, A and B, by the names of their files.
pub fn render(names: &[String; 2], both: &[Estimate<'_>; 2], of: &Difference, width: usize) -> String {
    let mut out = String::new();
    for ((letter, name), run) in ["A", "B"].iter().zip(names).zip(both) {
        out += &format!("{STRONG}{letter}{STRONG:#}  {QUIET}{name}{QUIET:#}\n");
        out += &heading::render(run, width);
        out += &verdict::render(run.target.as_ref(), (run.left_out, run.lengths), width);
        out += "\n";
    }
    out += &settings(both);
    out += &parts(of);
    out + &tensors(of, width)
}

/// Formats two recorded runs, A and B, with the libraries whose versions differ.
pub fn recorded(names: &[String; 2], versions: &[(String, [String; 2])], of: &Difference, width: usize) -> String {
    let mut out = String::new();
    for (letter, name) in ["A", "B"].iter().zip(names) {
        out += &format!("{STRONG}{letter}{STRONG:#}  {QUIET}{name}{QUIET:#}\n");
    }
    out += &format!("\n{STRONG}Versions that differ{STRONG:#}\n");
    for (name, [a, b]) in versions {
        out += &format!("  {name:<22}{a:<26} {b}\n");
    }
    if versions.is_empty() {
        out += "  none\n";
    }
    out += "\n";
    out += &parts(of);
    out + &tensors(of, width)
}

/// Formats the settings that differ.
fn settings(both: &[Estimate<'_>; 2]) -> String {
    let of_setup = Setting::ALL.iter().map(|setting| {
        let values = both.each_ref().map(|run| setting.of(run.setup).text());
        (setting.key(), values)
    });
    let of_run = |of: fn(&Estimate<'_>) -> String| both.each_ref().map(of);
    let rows = [
        ("model", of_run(|run| run.model.to_owned())),
        (
            "gpus",
            of_run(|run| run.parallel.map_or(1, |shared| shared.world).to_string()),
        ),
        (
            "strategy",
            of_run(|run| run.parallel.map_or("none", |shared| shared.strategy.name()).to_owned()),
        ),
        (
            "offload",
            of_run(|run| run.parallel.map_or("false", |shared| shared.offload.word()).to_owned()),
        ),
    ];
    let differ = rows.into_iter().chain(of_setup).filter(|(_, [a, b])| a != b);
    let shown = |text: &str| {
        if text.is_empty() {
            "auto".to_owned()
        } else {
            text.to_owned()
        }
    };
    let lines: String = differ
        .map(|(name, [a, b])| format!("  {name:<22}{:<26} {}\n", shown(&a), shown(&b)))
        .collect();
    let lines = if lines.is_empty() { "  none\n".to_owned() } else { lines };
    format!("{STRONG}Settings that differ{STRONG:#}\n{lines}\n")
}

/// Formats the parts of what each run needs, which add up to the whole.
fn parts(of: &Difference) -> String {
    let mut out = format!(
        "{STRONG}{:<24}{:>12}{:>12}{:>13}{STRONG:#}\n",
        "Where the memory differs", "A", "B", "B − A"
    );
    for (part, bytes) in &of.parts {
        let style = match part {
            Part::Live(kind) => paint::kind(*kind),
            _ => Style::new(),
        };
        out += &row(&name(*part), *bytes, style);
    }
    let [a, b] = of.phases.map(|phase| phase.label());
    out += &row("in all", of.needed, STRONG);
    let tensors = exact_difference(of.allocated);
    out + &format!("  {QUIET}A at its peak in {a}, B in {b}; tensors {tensors}{QUIET:#}\n\n")
}

fn row(label: &str, bytes: [Bytes; 2], style: Style) -> String {
    let [a, b] = bytes.map(gib);
    let more = difference(more(bytes));
    format!("  {style}{label:<22}{style:#}{a:>12}{b:>12}{more:>13}\n")
}

/// Formats a difference with all digits: `+1,234 B`.
fn exact_difference(bytes: [Bytes; 2]) -> String {
    let more = more(bytes);
    let sign = if more < 0 { "−" } else { "+" };
    format!("{sign}{}", exact(Bytes::new(more.unsigned_abs())))
}

/// Names a part of what a run needs.
pub fn name(part: Part) -> String {
    match part {
        Part::Live(kind) => kind.label().to_owned(),
        Part::Reserve => "allocator's cache".to_owned(),
        Part::Outside(outside) => outside.name().replace('-', " ").replace("cuda", "CUDA"),
    }
}

/// Formats the tensors with the largest differences, and what all others add.
fn tensors(of: &Difference, width: usize) -> String {
    let (shown, others) = of.tensors.split_at(of.tensors.len().min(SHOWN));
    let mut out = format!("{STRONG}Tensor by tensor{STRONG:#}\n");
    if shown.is_empty() {
        out += "  no tensor differs\n";
    }
    for tensor in shown {
        out += &entry(tensor, width);
    }
    if !others.is_empty() {
        let rest = difference(others.iter().map(TensorDifference::more).sum());
        let count = grouped(others.len() as u64);
        out += &format!("  {rest:>11}  {QUIET}{count} smaller differences{QUIET:#}\n");
    }
    out
}

fn entry(tensor: &TensorDifference, width: usize) -> String {
    let kind = paint::kind(tensor.kind);
    let [a, b] = tensor.held.map(|held| held.map_or("nothing".to_owned(), words));
    let place = [tensor.layer.as_str(), tensor.component.label(), tensor.kind.label()];
    let place: Vec<&str> = place.into_iter().filter(|words| !words.is_empty()).collect();
    let about = format!("{} · A: {a} · B: {b}", place.join(" · "));
    let about = wrap(&about, width.saturating_sub(INDENT)).join(&format!("\n{}", " ".repeat(INDENT)));
    format!(
        "  {:>11}  {kind}{}{kind:#}\n{}{QUIET}{about}{QUIET:#}\n",
        difference(tensor.more()),
        tensor.name,
        " ".repeat(INDENT),
    )
}

/// Formats what a run holds: `28 × [4, 2048] bf16, 0.44 GiB`.
fn words(alike: Alike) -> String {
    let form = alike.form.map(|(shape, dtype)| {
        let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
        format!(" × [{}]{NO_BREAK}{}", sides.join(&format!(",{NO_BREAK}")), dtype.name())
    });
    let form = form.unwrap_or_else(|| " tensors".to_owned());
    format!("{}{form}, {}", grouped(alike.count), gib(alike.bytes))
}
