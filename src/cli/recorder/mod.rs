//! Recorder embedded in the program, and the Python that runs it.

mod python;
mod sources;

pub use python::{find, of_command};
pub use sources::folder;
