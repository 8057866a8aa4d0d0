//! Formats checked runs as SARIF 2.1.0, the exchange format of findings (OASIS standard, sections 3.13 to 3.34), which hosts
//! of code show beside the file.

use serde::Serialize;
use serde_json::{Value, json};

use super::document::{Change, CheckDocument, CheckedRun};
use crate::outcome::Outcome;

/// A log: one run of the tool, with its findings.
#[derive(Debug, Serialize)]
pub struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Value; 1],
}

/// Outcomes that are findings, and how bad they are: a run that fits is none.
const RULES: [(Outcome, &str, &str); 5] = [
    (Outcome::Tight, "warning", "Less than 5% of the card stays free"),
    (Outcome::NotKnown, "warning", "Nothing says whether the run fits"),
    (Outcome::OverBudget, "error", "The run takes more than the budget"),
    (Outcome::Oom, "error", "The run runs out of GPU memory"),
    (Outcome::Error, "error", "The run cannot be read"),
];

/// Formats all runs.
pub fn render(document: &CheckDocument) -> Log {
    let rules: Vec<Value> = RULES.iter().map(|rule| self::rule(*rule)).collect();
    let results: Vec<Value> = document.runs.iter().filter_map(result).collect();
    let driver = json!({
        "name": "vramscope",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [json!({"tool": {"driver": driver}, "results": results})],
    }
}

fn rule((outcome, level, about): (Outcome, &str, &str)) -> Value {
    json!({
        "id": outcome.word(),
        "shortDescription": {"text": about},
        "defaultConfiguration": {"level": level},
    })
}

/// A finding; `None` for a run that fits.
fn result(run: &CheckedRun) -> Option<Value> {
    let index = RULES.iter().position(|(outcome, ..)| *outcome == run.outcome)?;
    let (outcome, level, _) = RULES[index];
    let mut message = run.message.clone();
    if let Some(change @ Change::Known { .. }) = &run.before {
        message += &format!("; {}", super::check_text::change_words(change));
    }
    let mut result = json!({
        "ruleId": outcome.word(),
        "ruleIndex": index,
        "level": level,
        "message": {"text": message},
    });
    // A run that is no file has no place.
    if std::path::Path::new(&run.run).is_file() {
        let uri = run.run.replace('\\', "/").replace(' ', "%20");
        result["locations"] = json!([{"physicalLocation": {"artifactLocation": {"uri": uri}}}]);
    }
    Some(result)
}
