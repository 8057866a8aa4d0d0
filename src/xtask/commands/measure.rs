//! `cargo xtask measure`: measures the published page in a browser.

use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Measures the cost of a visit to the published page in a real browser: bytes, time until the page is usable, and time
/// from a change to the painted result.
///
/// # Errors
/// If there is no browser, or the build or a step of the measurement fails.
pub fn measure() -> Result<(), Failure> {
    tools::browser()?;
    super::build(super::Build::Published)?;
    run(cargo().args([
        "run",
        "--locked",
        "--quiet",
        "-p",
        "vramscope-tests",
        "--example",
        "measure",
    ]))
}
