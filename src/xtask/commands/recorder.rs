//! Tests in Python: of the recorder, of the wheel, and of what agents and notebooks are told.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::process::{cargo, program, run, run_captured};
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
    side_by_side("recorder", python)
}

/// Builds the command line and runs the tests of what agents and notebooks are told.
///
/// # Errors
/// When the build fails, the environment cannot be made, or a test fails.
pub fn agents() -> Result<(), Failure> {
    run(cargo().args(["build", "--workspace", "--bin", "vramscope", "--locked"]))?;
    tests_of_agents()
}

/// Runs the tests of what agents and notebooks are told, in an environment of their own. The command line has to be built.
///
/// # Errors
/// When the environment cannot be made, or a test fails.
pub fn tests_of_agents() -> Result<(), Failure> {
    tools::agents()?;
    side_by_side("agents", || program(root().join("target/agents/bin/python")))
}

/// Names of the test modules in a folder of `tests`.
fn modules_of(folder: &str) -> Result<Vec<String>, Failure> {
    let mut modules = Vec::new();
    for entry in std::fs::read_dir(root().join("tests").join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let module = name.strip_suffix(".py").filter(|name| name.starts_with("test_"));
        modules.extend(module.map(|module| format!("tests.{folder}.{module}")));
    }
    modules.sort();
    Ok(modules)
}

/// Runs the test modules of a folder, as many at a time as there are cores. Each has a process of its own: a recording starts autograd's
/// threads, and some modules fork. What a module prints is shown once it has ended.
fn side_by_side(folder: &str, python: impl Fn() -> Command + Sync) -> Result<(), Failure> {
    let modules = modules_of(folder)?;
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = run_captured(python().args(["-m", "unittest", module])) {
                failed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(failure);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    failed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
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
