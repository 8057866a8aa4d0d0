//! Tests of the recorder and of the wheel, in Python.

use std::process::Command;

use crate::process::{cargo, program, run};
use crate::{Failure, root, tools};

/// Builds the command line and runs the recorder's tests.
///
/// # Errors
/// When the build fails, the environment cannot be made, or a test fails.
pub fn recorder() -> Result<(), Failure> {
    run(cargo().args(["build", "--workspace", "--bin", "vramscope", "--locked"]))?;
    tests()
}

/// Runs the recorder's tests in the environment that exported plans are read in. The command line, which plays what
/// they record, has to be built.
///
/// # Errors
/// When the environment cannot be made, or a test fails.
pub fn tests() -> Result<(), Failure> {
    tools::exports()?;
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/recorder"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        modules.extend(
            name.strip_suffix(".py")
                .filter(|name| name.starts_with("test_"))
                .map(str::to_owned),
        );
    }
    modules.sort();
    // Each in a process of its own: a recording starts autograd's threads, and some modules fork.
    for module in modules {
        println!("tests.recorder.{module}");
        run(python().args(["-m", "unittest", &format!("tests.recorder.{module}")]))?;
    }
    Ok(())
}

/// Builds the wheel, unoptimized, and uses it in a fresh environment beside that environment's PyTorch.
///
/// # Errors
/// When maturin or the wheel cannot be had, or what is installed does not work.
pub fn wheel() -> Result<(), Failure> {
    tools::exports()?;
    let packages = tools::packages_of_exports()?;
    run(python().args(["tests/recorder/wheel.py", "target/wheel"]).arg(packages))
}

/// The Python of `target/exports`, on one thread: shapes are small, and other tests run beside.
fn python() -> Command {
    let mut command = program(root().join("target/exports/bin/python"));
    command.env("OMP_NUM_THREADS", "1");
    command
}
