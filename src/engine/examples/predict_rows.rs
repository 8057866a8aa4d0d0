//! Predicts rows as `tests/data/truth` holds them, of models without a name too:
//!
//! ```text
//! cargo run -p vramscope-engine --example predict_rows -- ROWS.jsonl > PREDICTED.jsonl
//! ```
//!
//! A row has a `case`, and a `config` where the catalogue does not have its model; other keys are ignored. Each gives one
//! line, `{"error": …}` if it is refused; rows without a case are passed over. `tests/data/truth/score_rows.py` holds them
//! against what was measured.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::error::Error;
use std::fs;

use serde_json::{Value, json};
use vramscope_engine::simulate::{simulate, simulate_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: predict_rows ROWS.jsonl")?;
    for line in fs::read_to_string(path)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row.get("case").is_some() {
            let predicted = predict(&row).unwrap_or_else(|error| json!({ "error": error.to_string() }));
            println!("{predicted}");
        }
    }
    Ok(())
}

fn predict(row: &Value) -> Result<Value, Box<dyn Error>> {
    let case = Case::from_json(&row["case"].to_string())?.ok_or("the case is empty")?;
    let model = match row.get("config") {
        Some(config) => Model::from_config_for(&config.to_string(), &case.setup)?,
        None => Model::from_case(&case)?,
    };
    let report = match &case.parallel {
        Some(parallel) => simulate_parallel(&model, &case.setup, parallel, Gpu::H200)?,
        None => simulate(&model, &case.setup)?,
    };
    Ok(serde_json::to_value(report.prediction(Bytes::ZERO))?)
}
