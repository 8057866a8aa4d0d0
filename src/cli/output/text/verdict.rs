//! Formats the verdict on whether a run fits.

use anstyle::Style;
use vramscope_engine::format::{gib, share};
use vramscope_engine::verdict::{Fit, Verdict};

use super::bar::bar;
use super::paint::{self, QUIET};
use super::wrap::wrap;
use crate::output::target::Target;
use crate::phrases::phrase;

/// Formats the verdict as a word and a sentence over a gauge; without a target, explains how to get one.
pub fn render(target: Option<&(Target, Fit)>, width: usize) -> String {
    let Some((target, fit)) = target else {
        let how = wrap(
            "For a verdict add --gpu NAME (vramscope gpus lists them) or --limit-gib X.",
            width,
        );
        return format!("{QUIET}{}{QUIET:#}\n", how.join("\n"));
    };
    let style = paint::verdict(fit.verdict);
    let word = word(fit.verdict);
    let sentence = wrap(&format!("{word}  {}", sentence(fit, target)), width).join("\n");
    let sentence = sentence.strip_prefix(word).unwrap_or_default();
    let note = note(target, width);
    format!(
        "{style}{word}{style:#} {sentence}\n{}\n{note}",
        gauge(fit, style, width)
    )
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

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "FITS",
        Verdict::Tight => "TIGHT",
        Verdict::Oom => "OOM",
    }
}

fn sentence(fit: &Fit, target: &Target) -> String {
    let (needed, room) = (gib(fit.needed), gib(fit.room));
    if let Some([low, high]) = fit.compiled {
        let (name, low, high) = (target.name(), gib(low), gib(high));
        return format!(
            "{name}: eager mode needs {needed} of {room}; as compiled steps were measured beside eager ones, {low} to {high}"
        );
    }
    let name = target.name();
    match (fit.verdict, fit.needed > fit.room) {
        (Verdict::Oom, _) => format!("{name}: needs {needed} of {room}, {} too much", gib(fit.short())),
        (_, true) => {
            let (live, short) = (gib(fit.live), gib(fit.short()));
            format!(
                "{name}: tensors take {live} of {room}; PyTorch would reserve {needed}, so it has to give back {short} of its cache"
            )
        }
        (_, false) => format!("{name}: needs {needed} of {room}, {} to spare", gib(fit.spare())),
    }
}
