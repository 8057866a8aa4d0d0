//! Formats the verdict on whether a run fits.

use anstyle::Style;
use vramscope_engine::format::{gib, share};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Verdict};
use vramscope_launch::{Direction, Grade, LeftOut, OfLengths};

use super::bar::bar;
use super::paint::{self, QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;
use crate::phrases::phrase;

/// Formats the verdict as a word and a sentence over a gauge, and what the figure leaves out of the run; without a target,
/// explains how to get one.
pub fn render(target: Option<&(Target, Fit)>, (left_out, lengths): (&[LeftOut], OfLengths), width: usize) -> String {
    let Some((target, fit)) = target else {
        let how = wrap(
            "For a verdict add --gpu NAME (vramscope gpus lists them) or --limit-gib X.",
            width,
        );
        return format!(
            "{}{QUIET}{}{QUIET:#}\n",
            lacking((left_out, lengths), width),
            how.join("\n")
        );
    };
    let grade = Grade::of(left_out).with(lengths);
    let (word, style) = word(fit.verdict, grade);
    let sentence = wrap(&format!("{word}  {}", sentence(fit, target, grade)), width).join("\n");
    let sentence = sentence.strip_prefix(word).unwrap_or_default();
    let note = note(target, width);
    format!(
        "{style}{word}{style:#} {sentence}\n{}\n{}{}{note}",
        gauge(fit, style, width),
        that_fits(lengths, target, width),
        lacking((left_out, lengths), width)
    )
}

/// Lists what the figure leaves out of the run, and on which side of it the run lies.
fn lacking((left_out, lengths): (&[LeftOut], OfLengths), width: usize) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let side = match (Grade::of(left_out), lengths.least) {
        (Grade::AtMost, Some(least)) => format!(
            "the run needs between {} (samples of one position) and this",
            gib(Bytes::new(least.peak_reserved))
        ),
        (Grade::AtMost, None) => "the run needs at most this".to_owned(),
        (Grade::AtLeast, _) => "the run needs at least this".to_owned(),
        _ => "the run may need less or more; a dry run tells (vramscope dry-run)".to_owned(),
    };
    let mut out = format!("{STRONG}Not in this figure{STRONG:#}  {QUIET}{side}{QUIET:#}\n");
    for left in left_out {
        let given = left
            .given
            .as_ref()
            .map_or_else(String::new, |given| format!("{given}: "));
        let side = match left.direction {
            Direction::AtMost => " (at most)",
            Direction::AtLeast => " (at least)",
            Direction::Unknown | Direction::AnotherRun => "",
        };
        let item = format!("{given}{}{side}", left.why);
        out += &format!("    {}\n", wrap(&item, width.saturating_sub(6)).join("\n      "));
    }
    out
}

/// The longest samples with which a run fits that does not with the longest that it may have.
fn that_fits(lengths: OfLengths, target: &Target, width: usize) -> String {
    let Some(positions) = lengths.length_that_fits else {
        return String::new();
    };
    let sentence = format!("With samples of up to {positions} positions it fits {}.", target.name());
    format!("{}\n", wrap(&sentence, width).join("\n"))
}

/// Says that a card is not driven by CUDA, whose steps are simulated.
fn note(target: &Target, width: usize) -> String {
    match target {
        Target::Card(card) if !card.vendor.is_driven_by_cuda() => {
            let sentence = phrase!(plan.not_cuda, maker = card.vendor.name());
            format!("{QUIET}{}{QUIET:#}\n", wrap(&sentence, width).join("\n"))
        }
        _ => String::new(),
    }
}

/// Draws the share of the room that is needed; the bar ends at 100%, the number may exceed it.
fn gauge(fit: &Fit, style: Style, width: usize) -> String {
    let (filled, blanks) = bar(fit.needed, fit.room, width.saturating_sub(6));
    let track = "░".repeat(blanks.len());
    format!(
        "{style}{filled}{style:#}{QUIET}{track}{QUIET:#}{:>6}",
        share(fit.needed, fit.room)
    )
}

/// The verdict's word and its style. Of a figure that leaves something out, it is known where the figure is on the safe
/// side, and green is for whole runs alone.
fn word(verdict: Verdict, grade: Grade) -> (&'static str, Style) {
    match grade.settles(verdict) {
        Some(Verdict::Fits) if grade != Grade::Exact => ("FITS", paint::verdict(Verdict::Tight)),
        Some(Verdict::Fits) => ("FITS", paint::verdict(verdict)),
        Some(Verdict::Tight) => ("TIGHT", paint::verdict(verdict)),
        Some(Verdict::Oom) => ("OOM", paint::verdict(verdict)),
        None => ("NOT KNOWN", paint::verdict(Verdict::Tight)),
    }
}

/// Says what the run needs of the room that it is given.
pub fn sentence(fit: &Fit, target: &Target, grade: Grade) -> String {
    let (needed, room) = (gib(fit.needed), gib(fit.room));
    let needs = match grade {
        Grade::Exact => "needs",
        Grade::AtMost | Grade::Between => "needs at most",
        Grade::AtLeast => "needs at least",
        Grade::DryRun => "what is simulated of it needs",
    };
    if let Some([low, high]) = fit.compiled {
        let (name, low, high) = (target.name(), gib(low), gib(high));
        return format!(
            "{name}: eager mode needs {needed} of {room}; as compiled steps were measured beside eager ones, {low} to {high}"
        );
    }
    let name = target.name();
    match (fit.verdict, fit.needed > fit.room) {
        (Verdict::Oom, _) => format!("{name}: {needs} {needed} of {room}, {} too much", gib(fit.short())),
        (_, true) => {
            let (live, short) = (gib(fit.live), gib(fit.short()));
            format!(
                "{name}: tensors take {live} of {room}; PyTorch would reserve {needed}, so it has to give back {short} of its cache"
            )
        }
        (_, false) => format!("{name}: {needs} {needed} of {room}, {} to spare", gib(fit.spare())),
    }
}
