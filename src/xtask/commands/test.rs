use crate::process::{cargo, run};
use crate::{Failure, tools};

/// Builds the page as it is published, then runs every test, the browser's among them. The last
/// lines printed are nextest's summary.
///
/// # Errors
/// When a tool is missing and cannot be installed, the build fails, or a test fails.
pub fn test(args: &[String]) -> Result<(), Failure> {
    tools::for_tests()?;
    tools::exports()?;
    super::build(super::Build::Published)?;
    run(cargo().args(["test", "--doc", "--workspace", "--locked", "--quiet"]))?;
    super::recorder()?;
    portable()?;
    // This builds the command line too, which the browser's tests compare the page with.
    run(cargo().args(["nextest", "run", "--workspace", "--locked"]).args(args))
}

/// The portable backend, which a usual build does not have, on lavapipe or a GPU: its kernels, and the way of
/// what it measures to the page.
fn portable() -> Result<(), Failure> {
    if !tools::vulkan()? {
        eprintln!("no Vulkan is installed: the portable backend's kernels are not compared");
        return Ok(());
    }
    // The whole workspace is named, so that dependencies have the features that the other tests compiled them with.
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
