//! Searches for the largest batch of a recording of all sizes: one replay, or a few segment orders, per slice.

use std::rc::Rc;

use vramscope_engine::device::Device;
use vramscope_engine::recording::Sizes;
use vramscope_engine::simulate::ORDERS;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Largest, RecordedLimits, RecordedSearch};

use super::replay::{Recorded, card, overrides, point};
use crate::state::{Draft, Reading};
use crate::worker::batches::{Beyond, FoundBatch, LargestBatch, STEPS, stop};
use crate::worker::coded::Coded;
use crate::worker::protocol::Answer;
use crate::worker::slices::Parts;

/// Name of the size that is searched.
const BATCH: &str = "batch";

/// A search in progress; nothing if no batch can be chosen.
pub struct BatchesWork(Option<Search>);

struct Search {
    sizes: Rc<Sizes>,
    search: RecordedSearch,
    limit: Bytes,
}

impl BatchesWork {
    /// Prepares the search at the other sizes, the card and the allocator of these entries.
    pub fn of(recording: &Recorded, entries: &Draft) -> Self {
        let reading = Reading::of(entries, &Draft::default());
        Self(recording.sizes().and_then(|sizes| Search::of(sizes, &reading)))
    }
}

impl Search {
    fn of(sizes: Rc<Sizes>, reading: &Reading) -> Option<Self> {
        let at = sizes.names().iter().position(|name| name == BATCH)?;
        let (device, gpu) = card(reading);
        let limit = for_allocator(device.ok()?, reading, sizes.header().world);
        let limits = RecordedLimits {
            gpu,
            overrides: overrides(reading),
            limit,
            steps: STEPS,
        };
        let point = point(&sizes, reading).ok()?;
        let search = RecordedSearch::new(&sizes, (at, &point), limits).ok()?;
        Some(Self { sizes, search, limit })
    }

    fn found(&self, largest: &Largest) -> FoundBatch {
        let batch = largest.value.unwrap_or_default();
        let trial = |batch: u64| {
            let found = largest.tries.iter().find(|(tried, _)| *tried == batch);
            found.map(|(_, trial)| trial)
        };
        FoundBatch {
            batch,
            limit: self.limit,
            reserved: trial(batch).map(|trial| trial.peak_reserved),
            stop: trial((batch + 1).max(largest.range[0])).and_then(stop),
            end: None,
            recorded: Some(Beyond {
                range: largest.range,
                command: largest.beyond.clone(),
            }),
        }
    }
}

/// Bytes that the allocator may reserve on one of `gpus` cards.
fn for_allocator(device: &'static Device, reading: &Reading, gpus: u64) -> Bytes {
    reading.room(device).for_allocator(gpus)
}

impl Parts for BatchesWork {
    fn left(&self) -> u32 {
        // About ten replays, plus a few slices for the segment orders.
        if self.0.is_some() { ORDERS as u32 } else { 0 }
    }

    fn next(&mut self) -> Option<Answer> {
        let Search { sizes, search, .. } = self.0.as_mut()?;
        let news = match search.step(sizes) {
            Ok(None) => {
                let [good, bad] = search.between();
                let trains = good >= search.range()[0];
                LargestBatch::Between([if trains { good } else { 0 }, bad])
            }
            Ok(Some(largest)) => LargestBatch::Found(self.0.take()?.found(&largest)),
            // The recording is valid at these sizes, so nothing is refused now.
            Err(_) => {
                self.0 = None;
                return None;
            }
        };
        Some(Answer::Batches(Coded::of(&news)))
    }
}
