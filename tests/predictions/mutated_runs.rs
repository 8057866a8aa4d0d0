//! Simulates configurations and setups that nobody would write: each gives an answer or an error, never a panic.

#[path = "../fuzz/configured.rs"]
mod configured;
#[allow(dead_code, reason = "the fuzzer uses the rest")]
#[path = "../fuzz/mutate.rs"]
mod mutate;

use std::panic::catch_unwind;

/// Runs that once made the engine panic or take long, one per line, as `examples/fuzz` leaves them.
const FINDINGS: &str = include_str!("../data/coverage/findings.jsonl");

fn ends(run: &[u8]) -> bool {
    catch_unwind(|| configured::feed(run)).is_ok()
}

#[test]
fn every_finding_is_mended() {
    for run in FINDINGS.lines() {
        assert!(ends(run.as_bytes()), "{run}");
    }
}

#[test]
fn runs_that_are_written_anew_end() {
    let mut random = mutate::Random::new(27);
    for _ in 0..300 {
        let run = configured::write(&mut random);
        assert!(ends(&run), "{}", String::from_utf8_lossy(&run));
    }
}
