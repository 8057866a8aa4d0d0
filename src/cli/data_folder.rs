//! Locates the user's data folder: `$XDG_DATA_HOME` or its equivalent on other systems.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::failure::Failure;

/// This program's own data folder, which may not exist yet.
///
/// # Errors
/// If the system does not report the user's home folder.
pub fn data_folder() -> Result<PathBuf, Failure> {
    etcetera::choose_base_strategy()
        .map(|base| base.data_dir().join("vramscope"))
        .map_err(|error| Failure::Broken(format!("{error}; set HOME or XDG_DATA_HOME")))
}
