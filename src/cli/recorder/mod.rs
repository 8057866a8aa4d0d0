//! Recorder embedded in the program, and the Python that runs it.

mod python;
mod sources;

pub use python::find;
pub use sources::folder;
