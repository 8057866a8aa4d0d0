//! What a person gives: files, standard input, a setup in flags.

pub mod cases;
pub mod parallel_flags;
pub mod recorded;
pub mod room;
pub mod setup_flags;
pub mod source;
pub mod subject;
pub mod time_flags;
pub mod vocabulary;
