//! Where this user's programs keep data: `$XDG_DATA_HOME` or its like on other systems.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::failure::Failure;

/// A folder of this program's own. It may not be there yet.
///
/// # Errors
/// When the system does not say where the user's home is.
pub fn data_folder() -> Result<PathBuf, Failure> {
    etcetera::choose_base_strategy()
        .map(|base| base.data_dir().join("vramscope"))
        .map_err(|error| Failure::Broken(format!("{error}; set HOME or XDG_DATA_HOME")))
}
