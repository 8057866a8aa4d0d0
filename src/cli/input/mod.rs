//! Input of the commands: files, standard input, and setups as flags.

mod beside;
pub mod budget;
pub mod cases;
pub mod count;
pub mod crash;
pub mod dataset;
pub mod hub;
pub mod launch;
pub mod parallel_flags;
pub mod recorded;
pub mod room;
pub mod run;
pub mod setup_flags;
pub mod source;
pub mod subject;
pub mod time_flags;
pub mod watched;
