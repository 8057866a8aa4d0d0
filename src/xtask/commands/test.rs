use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Builds the page as it is published, then runs every test, the browser's among them. The last
/// lines printed are nextest's summary.
///
/// # Errors
/// When a tool is missing and cannot be installed, the build fails, or a test fails.
pub fn test(args: &[String]) -> Result<(), Failure> {
    tools::for_tests()?;
    super::build(super::Build::Published)?;
    run(cargo().args(["test", "--doc", "--workspace", "--locked", "--quiet"]))?;
    // The browser's tests compare the page with the command line, so its binary has to be there.
    run(cargo().args(["build", "--locked", "-p", "vramscope"]))?;
    run(cargo().args(["nextest", "run", "--workspace", "--locked"]).args(args))
}
