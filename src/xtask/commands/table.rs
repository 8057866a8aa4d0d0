//! `cargo xtask table`: updates the tables of measured against predicted values.

use crate::Failure;
use crate::process::{cargo, run};

/// Rewrites the tables of measured against predicted values, and the ledger; review the changes before committing them.
///
/// # Errors
/// If the tests that write them cannot be built or run.
pub fn table() -> Result<(), Failure> {
    // The ledger's page is made of what the others keep.
    for tests in ["the_kept_table", "the_page_of_the_ledger"] {
        let make = ["test", "-p", "vramscope-tests", "--test", "predictions", tests];
        run(cargo().args(make).env("UPDATE_TABLE", "1"))?;
    }
    Ok(())
}
