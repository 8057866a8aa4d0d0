//! `cargo xtask test`: builds the page and runs all tests.

use super::Build;
use crate::process::{beside, cargo, output, program, run};
use crate::{Failure, tools};

/// Builds the published page, then runs every test, including those in the browser; with `--local`, the page as `cargo xtask
/// serve` builds it, which is not optimized afterwards; with `--profile nightly`, the portable backend's too, which is a build
/// of its own. The last lines printed are nextest's summary.
///
/// # Errors
/// If a tool is missing and cannot be installed, the build fails, or a test fails.
pub fn test(args: &[String]) -> Result<(), Failure> {
    if let Some((first, rest)) = args.split_first()
        && first == "--fast"
    {
        return fast(rest);
    }
    let (build, args) = match args.split_first() {
        Some((first, rest)) if first == "--local" => (Build::Local, rest),
        _ => (Build::Published, args),
    };
    // The page's programs leave a core idle for minutes: the tests' are built then.
    beside(|| super::build(build), programs)?;
    run(cargo().args(["test", "--doc", "--workspace", "--locked", "--quiet"]))?;
    super::recorder::tests()?;
    super::recorder::tests_of_agents()?;
    if args.iter().any(|arg| arg == "nightly") {
        portable()?;
    }
    run(cargo().args(["nextest", "run", "--workspace", "--locked"]).args(args))
}

/// Installs what tests need, and builds their programs and the command line, which plays what the recorder's tests
/// record and which the browser tests compare the page with.
fn programs() -> Result<(), Failure> {
    tools::for_tests()?;
    tools::exports()?;
    // Bars of progress of two builds would overwrite each other.
    run(cargo()
        .args(["nextest", "run", "--workspace", "--locked", "--no-run"])
        .env("CARGO_TERM_PROGRESS_WHEN", "never"))
}

/// Runs the tests that a single change is most likely to break: unit tests of the libraries, predictions against
/// measurements, and the structure; of the command line and the page, where files of theirs have changed since the last
/// commit. No page is built, no browser or server started.
fn fast(args: &[String]) -> Result<(), Failure> {
    tools::nextest()?;
    let changed = changed_files();
    let has_changed = |folders: &[&str]| changed.lines().any(|file| folders.iter().any(|f| file.starts_with(f)));
    // Name the whole workspace, so that dependencies keep the features that the full run compiles them with.
    let mut command = cargo();
    command.args(["nextest", "run", "--workspace", "--locked", "--lib"]);
    command.args(["--test", "predictions", "--test", "structure"]);
    if has_changed(&["src/cli/", "tests/command_line/"]) {
        command.args(["--bin", "vramscope", "--test", "command_line"]);
    }
    if has_changed(&["src/app/", "style/"]) {
        command.args(["--bin", "vramscope-app"]);
    }
    run(command.args(args))
}

/// Paths that differ from the last commit, one a line; empty where this is no clone.
fn changed_files() -> String {
    let git = |args: &[&str]| output(program("git").args(args)).unwrap_or_default();
    let (changed, new) = (
        git(&["diff", "--name-only", "HEAD"]),
        git(&["ls-files", "--others", "--exclude-standard"]),
    );
    format!("{changed}\n{new}")
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
