//! Steps that were drawn afresh to look for faults, among them those that were once predicted badly, against measurements
//! on an H100 or an H200.

use std::fmt::Write as _;

use vramscope_tests::{kept, ledger};

use super::drawn::Compared;

const FILE: &str = "data/truth/draws.jsonl.gz";
const TABLE: &str = "tests/data/draws_vs_predicted.md";

#[test]
fn steps_that_were_drawn_afresh_are_predicted() {
    let rows = Compared::all(FILE);
    let refused: Vec<&String> = rows.iter().filter_map(|row| row.report.as_ref().err()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    for row in &rows {
        let report = row.report.as_ref().expect("none is refused");
        assert_eq!(
            report.params,
            row.row.params.unwrap_or(report.params),
            "{}",
            row.row.case
        );
    }
    let peaks: Vec<f64> = rows.iter().filter_map(|row| Some(row.errors()?[0].abs())).collect();
    let beyond = |limit: f64| peaks.iter().filter(|error| **error > limit).count();
    assert!(
        beyond(0.005) * 245 <= peaks.len(),
        "{} of {}",
        beyond(0.005),
        peaks.len()
    );
    assert_eq!(beyond(0.02), 0);
    // Most are exact to the byte.
    let exact = peaks.iter().filter(|error| **error == 0.0).count();
    assert!(exact * 4 >= peaks.len() * 3, "{exact} of {}", peaks.len());
}

/// Of the rows that were predicted badly, the tensor was found of those that were off by more than 0.45%. The rest (GIT,
/// PP-Chart2Table, LLaVA-NeXT-Video, DeepSeek-VL under TRL) still wait for theirs: their events equal a recording's, and they
/// may only get better.
#[test]
fn steps_that_were_predicted_badly_stay_mended() {
    let rows = Compared::all(FILE);
    let once_off: Vec<(&Compared, f64)> = rows
        .iter()
        .filter_map(|row| Some((row, row.row.was_off?.abs() / 100.0)))
        .collect();
    assert!(once_off.len() >= 9);
    for (row, was_off) in once_off {
        let [peak, _] = row.errors().expect("none is refused");
        // What was off is kept to two digits.
        let allowed = if was_off > 0.0045 {
            0.001
        } else {
            was_off.max(0.000_1) + 0.000_05
        };
        assert!(peak.abs() <= allowed, "{}: {peak}, was {was_off}", row.row.case);
    }
}

#[test]
fn the_kept_table_of_draws_is_todays() {
    let rows = Compared::all(FILE);
    kept::hold(TABLE, &table(&rows));
    ledger::hold("draws", rows.iter().map(Compared::run));
}

fn table(rows: &[Compared]) -> String {
    let mut out = String::from(
        "# Fresh draws against their prediction\n\nConfigurations and settings drawn by chance with seeds that nothing was \
         looked at with before, each measured alone in its process on an H100 or H200 (PyTorch 2.11, transformers \
         5.17; `tests/data/truth/configurations.py`), and steps that were once predicted badly: `was` is their error then. Made by \
         `cargo xtask table`.\n\n| peak within | steps |\n| --- | --- |\n",
    );
    let errors: Vec<f64> = rows.iter().filter_map(|row| Some(row.errors()?[0].abs())).collect();
    for (name, limit) in [
        ("0 bytes", 0.0),
        ("0.05%", 0.0005),
        ("0.25%", 0.0025),
        ("0.5%", 0.005),
        ("2%", 0.02),
    ] {
        let within = errors.iter().filter(|error| **error <= limit).count();
        let _ = writeln!(out, "| {name} | {within} of {} |", rows.len());
    }
    out += "\n| case | was | peak | reserved |\n| --- | --- | --- | --- |\n";
    for row in rows {
        let was = row.row.was_off.map_or(String::new(), |was| format!("{was:+.2}%"));
        let figures = match (row.errors(), &row.report) {
            (Some([peak, reserved]), _) => format!("{:+.4}% | {:+.2}%", peak * 100.0, reserved * 100.0),
            (None, Err(why)) => format!("refused: {why} |"),
            (None, Ok(_)) => unreachable!("a report has errors"),
        };
        let _ = writeln!(out, "| {} | {was} | {figures} |", row.words());
    }
    out
}
