//! Compares the engine with measured training steps.

use vramscope_tests::measured::{
    CONFIGURATIONS_FILE, Comparison, FAMILIES_FILE, HELD_OUT_FILES, Limit, Measured, OWN_PROCESS_FILE, Quantity,
    SETTLED_FILE, Statistics, TABLE_PATH, files, limits, render_table,
};
use vramscope_tests::{kept, ledger};

const FILE: &str = "training_steps.jsonl";

/// Rows that trained, and whose fp16 loss scaler did not skip the optimizer: the engine simulates a step with an update.
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

/// The limits, with another one for under-prediction of the reserved peak.
fn limits_where_reserved(worst_under: f64) -> impl Iterator<Item = Limit> {
    limits().into_iter().map(move |limit| match limit.quantity {
        Quantity::PeakReserved => Limit {
            worst_under: Some(worst_under),
            ..limit
        },
        _ => limit,
    })
}

/// Number of rows that are exact in all of these quantities.
fn exact(rows: &[Comparison], quantities: &[Quantity]) -> usize {
    let is_exact = |row: &&Comparison| quantities.iter().all(|&quantity| row.error(quantity) == Some(0.0));
    rows.iter().filter(is_exact).count()
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

/// These measurements did not exist when the engine was written.
#[test]
fn cases_that_were_held_out_are_within_the_limits() {
    for file in HELD_OUT_FILES {
        let rows = Comparison::of_file(file);
        let excess: Vec<String> = limits().iter().flat_map(|limit| excess(limit, &rows)).collect();
        assert!(excess.is_empty(), "{file}: {}", excess.join("\n"));
    }
}

/// If GradScaler skips the optimizer in measured steps, the same case was measured further until it did not: that step
/// is what the engine simulates.
#[test]
fn a_run_whose_scaler_has_settled_is_as_simulated() {
    let settled = Comparison::of_file(SETTLED_FILE);
    let skipped: Vec<String> = [FILE, "course.jsonl"]
        .into_iter()
        .flat_map(Comparison::of_file)
        .filter(Comparison::scaler_skipped)
        .map(|c| format!("{:?}", c.row.case))
        .collect();
    assert_eq!(skipped.len(), settled.len());
    for comparison in &settled {
        assert!(!comparison.scaler_skipped());
        assert!(skipped.contains(&format!("{:?}", comparison.row.case)));
    }
    let measured = |limit: &&Limit| settled.iter().any(|c| c.error(limit.quantity).is_some());
    let limits = limits();
    let excess: Vec<String> = limits
        .iter()
        .filter(measured)
        .flat_map(|limit| excess(limit, &settled))
        .collect();
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}

/// Such rows measure the engine's first step: completely if the last measured step is the first one that the scaler did
/// not skip, and up to the optimizer if there was none.
#[test]
fn a_run_whose_scaler_skips_is_the_first_step_over_and_over() {
    let skipped = [FILE, "course.jsonl"].into_iter().flat_map(Comparison::of_file);
    for comparison in skipped.filter(Comparison::scaler_skipped) {
        let error = comparison.error_of_first_step().expect("it trained, and is predicted");
        let row = &comparison.row;
        assert!(
            error.abs() <= 0.015,
            "row {} ({}): {error:.4}",
            row.index,
            row.case.model
        );
    }
}

/// A training script normally has a process of its own. In that case most rows are exact, and the prediction, the
/// largest over three layouts of segments (`SegmentLayout`), is at most 0.2% too low.
#[test]
fn a_run_alone_in_its_process_is_predicted_to_the_byte() {
    let rows: Vec<Comparison> = Comparison::of_file(OWN_PROCESS_FILE);
    let rows: Vec<Comparison> = rows.into_iter().filter(|c| !c.scaler_skipped()).collect();
    let excess: Vec<String> = limits_where_reserved(0.002)
        .flat_map(|limit| excess(&limit, &rows))
        .collect();
    assert!(excess.is_empty(), "{}", excess.join("\n"));
    let [allocated, reserved] = [&Quantity::PHASES[..], &[Quantity::ReservedAlone]].map(|q| exact(&rows, q));
    assert_eq!(rows.len(), 408);
    assert!(
        allocated >= 370,
        "only {allocated} rows allocate to the byte what was measured"
    );
    assert!(
        reserved >= 398,
        "only {reserved} rows reserve to the byte what was measured"
    );
}

/// Random sizes and switches of every family, in models of a few blocks: nine in ten are exact in all seven marks. The
/// others have differently split blocks, or a convolution whose size was not measured and whose workspace is noticeable
/// in a model of 140 MiB.
#[test]
fn configurations_that_nobody_published_are_predicted() {
    let rows = Comparison::of_file(CONFIGURATIONS_FILE);
    let count = exact(&rows, &Quantity::PHASES);
    assert_eq!(rows.len(), 324);
    assert!(count >= 290, "only {count} rows allocate to the byte what was measured");
    let (videos, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.row.case.model == "videomae");
    let excess: Vec<String> = limits_where_reserved(0.005)
        .flat_map(|limit| excess(&limit, &others))
        .collect();
    assert!(excess.is_empty(), "{}", excess.join("\n"));
    let far = |row: &&Comparison| {
        row.error(Quantity::PeakAllocated)
            .is_none_or(|error| error.abs() > 0.006)
    };
    let [videos, others] = [videos, others].map(|rows| rows.iter().filter(far).count());
    assert!(
        videos <= 1 && others == 0,
        "{videos} video models and {others} others are off"
    );
}

/// Cases of later families that reserve more than 1% (up to 8.7%) more than predicted. KOSMOS-2.5's events are its
/// recording's one by one, and all marks but those of Qwen3-Omni are right to the byte: only the cached blocks that their
/// processes had by then differ, of 0.07 to 1.7 GiB. The backward of the one of Qwen3-Omni takes 52 MiB more than
/// predicted; its cause was not found.
const OTHER_BLOCKS: &[&str] = &[
    "kosmos-2.5",
    "minimax_m3_vl",
    "qwen2_5_omni_thinker",
    "qwen3_omni_moe_thinker",
    "mamba",
    "mamba",
    "mamba2",
    "bloom",
];

/// Families that came later, a dozen random configurations each.
#[test]
fn configurations_of_later_families_are_predicted() {
    let rows = Comparison::of_file(FAMILIES_FILE);
    // What is not simulated is refused by name.
    let refusals = rows.iter().filter_map(|row| row.outcome.as_ref().err());
    let unknown: Vec<&String> = refusals.filter(|why| !why.contains("not simulated")).collect();
    assert!(unknown.is_empty(), "not predicted: {unknown:?}");
    let count = rows.iter().filter(|row| row.outcome.is_ok()).count();
    assert!(count >= 1520, "only {count} of {} are predicted", rows.len());
    let of = |quantity| {
        let mut errors: Vec<f64> = rows.iter().filter_map(|row| row.error(quantity)).collect();
        errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        errors
    };
    let at = |errors: &[f64], percent: usize| errors[(errors.len() * percent).div_ceil(100) - 1].abs();
    for quantity in Quantity::PHASES {
        let median = at(&of(quantity), 50);
        assert!(median <= 0.001, "{}: median {median}", quantity.name());
    }
    let peak = of(Quantity::PeakAllocated);
    for (percent, limit) in [(50, 0.0005), (90, 0.005), (98, 0.02)] {
        assert!(at(&peak, percent) <= limit, "{percent}% within {}", at(&peak, percent));
    }
    let too_low = rows
        .iter()
        .filter(|row| row.error(Quantity::PeakReserved).is_some_and(|error| error < -0.01));
    let too_low: Vec<&str> = too_low.map(|row| row.row.case.model.as_str()).collect();
    assert_eq!(
        too_low, OTHER_BLOCKS,
        "cases whose reserved bytes are more than 1% too low"
    );
}

/// One test for both: each needs every prediction, which takes longer than all else in this file.
#[test]
fn parameters_are_exact_wherever_there_is_a_prediction_and_the_kept_table_is_todays() {
    let predicted: Vec<_> = files().map(|file| (file, Comparison::of_file(file))).collect();
    for (file, comparisons) in &predicted {
        for comparison in comparisons {
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
    kept::hold(TABLE_PATH, &render_table(&predicted));
    for (file, comparisons) in &predicted {
        let name = file.split('.').next().unwrap_or(file);
        ledger::hold(name, comparisons.iter().filter_map(Comparison::run));
    }
}
