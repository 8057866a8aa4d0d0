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
use vramscope_engine::allocator::Options;
use vramscope_engine::simulate::{record_checked, reserved_over, simulate, simulate_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model, Setup};

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
    if let Some(steps) = row.get("steps") {
        return after_lengths(&case, steps);
    }
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

/// What is reserved after steps of these lengths, each a batch of its own.
fn after_lengths(case: &Case, steps: &Value) -> Result<Value, Box<dyn Error>> {
    let steps: Vec<u64> = serde_json::from_value(steps.clone())?;
    let mut lengths = steps.clone();
    lengths.sort_unstable();
    lengths.dedup();
    let order: Vec<usize> = steps.iter().filter_map(|seq| lengths.binary_search(seq).ok()).collect();
    let model = Model::from_case(case)?;
    let record = |&seq: &u64| {
        let setup = Setup {
            seq,
            ..case.setup.clone()
        };
        record_checked(&model, &setup, Gpu::H200)
    };
    let recordings = lengths.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let mut reserved = serde_json::Map::new();
    for steps in (0..)
        .map(|power| 1 << power)
        .take_while(|steps| *steps < order.len())
        .chain([order.len()])
    {
        let after = reserved_over(&recordings, &order[..steps], &Options::default())?;
        let after = after.ok_or("the tensors that last differ")?;
        reserved.insert(steps.to_string(), after.bytes.get().into());
    }
    Ok(json!({ "reserved": reserved }))
}
