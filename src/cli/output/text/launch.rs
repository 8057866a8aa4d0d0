//! Formats the outcome for each line of a launch.

use vramscope_launch::{Fate, Launch, Line, Resolved};

use super::paint::{QUIET, STRONG};
use super::wrap::wrap;

/// Formats the tool, the lines that count, the defaults taken, and what is open.
pub fn render(launch: &Launch, resolved: &Resolved, width: usize) -> String {
    let mut out = format!("{STRONG}Launch{STRONG:#}  {}\n", launch.tool.name());
    let with = |is: fn(&Fate) -> bool| launch.lines.iter().filter(move |line| is(&line.fate));
    let simulated: Vec<String> = with(|fate| *fate == Fate::Simulated).map(given).collect();
    let defaults: Vec<String> = launch
        .defaults
        .iter()
        .map(|default| format!("{}: {}", default.key, default.value))
        .collect();
    let keys = |is: fn(&Fate) -> bool| -> Vec<String> { with(is).map(|line| line.entry.key.clone()).collect() };
    for (title, items) in [
        ("simulated", simulated),
        ("defaults of the tool", defaults),
        (
            "no effect on the step's memory",
            keys(|fate| matches!(fate, Fate::NoEffect(_) | Fate::Off(_))),
        ),
        ("said again later", keys(|fate| *fate == Fate::Replaced)),
    ] {
        out += &listed(title, &items, width);
    }
    for (title, items) in [
        ("not simulated", &resolved.not_simulated),
        ("taken for granted", &resolved.assumed),
        ("not told", &resolved.missing),
    ] {
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        out += &one_by_one(title, &items, width);
    }
    let hints: Vec<String> = launch.lines.iter().filter_map(hint).collect();
    out + &one_by_one("perhaps", &hints, width) + "\n"
}

fn given(line: &Line) -> String {
    format!("{}: {}", line.entry.key, line.entry.text())
}

fn hint(line: &Line) -> Option<String> {
    match line.fate {
        Fate::Unknown(Some(similar)) => Some(format!("{}: {} is {similar}", line.entry.place(), line.entry.key)),
        _ => None,
    }
}

/// Formats items as one paragraph behind a title.
fn listed(title: &str, items: &[String], width: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let lines = wrap(&items.join(" · "), width.saturating_sub(4));
    format!(
        "  {QUIET}{title} ({}){QUIET:#}\n    {}\n",
        items.len(),
        lines.join("\n    ")
    )
}

/// Formats items on lines of their own below a title.
fn one_by_one(title: &str, items: &[String], width: usize) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut out = format!("  {QUIET}{title} ({}){QUIET:#}\n", items.len());
    for item in items {
        out += &format!("    {}\n", wrap(item, width.saturating_sub(6)).join("\n      "));
    }
    out
}
