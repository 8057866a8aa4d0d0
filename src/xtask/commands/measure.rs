use crate::process::{cargo, run};
use crate::{Failure, tools};

/// What a visit to the page as it is published costs: bytes, time until it is usable, and time from
/// a change to its painted result, in a real browser.
///
/// # Errors
/// When there is no browser, or the build or a step of the measurement fails.
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
