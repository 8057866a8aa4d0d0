//! The real binary, run as a person or a script runs it.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod bad_input;
mod bench;
mod cases;
mod colour;
mod diagnose;
mod examples;
mod exports;
mod help;
mod max_batch;
mod plan;
mod predictions;
mod program;
mod readme;
mod record;
mod recording;
mod replay;
mod time;
