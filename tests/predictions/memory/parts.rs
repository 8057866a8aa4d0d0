//! Steps of models that were changed as tools change them (parts and parameters frozen by name, DoRA, NEFTune, smoothed labels,
//! Muon, modules trained in full beside adapters), drawn at random over 22 families, against measurements on an H200.

use vramscope_tests::{kept, ledger};

use super::drawn::Compared;

const FILE: &str = "data/truth/parts.jsonl.gz";
const TEXT: &str = "Configurations of 22 families drawn by chance, with parts and parameters frozen by name, DoRA, NEFTune, smoothed labels \
    and Muon, and modules trained in full beside adapters, in a loop, under transformers' Trainer and TRL's, each measured in a process of its own on an H200 (PyTorch 2.11, \
    transformers 5.17, peft 0.21; `tests/data/truth/configurations.py`).";
const TABLE: &str = "tests/data/parts_vs_predicted.md";

#[test]
fn models_that_tools_changed_are_predicted() {
    let rows = Compared::all(FILE);
    let refused: Vec<&String> = rows.iter().filter_map(|row| row.report.as_ref().err()).collect();
    // Smoothed labels are simulated of decoders like Llama's.
    assert!(refused.iter().all(|why| why.contains("smoothed")), "{refused:?}");
    assert!(refused.len() * 50 < rows.len(), "{refused:?}");
    for row in &rows {
        let Ok(report) = &row.report else { continue };
        assert_eq!(
            (Some(report.params), Some(report.trainable)),
            (row.row.params, row.row.trainable),
            "{}",
            row.row.case
        );
    }
    let peaks: Vec<f64> = rows.iter().filter_map(|row| Some(row.errors()?[0].abs())).collect();
    let within = |limit: f64| peaks.iter().filter(|error| **error <= limit).count();
    let [all, tenth, third] = [peaks.len(), within(0.001), within(0.003)];
    assert!(tenth * 15 >= all * 14, "{tenth} of {all} within 0.1%");
    assert!(third * 60 >= all * 59, "{third} of {all} within 0.3%");
}

#[test]
fn the_kept_table_of_parts_is_todays() {
    let rows = Compared::all(FILE);
    kept::hold(TABLE, &Compared::table("Models as tools change them", TEXT, &rows));
    ledger::hold("parts", rows.iter().map(Compared::run));
}
