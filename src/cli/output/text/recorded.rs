//! Formats the memory of a recorded training step.

use vramscope_engine::Report;
use vramscope_engine::format::{count, gib};
use vramscope_engine::recording::{About, Played, Point};
use vramscope_engine::verdict::Fit;
use vramscope_time::{Milliseconds, TimeAnswer};

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;
use super::{breakdown, ledger, phases, tensors, time, verdict, warnings};
use crate::output::target::Target;

/// Formats the whole answer: origin, verdict, peaks, time, live memory at the highest peak, the sum that leads to it,
/// and warnings.
pub fn recorded(
    played: &Played,
    target: Option<&(Target, Fit)>,
    time: Option<&(Milliseconds, TimeAnswer<'_>)>,
    width: usize,
) -> String {
    let report = &played.report;
    let sections = [
        heading(played, width),
        verdict::render(target, width),
        phases::render(report, width),
        time.map_or_else(String::new, |(ms, time)| time::render((ms, time), width)),
        breakdown::render(report, width),
        tensors::render(report, width),
        ledger::render(report, target, width),
        warnings::render(&report.warnings, width),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}

/// Formats class and size of the model, and the origin of the recording.
fn heading(played: &Played, width: usize) -> String {
    let (about, report) = (&played.about, &played.report);
    let size = match (report.params, report.trainable) {
        (all, trained) if all == trained => format!("{} parameters", count(all)),
        (all, trained) => format!("{} parameters, {} trained", count(all), count(trained)),
    };
    let model = if about.model.is_empty() {
        "recording"
    } else {
        &about.model
    };
    let mut out = format!("{STRONG}{model}{STRONG:#}  {size}\n");
    for line in wrap(&origin(about), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out
}

/// Formats number, peak, its phase and the sizes; or the error.
pub fn recorded_line(number: usize, point: &[(String, u64)], report: Result<&&Report, &String>) -> String {
    let sizes: Vec<String> = point.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let sizes = sizes.join(" · ");
    match report {
        Ok(report) => {
            let (peak, phase) = (gib(report.peak_allocated), report.peak_phase.label());
            format!("{number:>4}  {STRONG}{peak:>10}{STRONG:#} in {phase:9}  {QUIET}{sizes}{QUIET:#}\n")
        }
        Err(error) => format!("{number:>4}  error: {error}  {QUIET}{sizes}{QUIET:#}\n"),
    }
}

/// Formats each size: `batch 4 (exact for 2 to 8)`.
pub(super) fn point_words(point: &Point) -> Vec<String> {
    let sizes = point.sizes.iter().zip(&point.exact);
    sizes
        .map(|((name, value), (_, [least, most]))| format!("{name} {value} (exact for {least} to {most})"))
        .collect()
}

/// Formats the origin: `recorded without a GPU for NVIDIA H200 · step 3 · PyTorch 2.11.0 · train.py --batch 2`.
fn origin(about: &About) -> String {
    let header = &about.header;
    let mut words = vec![format!("recorded without a GPU for {}", header.gpu.name)];
    words.extend(about.at.iter().flat_map(point_words));
    words.push(format!("step {}", about.steps));
    if header.world > 1 {
        words.push(format!("rank {} of {}", header.rank, header.world));
    }
    let version = |key: &str, name: &str| header.versions.get(key).map(|version| format!("{name} {version}"));
    words.extend(version("torch", "PyTorch"));
    words.extend(version("transformers", "transformers"));
    words.extend(header.command.as_ref().map(|command| command.join(" ")));
    words.join(" · ")
}
