//! Compares the memory of one of several GPUs under tensor parallelism with measurements on two and four H200.

use vramscope_tests::measured::several::{PEAK, PHASES, Rows};
use vramscope_tests::{kept, ledger};

const TABLE: &str = "tests/data/tensor_parallel_vs_predicted.md";

const HEAD: &str = "\
# Tensor parallelism: measured against predicted

Every case of `truth/tensor_parallel.jsonl`, one of two or four NVIDIA H200, against `vramscope estimate` of the same
case: the third step, and the highest reserved bytes of the run. Errors are (predicted − measured) ÷ measured.

512 bytes that the measuring program holds beside training (`base` in a row) are left out. The reserved bytes of the
run are those of loading too, which can leave more reserved than training takes: `reserved_after_model` in a row.
Made by `cargo xtask table`; a test compares it with today's engine.

";

/// Bytes that the measuring program holds.
const BASE: u64 = 512;

fn rows() -> Rows {
    Rows::read("tensor_parallel.jsonl", BASE)
}

#[test]
fn the_peak_of_each_gpu_is_the_measured_one() {
    let peak = rows().of(PEAK);
    assert_eq!(peak.count, 37);
    assert!(peak.median <= 0.002, "median {}", peak.median);
    assert!(peak.p90 <= 0.006, "90th percentile {}", peak.p90);
}

#[test]
fn every_phase_is_the_measured_one() {
    let rows = rows();
    for (figure, phase) in PHASES.into_iter().enumerate() {
        assert!(rows.of(figure).median <= 0.002, "{phase}");
    }
}

#[test]
fn the_kept_table_is_todays() {
    let rows = rows();
    kept::hold(TABLE, &rows.table(HEAD));
    ledger::hold("tensor_parallel", rows.ledger());
}
