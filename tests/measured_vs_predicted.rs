//! The engine against measured training steps.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::path::Path;

use vramscope_tests::measured::{Comparison, Limit, Measured, Statistics, TABLE_PATH, limits, render_table};

const FILE: &str = "training_steps.jsonl";

/// Rows that trained.
fn promised() -> Vec<Comparison> {
    let rows = Comparison::of_file(FILE).into_iter();
    let trained = rows.filter(|c| matches!(c.row.measured, Measured::Trained(_)));
    trained.filter(|c| !c.scaler_skipped()).collect()
}

fn excess(limit: &Limit, rows: &[Comparison]) -> Vec<String> {
    let errors: Vec<f64> = rows.iter().filter_map(|c| c.error(limit.quantity)).collect();
    let found = Statistics::of(&errors).expect("the limit holds for some rows");
    let pairs = [
        ("median", limit.median, found.median),
        ("90th percentile", limit.p90, found.p90),
        ("maximum", limit.max, found.max),
        ("worst under-prediction", limit.worst_under, found.worst_under),
    ];
    let passed = pairs
        .into_iter()
        .filter_map(|(name, allowed, found)| Some((name, allowed?, found)));
    let passed = passed.filter(|(_, allowed, found)| found > allowed);
    let name = limit.quantity.name();
    passed
        .map(|(what, allowed, found)| format!("{name}: {what} {found:.4} > {allowed}"))
        .collect()
}

#[test]
fn every_row_is_predicted() {
    for Comparison { row, outcome } in promised() {
        if let Err(why) = outcome {
            panic!(
                "row {} ({} {}) is not predicted: {why}",
                row.index, row.case.model, row.options
            );
        }
    }
}

#[test]
fn errors_are_within_the_limits() {
    let rows = promised();
    let excess: Vec<String> = limits().iter().flat_map(|limit| excess(limit, &rows)).collect();
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}

#[test]
fn parameters_are_exact_wherever_there_is_a_prediction() {
    for file in [FILE, "course.jsonl"] {
        for comparison in Comparison::of_file(file) {
            let row = &comparison.row;
            let exact = comparison.parameters_are_exact();
            assert_ne!(
                exact,
                Some(false),
                "{file} row {}: {} {}",
                row.index,
                row.case.model,
                row.options
            );
        }
    }
}

/// `cargo xtask table` sets it: the table is then written, not compared.
const UPDATE: &str = "UPDATE_TABLE";

#[test]
fn the_kept_table_is_todays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TABLE_PATH);
    let today = render_table();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &today).expect("the repository can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let changed = kept.lines().zip(today.lines()).find(|(kept, today)| kept != today);
    assert!(
        kept == today,
        "{TABLE_PATH} is not today's: run `cargo xtask table` and look at the difference. First: {changed:#?}"
    );
}
