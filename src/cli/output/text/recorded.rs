//! Formats the memory of a recorded training step.

use vramscope_engine::Report;
use vramscope_engine::format::{count, gib, grouped};
use vramscope_engine::recording::{About, Batches, Played, Point};
use vramscope_engine::verdict::Fit;
use vramscope_launch::OfLengths;
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
        verdict::render(target, (&[], OfLengths::default()), width),
        phases::render(report, width),
        time.map_or_else(String::new, |(ms, time)| time::render((ms, time), width)),
        breakdown::render(report, width),
        tensors::render(report, width),
        ledger::render(report, (target, None), width),
        warnings::render(&report.warnings, width),
        around(&played.about, width),
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
    let batches = about.batches.as_ref().map(batch_words);
    for text in [Some(origin(about)), batches].into_iter().flatten() {
        for line in wrap(&text, width) {
            out += &format!("{QUIET}{line}{QUIET:#}\n");
        }
    }
    out
}

/// Says which batch of the run decides, of how many that were looked at.
fn batch_words(batches: &Batches) -> String {
    let whole = batches
        .total
        .map_or_else(String::new, |total| format!(" of the run's {}", grouped(total)));
    let walked = format!("batches of {} steps{whole} were looked at", grouped(batches.walked));
    let Some(batch) = batches.steps.get(batches.decides) else {
        return walked;
    };
    let mut holds = vec![format!("{} positions", grouped(batch.positions))];
    if batch.pixels > 0 {
        holds.push(format!("images of {} numbers", grouped(batch.pixels)));
    }
    if batch.labels > 0 {
        holds.push(format!("{} labels", grouped(batch.labels)));
    }
    let least = batches.steps.iter().skip(1).map(|step| step.peak_allocated).min();
    let between = least.filter(|least| *least < batch.peak_allocated);
    let between = between.map_or_else(String::new, |least| {
        format!("; the lightest recorded one takes {}", gib(least))
    });
    format!(
        "step {} decides, with {}: {walked}{between}",
        grouped(batch.step),
        holds.join(", ")
    )
}

/// Lists what a dry run answered in place of the rest of the world.
fn around(about: &About, width: usize) -> String {
    let mut items: Vec<String> = about
        .stand_ins
        .iter()
        .map(|one| format!("{}: {}", one.what, one.how))
        .collect();
    if !about.missing.is_empty() {
        items.push(format!(
            "not installed where it was recorded, though libraries asked: {}. Where the training machine has one of them, a \
             library may compute in another way; name its packages with --packages",
            about.missing.join(", ")
        ));
    }
    if items.is_empty() {
        return String::new();
    }
    let mut out = format!("{STRONG}Answered by the dry run{STRONG:#}\n");
    for item in items {
        for (number, line) in wrap(&item, width.saturating_sub(4)).iter().enumerate() {
            out += &format!("{QUIET}{} {line}{QUIET:#}\n", if number == 0 { "  ·" } else { "   " });
        }
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
