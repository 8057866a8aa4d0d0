//! Installs programs from cargo packages.

use crate::Failure;
use crate::process::{output, program};

use super::install;

/// A program in a cargo package.
pub struct CargoTool {
    /// Name of the package.
    pub package: &'static str,
    /// Name of the program.
    pub binary: &'static str,
    /// Additional options of `cargo install`.
    pub options: &'static [&'static str],
}

impl CargoTool {
    /// Installs the latest release of a series such as `0.9` unless one is on the search path.
    pub fn ensure_any(&self, series: &str) -> Result<(), Failure> {
        let release = format!("{series}.");
        if self.found().is_some_and(|found| found.starts_with(&release)) {
            return Ok(());
        }
        install(self, &format!("~{series}"))
    }

    /// Version on the search path: the second word that `--version` prints.
    fn found(&self) -> Option<String> {
        let printed = output(program(self.binary).arg("--version"))?;
        printed.split_whitespace().nth(1).map(str::to_owned)
    }
}
