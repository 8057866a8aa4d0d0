//! Compares what the engine predicts with what was measured and recorded: bytes, time, plans.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod attention;
mod convolutions;
mod coverage;
mod ledger;
mod memory;
mod mutated_runs;
mod plans;
mod recordings;
mod time;
