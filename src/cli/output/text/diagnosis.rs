//! Formats a diagnosis as text.

use vramscope_diagnose::snapshot::Summary;
use vramscope_diagnose::{Action, Confidence, Evidence, Finding, Fixes, Piece, words};
use vramscope_engine::Report;
use vramscope_engine::format::{difference, share};
use vramscope_engine::units::Bytes;

use super::bar::bar;
use super::curve::curve;
use super::paint::{self, QUIET, STRONG};
use super::wrap::wrap;

use crate::phrases::phrase;

/// Width in columns of a finding's confidence.
const STANDING: usize = 11;
/// Largest number of changes shown.
const FIXES: usize = 8;

/// Formats the evidence, every finding with its numbers and actions, and the savings of each change of a known setup.
pub fn diagnosis(
    read: &[(&str, &Piece)],
    findings: &[Finding],
    (report, fixes): (Option<&Report>, Option<&Fixes>),
    width: usize,
) -> String {
    let mut out = heading(read, width);
    let (mut told, mut quoted) = (Vec::new(), Vec::new());
    for (_, piece) in read {
        if let Evidence::Snapshot(summary) = &piece.evidence {
            out.push('\n');
            out += &recording(summary, report, width);
        }
    }
    for finding in findings {
        out.push('\n');
        out += &render(finding, (&mut told, &mut quoted), width);
    }
    if findings.is_empty() {
        out += &format!("\n{}\n", phrase!(diagnose.nothing));
    }
    if let Some(fixes) = fixes {
        out.push('\n');
        out += &changes(fixes, width);
    }
    out
}

/// Plots the live memory of a recording, and of the simulated step of the same setup on the same scale.
fn recording(summary: &Summary, report: Option<&Report>, width: usize) -> String {
    let recorded: Vec<Bytes> = summary
        .columns
        .iter()
        .map(|column| column.iter().copied().sum())
        .collect();
    let simulated: Vec<Bytes> = report.map_or_else(Vec::new, |report| {
        let columns = report.timeline.columns(200);
        columns.iter().map(|(_, column)| column.iter().copied().sum()).collect()
    });
    let most = recorded.iter().chain(&simulated).max().copied().unwrap_or_default();
    let room = width.saturating_sub(14);
    let mut out = format!(
        "{STRONG}Live memory of device {} over its {} events{STRONG:#}\n{}",
        summary.device,
        summary.events,
        curve(&recorded, most, room, "  ")
    );
    if !simulated.is_empty() {
        out += &format!(
            "{STRONG}One simulated step of the same setup{STRONG:#}\n{}",
            curve(&simulated, most, room, "  ")
        );
    }
    out
}

/// Lists the evidence with file and line.
fn heading(read: &[(&str, &Piece)], width: usize) -> String {
    let mut out = format!("{STRONG}Read{STRONG:#}\n");
    for (file, piece) in read {
        let line = match piece.line {
            0 => String::new(),
            line => format!(", line {line}"),
        };
        let place = end_of_path(file, width.saturating_sub(6 + line.len())) + &line;
        let what = format!("{} ({})", piece.evidence.name(), about(&piece.evidence));
        for (i, line) in wrap(&format!("{what}: {place}"), width.saturating_sub(4))
            .iter()
            .enumerate()
        {
            out += &format!("  {}{QUIET}{line}{QUIET:#}\n", if i == 0 { "" } else { "  " });
        }
    }
    out
}

/// Shortens a path from the left to `room` characters, at the start of a folder's name: the person who gave it knows
/// where it is.
fn end_of_path(path: &str, room: usize) -> String {
    if path.chars().count() <= room {
        return path.to_owned();
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    let fitting = ends.into_iter().find(|end| end.chars().count() < room);
    match fitting {
        Some(end) => format!("…{end}"),
        // The file name alone is too long.
        None => {
            let chars: Vec<char> = path.chars().collect();
            let kept = chars.len() - room.saturating_sub(1).min(chars.len());
            format!("…{}", chars[kept..].iter().collect::<String>())
        }
    }
}

fn about(evidence: &Evidence) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match evidence {
        Evidence::Text(digest) => plural(digest.lines, "line"),
        Evidence::Oom(message) => match message.times {
            1 => "one".into(),
            n => format!("{n} times the same"),
        },
        Evidence::Counters(counters) => counters
            .device
            .map_or_else(|| "one device".into(), |n| format!("device {n}")),
        Evidence::Smi(smi) => {
            let readings = smi.devices.iter().map(|device| device.samples.len()).sum();
            format!(
                "{}, {}",
                plural(smi.devices.len(), "device"),
                plural(readings, "reading")
            )
        }
        Evidence::Log(log) => {
            let readings = log.series.iter().map(|series| series.points.len()).sum();
            format!("{} of memory", plural(readings, "reading"))
        }
        Evidence::Profile(profile) => plural(profile.ops.len(), "operation"),
        Evidence::Snapshot(summary) => format!(
            "device {}, {}",
            summary.device,
            plural(summary.events as usize, "event")
        ),
    }
}

