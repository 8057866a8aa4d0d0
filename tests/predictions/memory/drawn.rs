//! Steps that were drawn at random, beside their predictions.

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report, simulate};
use vramscope_tests::{ledger, rows};

/// A measured run.
#[derive(Debug, Deserialize)]
pub struct Row {
    pub case: Value,
    /// Configuration of a model without a name.
    pub config: Option<Value>,
    pub params: Option<u64>,
    /// Trained parameters, where they were counted.
    pub trainable: Option<u64>,
    pub peak_steady: u64,
    pub reserved_peak: u64,
    /// Error of the peak in percent before its cause was found; `None` for a draw that was predicted well at once.
    pub was_off: Option<f64>,
}

/// A run and its prediction, or the reason for none.
pub struct Compared {
    pub row: Row,
    pub report: Result<Report, String>,
}

impl Compared {
    pub fn all(file: &str) -> Vec<Self> {
        let rows: Vec<Row> = rows(file);
        rows.into_iter()
            .map(|row| Self {
                report: predict(&row),
                row,
            })
            .collect()
    }

    /// The run as the ledger has it.
    pub fn run(&self) -> ledger::Run {
        let row = &self.row;
        ledger::Run::of(&row.case, (row.peak_steady, row.reserved_peak), self.report.as_ref())
    }

    /// The case in words, for a row of a Markdown table.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.row.case.as_object().into_iter().flatten().map(word).collect();
        words.join(" ").replace('|', "\\|")
    }

    /// Relative errors of peak and reserved bytes.
    pub fn errors(&self) -> Option<[f64; 2]> {
        let report = self.report.as_ref().ok()?;
        let pairs = [
            (report.peak_allocated, self.row.peak_steady),
            (report.peak_reserved, self.row.reserved_peak),
        ];
        Some(pairs.map(|(predicted, measured)| predicted.get() as f64 / measured as f64 - 1.0))
    }

    /// A table of runs beside their predictions, under this text.
    pub fn table(title: &str, text: &str, rows: &[Self]) -> String {
        let errors: Vec<[f64; 2]> = rows.iter().filter_map(Self::errors).collect();
        let within = |at: usize, limit: f64| errors.iter().filter(|error| error[at].abs() <= limit).count();
        let mut out = format!(
            "# {title}, against their prediction\n\n{text} Made by `cargo xtask table`.\n\n{} runs, {} predicted: of these the peak \
             is within 0.1% in {} and within 0.3% in {}; reserved within 3% in {}.\n\n\
             | case | peak GiB | peak | reserved |\n|---|---:|---:|---:|\n",
            rows.len(),
            errors.len(),
            within(0, 0.001),
            within(0, 0.003),
            within(1, 0.03),
        );
        for row in rows {
            let case = row.words();
            let gib = row.row.peak_steady as f64 / (1_u64 << 30) as f64;
            let errors = row.errors().map_or_else(
                || "refused |".to_owned(),
                |[peak, reserved]| format!("{:+.3}% | {:+.2}%", peak * 100.0, reserved * 100.0),
            );
            out += &format!("| {case} | {gib:.3} | {errors} |\n");
        }
        out
    }
}

fn predict(row: &Row) -> Result<Report, String> {
    let case = Case::from_json(&row.case.to_string()).map_err(|error| error.to_string())?;
    let case = case.ok_or("an empty case")?;
    let model = match &row.config {
        Some(config) => Model::from_config_for(&config.to_string(), &case.setup),
        None => Model::from_case(&case),
    };
    let model = model.map_err(|error| error.to_string())?;
    match &case.parallel {
        Some(parallel) => simulate_parallel(&model, &case.setup, parallel, Gpu::H200),
        None => simulate(&model, &case.setup),
    }
    .map_err(|error| error.to_string())
}

fn word((key, value): (&String, &Value)) -> String {
    match value.as_str() {
        Some(text) if key == "model" => text.to_owned(),
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    }
}
