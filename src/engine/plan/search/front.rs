//! What no other setup beats in everything.

use super::Candidate;
use crate::units::Seconds;

/// The candidates that no other one equals or beats in distance, time and peak, in that order.
pub fn front(candidates: &[Candidate]) -> Vec<Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|a, b| {
        let times = seconds(a).total_cmp(&seconds(b));
        a.distance.cmp(&b.distance).then(times).then(a.peak.cmp(&b.peak))
    });
    let mut front: Vec<Candidate> = Vec::new();
    for candidate in sorted {
        // Those before are no farther.
        let beaten = |other: &Candidate| seconds(other) <= seconds(candidate) && other.peak <= candidate.peak;
        if !front.iter().any(beaten) {
            front.push(candidate.clone());
        }
    }
    front
}

/// Where the time is not known, it does not decide.
fn seconds(candidate: &Candidate) -> f64 {
    candidate.time.map_or(0.0, Seconds::get)
}
