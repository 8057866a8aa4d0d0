//! Decides if a run fits in the memory that it is given.
//!
//! Two figures of the run decide. What its tensors hold at the highest instant (**allocated**) must
//! fit whatever the allocator does. What the allocator would take from the device if nothing
//! limited it (**reserved**) is higher: on a full device PyTorch gives back segments that hold no
//! tensor and tries again, which is slow and may or may not find room.
//!
//! | | allocated | reserved |
//! | --- | --- | --- |
//! | [`Fits`](Verdict::Fits) | fits | fits, and at least 5% of the room stays free |
//! | [`Tight`](Verdict::Tight) | fits | leaves less than 5%, or passes the room |
//! | [`Oom`](Verdict::Oom) | passes the room | |
//!
//! What a compiled run takes is not known. It is judged by the range in which measured compiled steps lay relative to eager
//! ones ([`compiled`]): it fits if the highest of them would, and runs out of memory if the lowest of them would.
//!
//! On a card, memory outside PyTorch's allocator (the CUDA context, …) counts on top of both.

use serde::{Deserialize, Serialize};

use crate::Report;
use crate::device::Device;
use crate::report::OutsideTerm;
use crate::report::compiled::{self, MEASURED};
use crate::report::outside;
use crate::units::Bytes;

/// Verdict on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The run fits, with at least 5% to spare.
    Fits,
    /// The run may succeed; a slightly longer sample or another process may end it.
    Tight,
    /// The run runs out of memory.
    Oom,
}

impl Verdict {
    /// The stable name: `fits`, `tight`, `oom`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::Oom => "oom",
        }
    }
}

/// The memory that a run is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Room<'a> {
    /// A whole card: its usable memory holds the allocator's segments and all memory outside the allocator.
    Card(&'a Device),
    /// A whole card of which vLLM takes this share, in the same process.
    BesideVllm(&'a Device, f64),
    /// A limit on the bytes that the allocator may reserve, as `set_per_process_memory_fraction` sets it.
    Allocator(Bytes),
}

impl<'a> Room<'a> {
    /// Makes the room of a card on which the allocator may reserve at most `limit`; a limit beyond the card's own room
    /// changes nothing.
    pub fn limited(card: &'a Device, limit: Option<Bytes>) -> Self {
        let whole = card.usable().saturating_sub(outside::total(card));
        match limit.filter(|limit| *limit < whole) {
            Some(limit) => Self::Allocator(limit),
            None => Self::Card(card),
        }
    }

    /// The same beside vLLM, which takes this share of the card. Under a limit of the allocator the card is not known, and
    /// its share is not counted.
    #[must_use]
    pub const fn beside_vllm(self, share: Option<f64>) -> Self {
        match (self, share) {
            (Self::Card(card), Some(share)) => Self::BesideVllm(card, share),
            _ => self,
        }
    }

    /// Name in documents: the card's, or "allocator limit".
    pub fn name(&self) -> &'a str {
        match self {
            Self::Card(card) | Self::BesideVllm(card, _) => card.name,
            Self::Allocator(_) => "allocator limit",
        }
    }

    /// The card; `None` under a limit of the allocator.
    pub const fn card(&self) -> Option<&'a Device> {
        match self {
            Self::Card(card) | Self::BesideVllm(card, _) => Some(card),
            Self::Allocator(_) => None,
        }
    }

    /// Bytes that are given: those that programs see of a card, or the limit.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Card(card) | Self::BesideVllm(card, _) => card.usable(),
            Self::Allocator(limit) => *limit,
        }
    }

    /// What one of `gpus` processes takes of them outside the allocator.
    pub fn outside(&self, gpus: u64) -> Vec<OutsideTerm> {
        match self {
            Self::Card(card) => outside::terms(card, gpus),
            Self::BesideVllm(card, share) => {
                let mut terms = outside::terms(card, gpus);
                terms.push(outside::vllm(card, *share));
                terms
            }
            Self::Allocator(_) => Vec::new(),
        }
    }

    /// Bytes that are left for the allocator of one of `gpus` processes.
    pub fn for_allocator(&self, gpus: u64) -> Bytes {
        self.bytes().saturating_sub(sum(&self.outside(gpus)))
    }
}

