//! Installs what asks the program as agents and notebooks do, in a Python environment of its own: PyTorch, which the
//! environment of exported plans has, is what most of their users lack.

use std::fs;
use std::process::Command;

use super::exports::{install, python3};
use crate::process::run;
use crate::{Failure, root};

/// Creates `target/agents` if its requirements have changed.
///
/// # Errors
/// If Python or a package is missing; the message says which.
pub fn agents() -> Result<(), Failure> {
    let requirements = root().join("tests/agents/requirements.txt");
    let folder = root().join("target/agents");
    let stamp = folder.join("made_from");
    let failed = |error| Failure::new(format!("{}: {error}", requirements.display()));
    let made_from = fs::read_to_string(&requirements).map_err(failed)?;
    if fs::read_to_string(&stamp).is_ok_and(|known| known == made_from) {
        return Ok(());
    }
    eprintln!("making target/agents: the SDK of the Model Context Protocol, and Jupyter's client, about 150 MB");
    let _ = fs::remove_dir_all(&folder);
    run(Command::new(python3()?).args(["-m", "venv"]).arg(&folder))?;
    install(&folder, &requirements, None)?;
    fs::write(&stamp, made_from).map_err(|error| Failure::new(format!("{}: {error}", stamp.display())))
}
