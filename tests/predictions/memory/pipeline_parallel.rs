//! Compares the memory of each stage of a pipeline with measurements on H200.

use vramscope_tests::measured::several::{PEAK, PHASES, Rows};
use vramscope_tests::{kept, ledger};

const TABLE: &str = "tests/data/pipeline_parallel_vs_predicted.md";

const HEAD: &str = "\
# Pipeline parallelism: measured against predicted

Every row of `truth/pipeline_parallel.jsonl`, one stage of a case each, against `vramscope estimate` of the same stage:
the third step, and the highest reserved bytes of the run. Errors are (predicted − measured) ÷ measured. Two stages ran
on two NVIDIA H200; those of four and eight ran one by one with nothing sent (`talks` in a row), as does one case of two
that is measured both ways.

Forward is what runs before the first backward: the warm-up of 1F1B, all micro-batches of GPipe. Backward is the rest.
Up to 512 bytes that the measuring program holds beside training (`base` in a row) are not taken off.
Made by `cargo xtask table`; a test compares it with today's engine.

";

fn rows() -> Rows {
    Rows::read("pipeline_parallel.jsonl", 0)
}

#[test]
fn the_peak_of_each_stage_is_the_measured_one() {
    let peak = rows().of(PEAK);
    assert_eq!(peak.count, 60);
    assert!(peak.median <= 0.0001, "median {}", peak.median);
    assert!(peak.p90 <= 0.0005, "90th percentile {}", peak.p90);
}

#[test]
fn every_phase_is_the_measured_one() {
    let rows = rows();
    for (figure, phase) in PHASES.into_iter().enumerate() {
        assert!(rows.of(figure).median <= 0.0001, "{phase}");
    }
}

#[test]
fn the_kept_table_is_todays() {
    let rows = rows();
    kept::hold(TABLE, &rows.table(HEAD));
    ledger::hold("pipeline_parallel", rows.ledger());
}
