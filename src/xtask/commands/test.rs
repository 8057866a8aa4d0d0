//! `cargo xtask test`: builds the page and runs all tests.

use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Builds the published page, then runs every test, including those in the browser. The last lines printed are
/// nextest's summary.
///
/// # Errors
/// If a tool is missing and cannot be installed, the build fails, or a test fails.
pub fn test(args: &[String]) -> Result<(), Failure> {
    tools::for_tests()?;
    tools::exports()?;
    super::build(super::Build::Published)?;
    run(cargo().args(["test", "--doc", "--workspace", "--locked", "--quiet"]))?;
    // Tests' programs and the command line, which plays what the recorder's tests record and which the browser tests
    // compare the page with.
    run(cargo().args(["nextest", "run", "--workspace", "--locked", "--no-run"]))?;
    super::recorder::tests()?;
    portable()?;
    run(cargo().args(["nextest", "run", "--workspace", "--locked"]).args(args))
}

/// Tests the portable backend, which normal builds leave out, on lavapipe or a GPU: its kernels, and the path of its
/// measurements to the page.
fn portable() -> Result<(), Failure> {
    if !tools::vulkan()? {
        eprintln!("no Vulkan is installed: the portable backend's kernels are not compared");
        return Ok(());
    }
    // Name the whole workspace, so that dependencies keep the features that the other tests compiled them with.
    let only = [
        "--features",
        "vramscope/portable",
        "--bin",
        "vramscope",
        "--test",
        "way",
        "-E",
        "package(vramscope) & (test(portable) | binary(way))",
    ];
    run(cargo().args(["nextest", "run", "--workspace", "--locked"]).args(only))
}