/// Formats a finding; actions of earlier findings are not repeated.
fn render(finding: &Finding, (told, quoted): (&mut Vec<Action>, &mut Vec<String>), width: usize) -> String {
    let style = paint::confidence(finding.confidence);
    let label = finding.confidence.label().to_uppercase();
    let row = format!("course {}", finding.row());
    let room = width.saturating_sub(STANDING);
    let english = words::Phrases::english();
    let title = english.text_of(&words::title(&finding.cause, finding.confidence));
    let indent = " ".repeat(STANDING);
    let mut out = String::new();
    for (i, line) in wrap(&title, room).iter().enumerate() {
        let head = if i == 0 {
            format!("{style}{label:STANDING$}{style:#}")
        } else {
            indent.clone()
        };
        out += &format!("{head}{STRONG}{line}{STRONG:#}\n");
    }
    if let Some((part, whole)) = finding.cause.gauge() {
        let (filled, blanks) = bar(part, whole, room.saturating_sub(6));
        let track = "░".repeat(blanks.len());
        out += &format!(
            "{indent}{style}{filled}{style:#}{QUIET}{track}{QUIET:#}{:>6}\n",
            share(part, whole)
        );
    }
    for line in words::evidence(&finding.cause) {
        out += &lines(&english.text_of(&line), &indent, "", room);
    }
    for quote in &finding.quotes {
        // A line that shows several things is quoted once.
        if quoted.contains(&quote.text) {
            continue;
        }
        quoted.push(quote.text.clone());
        for line in wrap(&format!("{}: {}", quote.line, quote.text), room.saturating_sub(2)) {
            out += &format!("{indent}{QUIET}│ {line}{QUIET:#}\n");
        }
    }
    if finding.confidence != Confidence::RuledOut {
        for (_, said) in &finding.advice {
            out += &lines(&english.text_of(said), &indent, "→ ", room);
        }
        for step in finding.steps.iter().filter(|step| !told.contains(step)) {
            out += &lines(&english.text_of(&words::step(*step)), &indent, "→ ", room);
        }
        told.extend(&finding.steps);
    }
    out += &format!("{indent}{QUIET}{row}{QUIET:#}\n");
    out
}

fn lines(text: &str, indent: &str, mark: &str, room: usize) -> String {
    let blank = " ".repeat(mark.chars().count());
    let wrapped = wrap(text, room.saturating_sub(blank.len()));
    let line = |(i, line): (usize, &String)| format!("{indent}{}{line}\n", if i == 0 { mark } else { &blank });
    wrapped.iter().enumerate().map(line).collect()
}

/// Formats the savings of single changes, the largest first.
fn changes(fixes: &Fixes, width: usize) -> String {
    let mut out = format!("{STRONG}{} (simulated){STRONG:#}\n", phrase!(diagnose.fixes));
    if fixes.0.is_empty() {
        out += &format!("  {}\n", phrase!(diagnose.no_fixes));
    }
    let most = fixes.0.first().map_or(0, |fix| fix.effect.difference.unsigned_abs());
    for fix in fixes.0.iter().take(FIXES) {
        let saved = Bytes::new(fix.effect.difference.unsigned_abs());
        let (filled, blanks) = bar(saved, Bytes::new(most), width.saturating_sub(54).max(8));
        let verdict = fix.effect.verdict.map_or("", |verdict| verdict.name());
        let change = format!("{} {}", fix.change.setting().key(), fix.change.text());
        let line = format!(
            "  {change:24}{filled}{blanks} {:>11}  {verdict}",
            difference(fix.effect.difference)
        );
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_shown_from_a_folder_on() {
        assert_eq!(end_of_path("logs/train.log", 20), "logs/train.log");
        assert_eq!(
            end_of_path("/a/very/long/way/to/logs/train.log", 20),
            "…/to/logs/train.log"
        );
        assert_eq!(end_of_path("/a folder/日本語/logs/train.log", 18), "…/logs/train.log");
        assert_eq!(end_of_path("a-name-that-is-longer-than-a-line.log", 10), "…-line.log");
    }
}
