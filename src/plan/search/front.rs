//! The Pareto front over distance, time and memory.

use super::Candidate;
use vramscope_engine::order::sort_by;
use vramscope_engine::units::Bytes;

/// Returns the candidates that no other one dominates in distance, time per sample and peak, in that order.
///
/// Peaks within 0.5% of the room count as equal, and so do times within 0.5%: nobody decides by smaller differences.
pub fn front(candidates: &[Candidate], room: Bytes) -> Vec<Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sort(&mut sorted);
    let slack = equal(room);
    let mut front: Vec<Candidate> = Vec::new();
    for candidate in sorted {
        // Candidates earlier in the order are at most as distant.
        let beaten = |other: &Candidate| {
            let time = candidate.seconds_a_sample();
            other.seconds_a_sample() <= time + time / EQUAL as f64 && other.peak <= candidate.peak + slack
        };
        if !front.iter().any(beaten) {
            front.push(candidate.clone());
        }
    }
    front
}

/// Divisor of the room: differences below 1/200 of it count as none.
const EQUAL: u64 = 200;

/// Difference in bytes below which two peaks count as equal.
pub(crate) const fn equal(room: Bytes) -> Bytes {
    Bytes::new(room.get() / EQUAL)
}

/// Sorts by distance, then time, then memory. Unknown times compare as equal.
pub(crate) fn sort(candidates: &mut [&Candidate]) {
    sort_by(candidates, |a, b| order(a, b));
}

/// Comparison for [`sort`].
pub(crate) fn order(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    let times = a.seconds_a_sample().total_cmp(&b.seconds_a_sample());
    a.distance.cmp(&b.distance).then(times).then(a.peak.cmp(&b.peak))
}
