//! What PyTorch reserves after steps of many lengths, on an H200 in a process of its own for each run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use vramscope_engine::allocator::Options;
use vramscope_engine::simulate::{record_checked, reserved_over};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Setup};
use vramscope_tests::rows;

/// A run: its case, the length of each step, and the highest reserved bytes after some of them.
#[derive(Debug, Deserialize)]
struct Row {
    case: Value,
    steps: Vec<u64>,
    reserved: BTreeMap<usize, u64>,
    /// Times that the allocator gave its cache back, since others used the card too.
    retries: u64,
}

#[test]
fn every_step_of_another_length_reserves_what_was_measured() {
    let rows: Vec<Row> = rows("data/truth/lengths.jsonl");
    assert_eq!(rows.len(), 5);
    for row in rows {
        let case = Case::from_json(&row.case.to_string()).unwrap().unwrap();
        let model = Model::from_case(&case).unwrap();
        let mut lengths = row.steps.clone();
        lengths.sort_unstable();
        lengths.dedup();
        let recordings: Vec<_> = lengths
            .iter()
            .map(|&seq| {
                let setup = Setup {
                    seq,
                    ..case.setup.clone()
                };
                record_checked(&model, &setup, Gpu::H200).unwrap()
            })
            .collect();
        let order: Vec<usize> = row
            .steps
            .iter()
            .map(|seq| lengths.binary_search(seq).unwrap())
            .collect();
        for (&steps, &measured) in &row.reserved {
            let after = reserved_over(&recordings, &order[..steps], &Options::default()).unwrap();
            let ours = after.unwrap().bytes.get();
            // A cache that was given back once is made anew elsewhere.
            let near = if row.retries == 0 { 0 } else { 4 << 20 };
            assert!(
                ours.abs_diff(measured) <= near,
                "{}: {ours} for {measured} bytes after {steps} steps",
                row.case
            );
        }
    }
}
