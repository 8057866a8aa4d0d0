//! Compares the memory of one of two GPUs under DDP, ZeRO-1 and FSDP2 with measurements on two H200.

use vramscope_tests::measured::several::{PEAK, PHASES, RESERVED, Rows};
use vramscope_tests::{kept, ledger};

const TABLE: &str = "tests/data/data_parallel_vs_predicted.md";

const HEAD: &str = "\
# Two GPUs: measured against predicted

Every case of `truth/data_parallel.jsonl`, one of two NVIDIA H200, against `vramscope estimate` of the same case: the
third step, and the highest reserved bytes of the run. Errors are (predicted − measured) ÷ measured.

`data_parallel.py` times collectives before the cases, and its last two tensors, 1 GiB and 512 MiB, stay alive
through all of them (`x` and `y` in `main`). They are no part of training: the measured figures are without them.

In one row the peak is 7.5% higher than predicted: two sets of buckets live there in the third step, the one that the
second step cut anew and the one before, for as long as a work of NCCL holds it. In the same row of another model and
in all other rows it is gone by then. The reserved bytes of DDP are predicted without that second set.
Made by `cargo xtask table`; a test compares it with today's engine.

";

/// Bytes of the tensors that the measuring program holds.
const COLLECTIVES: u64 = (1 << 30) + (1 << 29);

fn rows() -> Rows {
    Rows::read("data_parallel.jsonl", COLLECTIVES)
}

#[test]
fn the_peak_of_each_gpu_is_the_measured_one() {
    let peak = rows().of(PEAK);
    assert_eq!(peak.count, 13);
    assert!(peak.median <= 0.0005, "median {}", peak.median);
    assert!(peak.p90 <= 0.005, "90th percentile {}", peak.p90);
}

#[test]
fn every_phase_is_the_measured_one() {
    let rows = rows();
    for (figure, phase) in PHASES.into_iter().enumerate() {
        assert!(rows.of(figure).median <= 0.001, "{phase}");
    }
}

#[test]
fn what_fsdp_reserves_is_what_was_measured() {
    let mut rows = rows();
    rows.rows.retain(|row| {
        let parallel = row.case.parallel.unwrap_or_default();
        parallel.strategy.shards_parameters()
    });
    let reserved = rows.of(RESERVED);
    assert_eq!(reserved.count, 7);
    assert!(reserved.max < 0.01, "{reserved:?}");
}

#[test]
fn the_kept_table_is_todays() {
    let rows = rows();
    kept::hold(TABLE, &rows.table(HEAD));
    ledger::hold("data_parallel", rows.ledger());
}
