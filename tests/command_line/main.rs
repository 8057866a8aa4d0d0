//! Tests of the real binary, run as by a person or a script.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod around;
mod bad_input;
mod bench;
mod cases;
mod check;
mod colour;
mod cost;
mod data;
mod diagnose;
mod doctor;
mod dry_run;
mod examples;
mod exports;
mod help;
mod hub;
mod launch;
mod max;
mod max_batch;
mod plan;
mod predictions;
mod program;
mod readme;
mod record;
mod recording;
mod replay;
mod time;
mod watch;
