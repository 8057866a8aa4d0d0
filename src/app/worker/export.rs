//! Exports a run as JSON or CSV.

use serde::{Deserialize, Serialize};
use vramscope_engine::report::{BreakdownNode, LiveTensor, Report};

use crate::state::{Draft, Key, world};

/// File formats that a run can be saved as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Export {
    /// The full answer, same as the command line's `--format json`.
    Json,
    /// The breakdown, one row per tensor name of a layer.
    Breakdown,
    /// All tensors live at the peak, largest first.
    Tensors,
}

impl Export {
    /// File name for a run of these entries. A table has no place for the GPUs that share the run, so its name says it.
    pub fn file_name(self, entries: &Draft) -> String {
        let shared = match world(entries) {
            1 => String::new(),
            gpus => format!("-{}-{gpus}", entries.get(Key::Strategy)),
        };
        let rest = match self {
            Self::Json => ".json",
            Self::Breakdown => "-breakdown.csv",
            Self::Tensors => "-tensors.csv",
        };
        format!("vramscope{shared}{rest}")
    }

    /// Media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Breakdown | Self::Tensors => "text/csv",
        }
    }

    /// Returns the run as CSV; `None` for the JSON export.
    pub fn table(self, report: &Report) -> Option<String> {
        match self {
            Self::Json => None,
            Self::Breakdown => Some(breakdown(&report.breakdown)),
            Self::Tensors => Some(tensors(report)),
        }
    }
}

/// Formats a value as an indented JSON document.
pub fn pretty(answer: &impl Serialize) -> String {
    // Plain data with string keys is always valid JSON.
    let text = serde_json::to_string_pretty(answer).unwrap_or_default();
    text + "\n"
}

fn breakdown(root: &BreakdownNode) -> String {
    let mut out = line(["component", "kind", "layer", "tensor", "bytes"]);
    for component in &root.children {
        for kind in &component.children {
            for layer in &kind.children {
                for tensor in &layer.children {
                    let bytes = tensor.bytes.get().to_string();
                    out += &line([&component.name, &kind.name, &layer.name, &tensor.name, &bytes]);
                }
            }
        }
    }
    out
}

fn tensors(report: &Report) -> String {
    let mut out = line(["name", "layer", "component", "kind", "shape", "dtype", "bytes", "why"]);
    let timeline = &report.timeline;
    for tensor in timeline.largest_at(timeline.peak_instant(), usize::MAX) {
        out += &tensor_line(&tensor);
    }
    out
}

fn tensor_line(tensor: &LiveTensor) -> String {
    let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
    line([
        &*tensor.name,
        &*tensor.layer,
        tensor.component.label(),
        tensor.kind.label(),
        &shape.join("x"),
        tensor.dtype.name(),
        &tensor.bytes.get().to_string(),
        &tensor.why.words(),
    ])
}

/// Formats one CSV line (RFC 4180).
fn line<'a>(fields: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quoted(field.as_ref())).collect();
    fields.join(",") + "\r\n"
}

fn quoted(field: &str) -> String {
    match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::run::Subject;

    fn report() -> Report {
        let mut draft = Draft::default();
        draft.set(Key::Model, "gpt2");
        let subject = Subject::read(&draft).expect("gpt2 is in the catalogue");
        subject.run().expect("it runs").report
    }

    fn sum(csv: &str, column: usize) -> u64 {
        let values = csv
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(column).expect("a field"));
        values.map(|field| field.parse::<u64>().expect("bytes")).sum()
    }

    #[test]
    fn both_tables_add_up_to_the_peak() {
        let report = report();
        let peak = report.peak_allocated.get();
        for (file, column) in [(Export::Breakdown, 4), (Export::Tensors, 6)] {
            let table = file.table(&report).expect("it is a table");
            assert_eq!(sum(&table, column), peak);
        }
    }

    #[test]
    fn a_file_is_named_after_the_gpus_that_share_the_run() {
        let mut entries = Draft::default();
        assert_eq!(Export::Breakdown.file_name(&entries), "vramscope-breakdown.csv");
        entries.set(Key::World, "8");
        assert_eq!(Export::Tensors.file_name(&entries), "vramscope-fsdp-8-tensors.csv");
        assert_eq!(Export::Json.file_name(&entries), "vramscope-fsdp-8.json");
    }

    #[test]
    fn a_field_with_a_comma_is_one_field() {
        assert_eq!(line(["a,b", "c", "say \"d\""]), "\"a,b\",c,\"say \"\"d\"\"\"\r\n");
    }
}
