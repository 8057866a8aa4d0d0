//! Formats the comparison of a recording with a memory snapshot.

use vramscope_diagnose::recorded::{AllocationSite, Comparison, Difference, Group, Stretch};
use vramscope_engine::format::{difference, gib};

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;

/// Formats the first difference of each stretch, the surplus of each side, and the peaks.
pub fn comparison(of: &Comparison, width: usize) -> String {
    let mut out = format!(
        "\n{STRONG}Recorded without a GPU against what happened on device {}{STRONG:#}\n",
        of.device
    );
    if let Some(beginning) = &of.beginning {
        out += &stretch("From the first allocation on", beginning, width);
    }
    match &of.step {
        Some(step) => out += &stretch("The last recorded step", step, width),
        None => {
            let words = "Nothing of the recorded step is in the snapshot: it is of another model or setup, or holds less than \
                         a few operations of a step.";
            out += &paragraph(words, width);
        }
    }
    if let Some(happened) = of.happened_peak {
        let (recorded, far) = (
            gib(of.recorded_peak),
            difference(happened.get() as i64 - of.recorded_peak.get() as i64),
        );
        let words = format!(
            "Peak of the step: {recorded} recorded, {} happened ({far} to what was recorded).",
            gib(happened)
        );
        out += &paragraph(&words, width);
    }
    out
}

fn stretch(title: &str, of: &Stretch, width: usize) -> String {
    let words = format!(
        "{title}: {} of {} allocations are alike, in order and to the byte.",
        of.alike, of.recorded
    );
    let mut out = paragraph(&words, width);
    if let Some(first) = &of.first {
        out += &paragraph(&first_words(first), width);
    }
    out += &groups("Only recorded", &of.only_recorded, width);
    out += &groups("Only happened", &of.only_happened, width);
    if of.parted {
        out += &paragraph(
            "The two diverge for good at some point; the rest is not compared.",
            width,
        );
    }
    out
}

fn first_words(first: &Difference) -> String {
    let made = |made: &Option<AllocationSite>| match made {
        Some(made) => format!("{} bytes by {}", made.bytes.get(), made.place),
        None => "nothing".to_owned(),
    };
    format!(
        "First difference after {} allocations, at event {} of the snapshot: recorded is {}; what happened is {}.",
        first.after,
        first.event,
        made(&first.recorded),
        made(&first.happened)
    )
}

fn groups(title: &str, of: &[Group], width: usize) -> String {
    if of.is_empty() {
        return String::new();
    }
    let mut out = format!("  {title}\n");
    for Group { made, count } in of {
        let words = format!("{count} × {} bytes: {}", made.bytes.get(), made.place);
        for line in wrap(&words, width.saturating_sub(4)) {
            out += &format!("    {QUIET}{line}{QUIET:#}\n");
        }
    }
    out
}

fn paragraph(words: &str, width: usize) -> String {
    wrap(words, width.saturating_sub(2))
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect()
}
