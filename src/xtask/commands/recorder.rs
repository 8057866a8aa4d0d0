//! Tests of the recorder and of the wheel, in Python.

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
    side_by_side(&modules)
}

/// Runs test modules, as many at a time as there are cores. Each has a process of its own: a recording starts autograd's
/// threads, and some modules fork. What a module prints is shown once it has ended.
fn side_by_side(modules: &[String]) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let work = || {
        while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = format!("tests.recorder.{module}");
            if let Err(failure) = run_captured(python().args(["-m", "unittest", &name])) {
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