/// Verdict on a run in the memory that it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// Verdict on the run.
    pub verdict: Verdict,
    /// The reserved peak of the run, plus the memory outside the allocator for a whole card.
    pub needed: Bytes,
    /// What the tensors hold at the highest instant, plus the same: no run needs less.
    pub live: Bytes,
    /// The memory given.
    pub room: Bytes,
    /// Terms of `needed` outside the allocator. Empty under a limit of the allocator, which does not hold them, and for
    /// cards of which nothing is known.
    pub outside: Vec<OutsideTerm>,
    /// Of a compiled run, what it would need if it took as little or as much beside eager mode as measured compiled steps
    /// did; `needed` is then eager's.
    pub compiled: Option<[Bytes; 2]>,
}

impl Fit {
    /// Judges a run in the memory that it is given.
    pub fn of(report: &Report, room: Room) -> Self {
        Self::of_each(report, room, 1)
    }

    /// Judges the run of one of several GPUs in the memory that it is given; on a card, the communication buffers of
    /// the GPUs count too.
    pub fn of_each(report: &Report, room: Room, gpus: u64) -> Self {
        let allocated = report.first.peak().max(report.steady.peak());
        let eager = Self::of_bytes((allocated, report.peak_reserved), room, gpus);
        eager.compiled_if(report, allocated)
    }

    /// The verdict on a compiled run, if the report is of one; this is the verdict on the same run in eager mode.
    fn compiled_if(self, report: &Report, allocated: Bytes) -> Self {
        let eager = self;
        if !report.is_compiled {
            return eager;
        }
        let outside = sum(&eager.outside);
        let least = compiled::share(allocated, MEASURED.allocated[0]) + outside;
        let range = MEASURED
            .reserved
            .map(|share| compiled::share(report.peak_reserved, share) + outside);
        Self {
            verdict: judge(least, range[1], eager.room),
            compiled: Some(range),
            ..eager
        }
    }

    /// Judges these highest allocated and reserved bytes on one of several GPUs.
    pub fn of_bytes((allocated, reserved): (Bytes, Bytes), room: Room, gpus: u64) -> Self {
        let (room, outside) = (room.bytes(), room.outside(gpus));
        let outside_bytes = sum(&outside);
        let needed = reserved + outside_bytes;
        Self {
            verdict: judge(allocated + outside_bytes, needed, room),
            needed,
            live: allocated + outside_bytes,
            room,
            outside,
            compiled: None,
        }
    }

    /// Sum of the memory outside the allocator.
    pub fn outside_torch(&self) -> Bytes {
        sum(&self.outside)
    }

    /// Bytes of the room that are left for the allocator.
    pub fn for_allocator(&self) -> Bytes {
        self.room.saturating_sub(self.outside_torch())
    }

    /// Bytes that stay free; zero if the need exceeds the room.
    pub fn spare(&self) -> Bytes {
        self.room.saturating_sub(self.needed)
    }

    /// Bytes that are missing; zero if the need fits the room.
    pub fn short(&self) -> Bytes {
        self.needed.saturating_sub(self.room)
    }
}

fn sum(terms: &[OutsideTerm]) -> Bytes {
    terms.iter().map(|term| term.bytes).sum()
}

/// Judges a run that needs at least `least` bytes of a room, and `needed` to run without hindrance.
pub(super) fn judge(least: Bytes, needed: Bytes, room: Bytes) -> Verdict {
    // 5% is a twentieth; u128, because `room` may be any u64.
    let free = u128::from(room.saturating_sub(needed).get());
    if least > room {
        Verdict::Oom
    } else if needed > room || free * 20 < u128::from(room.get()) {
        Verdict::Tight
    } else {
        Verdict::Fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(least: u64, needed: u64, room: u64) -> Verdict {
        judge(Bytes::new(least), Bytes::new(needed), Bytes::new(room))
    }

    #[test]
    fn five_per_cent_free_is_enough() {
        assert_eq!(of(90, 95, 100), Verdict::Fits);
        assert_eq!(of(90, 96, 100), Verdict::Tight);
    }

    #[test]
    fn reserved_beyond_the_room_is_tight_while_the_tensors_fit() {
        assert_eq!(of(100, 130, 100), Verdict::Tight);
        assert_eq!(of(101, 130, 100), Verdict::Oom);
    }

    proptest! {
        #[test]
        fn more_room_never_worsens_the_verdict(least: u32, slack: u32, room: u32, more: u32) {
            let (least, slack, room, more) = (least.into(), u64::from(slack), room.into(), u64::from(more));
            prop_assert!(of(least, least + slack, room + more) <= of(least, least + slack, room));
        }
    }
}
