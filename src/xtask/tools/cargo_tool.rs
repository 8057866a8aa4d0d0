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
    /// Returns true if a release of a series such as `0.9` is on the search path.
    pub fn is_of(&self, series: &str) -> bool {
        let release = format!("{series}.");
        self.found().is_some_and(|found| found.starts_with(&release))
    }

    /// Installs the latest release of a series from source.
    pub fn install(&self, series: &str) -> Result<(), Failure> {
        install(self, &format!("~{series}"))
    }

    /// Version on the search path: the second word that `--version` prints.
    fn found(&self) -> Option<String> {
        let printed = output(program(self.binary).arg("--version"))?;
        printed.split_whitespace().nth(1).map(str::to_owned)
    }
}
