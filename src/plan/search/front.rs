//! What no other setup beats in everything.

use super::Candidate;
use vramscope_engine::order::sort_by;
use vramscope_engine::units::Bytes;

/// The candidates that no other one equals or beats in distance, time a sample and peak, in that order.
///
/// Peaks within 0.5% of the room count as equal, as do times within 0.5%: nobody chooses by less.
pub fn front(candidates: &[Candidate], room: Bytes) -> Vec<Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sort(&mut sorted);
    let slack = equal(room);
    let mut front: Vec<Candidate> = Vec::new();
    for candidate in sorted {
        // Those before are no farther.
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

/// Differences below this part count as none.
const EQUAL: u64 = 200;

/// Bytes below which a difference counts as none, in a room.
pub(crate) const fn equal(room: Bytes) -> Bytes {
    Bytes::new(room.get() / EQUAL)
}

/// The nearest to what was asked first; of those the fastest, then the leanest. Where times are not known, they do
/// not decide.
pub(crate) fn sort(candidates: &mut [&Candidate]) {
    sort_by(candidates, |a, b| order(a, b));
}

/// The order of [`sort`].
pub(crate) fn order(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    let times = a.seconds_a_sample().total_cmp(&b.seconds_a_sample());
    a.distance.cmp(&b.distance).then(times).then(a.peak.cmp(&b.peak))
}
