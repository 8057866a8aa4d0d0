//! `cargo xtask shots`: takes screenshots of the page.

use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Takes screenshots of every page at two widths, in both themes and three languages, into `target/shots`.
///
/// # Errors
/// If there is no browser or no built page.
pub fn shots() -> Result<(), Failure> {
    tools::browser()?;
    run(cargo().args([
        "run",
        "--locked",
        "--quiet",
        "-p",
        "vramscope-tests",
        "--example",
        "shots",
    ]))
}
