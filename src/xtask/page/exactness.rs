//! Publishes the measured steps of each model with what was predicted, out of the table in the repository, which a test
//! keeps as today's engine makes it.

use super::published::Published;
use crate::{Failure, root};

/// The table.
const TABLE: &str = "tests/data/measured_vs_predicted.md";
/// Sections of steps that were each measured in a process of their own, and that of fp16 steps once their scale has
/// settled.
const ALONE: [&str; 3] = ["own_process.jsonl", "configurations.jsonl.gz", "families.jsonl.gz"];
const SETTLED: &str = "settled_fp16.jsonl";

/// Writes a line for each step: model, settings, measured peak, and the error of the predicted one.
///
/// # Errors
/// If the table has no such steps.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let lines = lines(&std::fs::read_to_string(root().join(TABLE))?);
    if lines.is_empty() {
        return Err(Failure::new(format!("{TABLE} has no steps")));
    }
    page.add("exactness.txt", lines.as_bytes())
}

fn lines(table: &str) -> String {
    let mut section = "";
    let mut peak = None;
    let mut lines = String::new();
    for line in table.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            section = name;
            continue;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if cells.get(2) == Some(&"case") {
            peak = cells.iter().position(|cell| *cell == "**peak**");
            continue;
        }
        let is_told = ALONE.contains(&section) || section == SETTLED;
        let (Some(case), Some(measured), Some(error)) = (cells.get(2), cells.get(3), peak.and_then(|at| cells.get(at)))
        else {
            continue;
        };
        let named = case.strip_prefix("**").and_then(|case| case.split_once("**"));
        if let Some((model, settings)) = named.filter(|_| is_told && error.ends_with('%')) {
            // Steps that GradScaler skips are told once they are none: in the section of their own.
            let overflows = section == ALONE[0] && settings.contains("precision=amp-fp16");
            if !overflows {
                lines += &format!("{model}\t{}\t{measured}\t{error}\n", settings.trim());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_told_sections_are_kept() {
        let row = |section: &str, settings: &str| {
            format!(
                "## {section}\n\n| figure | n |\n| --- | --: |\n| peak | 1 |\n\n| | case | measured | predicted | **peak** | reserved |\n\
                 | --: | --- | --: | --: | --: | --: |\n| 0 | **gpt2** {settings} | 2.11 GiB | 2.12 GiB | +0.37% | 0.00% |\n\
                 | 1 | **gpt2** {settings} | failed | — |  |  |\n"
            )
        };
        assert_eq!(
            lines(&row("own_process.jsonl", "batch=1")),
            "gpt2\tbatch=1\t2.11 GiB\t+0.37%\n"
        );
        assert_eq!(lines(&row("held_out.jsonl", "batch=1")), "");
        assert_eq!(lines(&row("own_process.jsonl", "precision=amp-fp16")), "");
        assert_ne!(lines(&row(SETTLED, "precision=amp-fp16")), "");
    }

    #[test]
    fn the_kept_table_has_steps_of_many_models() {
        let table = std::fs::read_to_string(root().join(TABLE)).expect("the table");
        let lines = lines(&table);
        let mut models: Vec<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
        models.dedup();
        assert!(models.len() > 100 && lines.lines().count() > 2000, "{}", models.len());
    }
}
