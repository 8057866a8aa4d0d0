//! Formats checked runs as a table in Markdown, for a comment on a change.

use vramscope_engine::format::{difference, gib};
use vramscope_engine::units::Bytes;

use super::document::{Change, CheckDocument, CheckedRun};

/// Formats all runs; those that were compared with another commit show what has changed.
pub fn render(document: &CheckDocument) -> String {
    let is_compared = document.runs.iter().any(|run| run.before.is_some());
    let room = gib(Bytes::new(document.room));
    let mut out = format!("### GPU memory on {} ({room})\n\n", escaped(&document.target));
    out += match is_compared {
        true => "| run | verdict | needs | before | change |\n| --- | --- | --- | --- | --- |\n",
        false => "| run | verdict | needs |\n| --- | --- | --- |\n",
    };
    for run in &document.runs {
        let needed = run.figures.as_ref().map(|figures| gib(Bytes::new(figures.needed)));
        let mut cells = vec![
            format!("`{}`", run.run.replace('`', "'").replace('|', "\\|")),
            run.outcome.label().to_lowercase(),
            needed.unwrap_or_else(|| "–".to_owned()),
        ];
        if is_compared {
            cells.extend(changed(run.before.as_ref()));
        }
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out.push('\n');
    out.extend(document.runs.iter().map(details));
    out
}

/// What a run needed before, and the change.
fn changed(change: Option<&Change>) -> [String; 2] {
    match change {
        None => ["–".into(), "–".into()],
        Some(Change::New) => ["–".into(), "new".into()],
        Some(Change::NotKnown { .. }) => ["–".into(), "not known".into()],
        Some(Change::Known { needed, more, .. }) => [gib(Bytes::new(*needed)), difference(*more)],
    }
}

/// The sentence on a run, the parts that have changed, and what is left out.
fn details(run: &CheckedRun) -> String {
    let mut out = format!("- `{}`: {}\n", run.run.replace('`', "'"), escaped(&run.message));
    match &run.before {
        Some(Change::Known { parts, .. }) => {
            for part in parts {
                let more = i64::try_from(part.now).unwrap_or(i64::MAX) - i64::try_from(part.before).unwrap_or(i64::MAX);
                let (before, now) = (gib(Bytes::new(part.before)), gib(Bytes::new(part.now)));
                out += &format!("  - {}: {before} → {now} ({})\n", escaped(&part.part), difference(more));
            }
        }
        Some(Change::NotKnown { why }) => out += &format!("  - {}\n", escaped(why)),
        Some(Change::New) | None => {}
    }
    for left in run.figures.iter().flat_map(|figures| &figures.not_this_run) {
        let given = left
            .given
            .as_ref()
            .map_or_else(String::new, |given| format!("`{given}`: "));
        out += &format!("  - not in this figure: {given}{}\n", escaped(&left.why));
    }
    out
}

/// Text on one line, in which nothing is markup: a launch file's words may be anyone's.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '@' => {
                out.push('\\');
                out.push(char);
            }
            char => out.push(char),
        }
    }
    out
}
