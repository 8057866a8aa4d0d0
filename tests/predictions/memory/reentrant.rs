//! Steps with reentrant checkpoints (`use_reentrant=True`), against measurements on an H200: a loop of one's own and
//! transformers' Trainer, each family that checkpoints.

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::simulate::simulate_on;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};
use vramscope_tests::rows;

const FILE: &str = "data/truth/reentrant.jsonl.gz";

/// A run, and what it took, or the error with which PyTorch stopped.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    config: Value,
    peak: Option<u64>,
    error: Option<String>,
}

impl Row {
    fn predict(&self) -> Result<u64, String> {
        let case = Case::from_json(&self.case.to_string()).map_err(|error| error.to_string())?;
        let setup = case.ok_or("an empty case")?.setup;
        let model = Model::from_config_for(&self.config.to_string(), &setup).map_err(|error| error.to_string())?;
        let report = simulate_on(&model, &setup, Gpu::H200).map_err(|error| error.to_string())?;
        Ok(report.steady.peak().get())
    }
}

/// Of 249 runs 218 are exact and 244 within 0.1%. In the others Megatron-BERT, whose peak lies in the update of a bf16 model,
/// is 2% low, and what a block's backward frees at its end is off by a tensor.
#[test]
fn peaks_are_predicted() {
    let rows: Vec<Row> = rows(FILE);
    let errors: Vec<f64> = rows
        .iter()
        .filter_map(|row| {
            let measured = row.peak?;
            let predicted = row.predict().unwrap_or_else(|error| panic!("{error}: {}", row.case));
            Some(predicted as f64 / measured as f64 - 1.0)
        })
        .collect();
    let within = |limit: f64| errors.iter().filter(|error| error.abs() <= limit).count();
    let (exact, near, all) = (within(0.0), within(0.001), errors.len());
    assert!(
        exact >= 218 && near >= 240 && all >= 249,
        "{exact} exact, {near} within 0.1% of {all}"
    );
    assert!(within(0.021) == all, "{errors:?}");
}

/// What PyTorch refuses is refused in its words.
#[test]
fn what_stops_is_said() {
    let rows: Vec<Row> = rows(FILE);
    let mut stopped = rows
        .iter()
        .filter_map(|row| Some((row, row.error.as_ref()?)))
        .peekable();
    assert!(stopped.peek().is_some());
    for (row, error) in stopped {
        let said = row.predict().expect_err("it stops");
        let words = "Trying to backward through the graph a second time";
        assert!(error.contains(words) && said.contains(words), "{said}: {}", row.case);
    }
}
