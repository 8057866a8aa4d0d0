//! `cargo xtask table`: updates the tables of measured against predicted values.

use crate::Failure;
use crate::process::{cargo, run};

/// Rewrites the tables of measured against predicted values; review the changes before committing them.
///
/// # Errors
/// If the tests that write them cannot be built or run.
pub fn table() -> Result<(), Failure> {
    let make = [
        "test",
        "-p",
        "vramscope-tests",
        "--test",
        "predictions",
        "the_kept_table",
    ];
    run(cargo().args(make).env("UPDATE_TABLE", "1"))
}
