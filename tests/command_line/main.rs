//! The real binary, run as a person or a script runs it.

mod bad_input;
mod cases;
mod colour;
mod help;
mod program;
mod replay;
