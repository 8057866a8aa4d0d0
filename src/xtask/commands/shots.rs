use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Draws every built page at two widths, in both themes and three languages, into `target/shots`.
///
/// # Errors
/// When there is no browser or no built page.
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
