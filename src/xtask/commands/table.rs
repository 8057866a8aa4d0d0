use crate::Failure;
use crate::process::{cargo, run};

/// Writes the tables of measured against predicted anew; look at what changed before keeping it.
///
/// # Errors
/// When the tests that make it cannot be built or run.
pub fn table() -> Result<(), Failure> {
    let make = [
        "test",
        "-p",
        "vramscope-tests",
        "--test",
        "measured_vs_predicted",
        "--test",
        "attention",
        "--test",
        "max_batch",
        "--test",
        "trained_plans",
        "--test",
        "ready_plans",
        "--test",
        "data_parallel",
        "--test",
        "tensor_parallel",
        "--test",
        "pipeline_parallel",
        "--test",
        "measured_time",
        "--test",
        "several_time",
        "--test",
        "coverage",
        "the_kept_table",
    ];
    run(cargo().args(make).env("UPDATE_TABLE", "1"))
}
