//! Recorder embedded in the program, and the Python that runs it.

mod answer;
mod python;
mod sources;

pub use answer::answer;
pub use python::{find, of_command};
pub use sources::folder;
