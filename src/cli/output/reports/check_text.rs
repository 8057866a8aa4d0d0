//! Formats checked runs for people: one paragraph each.

use vramscope_engine::format::difference;

use super::document::{Change, CheckDocument, CheckedRun};
use crate::outcome::Outcome;
use crate::output::text::{QUIET, STRONG, verdict_style, wrap};
use vramscope_engine::verdict::Verdict;

/// Formats all runs.
pub fn render(document: &CheckDocument, width: usize) -> String {
    document.runs.iter().map(|run| paragraph(run, width)).collect()
}

fn paragraph(run: &CheckedRun, width: usize) -> String {
    let style = verdict_style(match run.outcome {
        Outcome::Fits => Verdict::Fits,
        Outcome::Tight | Outcome::NotKnown => Verdict::Tight,
        Outcome::OverBudget | Outcome::Oom | Outcome::Error => Verdict::Oom,
    });
    let label = run.outcome.label();
    let mut out = format!("{style}{label}{style:#}  {STRONG}{}{STRONG:#}\n", run.run);
    let mut say = |text: &str| {
        for line in text.lines().flat_map(|line| wrap(line, width.saturating_sub(4))) {
            out += &format!("    {line}\n");
        }
    };
    say(&run.message);
    if let Some(change) = &run.before {
        say(&change_words(change));
    }
    for left in run.figures.iter().flat_map(|figures| &figures.not_this_run) {
        let given = left
            .given
            .as_ref()
            .map_or_else(String::new, |given| format!("{given}: "));
        let text = format!("not in this figure: {given}{}", left.why);
        for line in wrap(&text, width.saturating_sub(4)) {
            out += &format!("    {QUIET}{line}{QUIET:#}\n");
        }
    }
    out
}

/// Says how a run has changed.
pub(super) fn change_words(change: &Change) -> String {
    match change {
        Change::New => "the base does not have this file".to_owned(),
        Change::NotKnown { why } => format!("the difference to the base is not known: {why}"),
        Change::Known { more: 0, parts, .. } if parts.is_empty() => "as much as in the base, byte for byte".to_owned(),
        Change::Known { outcome, more, .. } => {
            format!("{} beside the base, which is {}", difference(*more), outcome.label())
        }
    }
}
