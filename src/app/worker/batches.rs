//! Searches for the largest micro-batch that trains: one run, or a few segment orders, per slice.

use serde::{Deserialize, Serialize};
use vramscope_engine::report::Phase;
use vramscope_engine::simulate::{ORDERS, SimulateError, Trial};
use vramscope_engine::units::Bytes;
use vramscope_plan::{Batches, End, MaxBatch};

use super::coded::Coded;
use super::protocol::Answer;
use super::run::Subject;
use super::slices::Parts;
use crate::state::{Draft, Task};

/// Steps that must complete; the default of `vramscope max-batch`.
pub const STEPS: u64 = 2;

/// Progress and result of the search for the largest micro-batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LargestBatch {
    /// Lies between a batch that trains and one that does not.
    Between([u64; 2]),
    /// The search is complete.
    Found(FoundBatch),
    /// The search cannot start or go on, for this reason.
    Refused(SimulateError),
}

/// Largest micro-batch that trains, and the limit that stops the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundBatch {
    /// Samples; 0 if not even one trains.
    pub batch: u64,
    /// Bytes that PyTorch's allocator may reserve.
    pub limit: Bytes,
    /// Highest reserved bytes at this batch; `None` if no batch trains.
    pub reserved: Option<Bytes>,
    /// Point at which one more sample runs out of memory.
    pub stop: Option<Stop>,
    /// Limit other than memory that rules out one more sample.
    pub end: Option<End>,
    /// Batches that were recorded, for a recording.
    pub recorded: Option<Beyond>,
}

/// Batches that a recording covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// Least and greatest batch.
    pub range: [u64; 2],
    /// Command that records batches beyond, if the answer lies at the end of the range.
    pub command: Option<String>,
}

/// Point at which a run runs out of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Step, counted from 1; 0 while the model is created.
    pub step: u64,
    /// Phase of the step.
    pub phase: Option<Phase>,
    /// Module and operation whose tensor cannot be allocated.
    pub tensor: String,
    /// Bytes requested.
    pub requested: Bytes,
    /// Bytes allocated at that point.
    pub allocated: Bytes,
}

/// A search in progress.
pub struct BatchWork {
    search: Option<Batches>,
    limit: Bytes,
    refused: Option<SimulateError>,
}

impl BatchWork {
    /// Prepares the search. Yields nothing if the entries describe no model, name no card or do not train; the page
    /// reports that itself.
    pub fn of(entries: &Draft) -> Self {
        let mut work = Self {
            search: None,
            limit: Bytes::ZERO,
            refused: None,
        };
        let subject = Subject::read(entries).ok();
        let Some(subject) = subject.filter(|subject| subject.reading.task == Task::Train) else {
            return work;
        };
        work.limit = match subject.room() {
            Some(room) => room.for_allocator(1),
            None => return work,
        };
        let gpu = subject.gpu();
        match Batches::new(subject.model, subject.reading.setup, gpu, (work.limit, STEPS)) {
            Ok(search) => work.search = Some(search),
            Err(why) => work.refused = Some(why),
        }
        work
    }

    fn found(&self, found: &MaxBatch) -> FoundBatch {
        let trial = |batch: u64| {
            found
                .tries
                .iter()
                .find(|(tried, _)| *tried == batch)
                .map(|(_, trial)| trial)
        };
        FoundBatch {
            batch: found.max_batch,
            limit: self.limit,
            reserved: trial(found.max_batch).map(|trial| trial.peak_reserved),
            stop: trial(found.max_batch + 1).and_then(stop),
            end: found.end.clone(),
            recorded: None,
        }
    }
}

/// Returns the point at which a trial stopped.
pub fn stop(trial: &Trial) -> Option<Stop> {
    let stopped = trial.stopped.as_ref()?;
    Some(Stop {
        step: stopped.step,
        phase: stopped.phase,
        tensor: stopped.tensor.clone(),
        requested: stopped.error.requested,
        allocated: stopped.error.allocated,
    })
}

impl Parts for BatchWork {
    fn left(&self) -> u32 {
        // About ten runs, plus a few slices for the segment orders.
        if self.search.is_some() {
            ORDERS as u32
        } else {
            self.refused.is_some().into()
        }
    }

    fn next(&mut self) -> Option<Answer> {
        if let Some(why) = self.refused.take() {
            return Some(Answer::Batches(Coded::of(&LargestBatch::Refused(why))));
        }
        let search = self.search.as_mut()?;
        let news = match search.step() {
            Ok(None) => LargestBatch::Between(search.between()),
            Ok(Some(found)) => {
                self.search = None;
                LargestBatch::Found(self.found(&found))
            }
            Err(why) => {
                self.search = None;
                LargestBatch::Refused(why)
            }
        };
        Some(Answer::Batches(Coded::of(&news)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Draft, Key};
    use vramscope_engine::Model;
    use vramscope_engine::device::Device;
    use vramscope_engine::report::outside;
    use vramscope_engine::setup::Setting;
    use vramscope_plan::max_batch;

    fn finish(pairs: &[(Key, &str)]) -> Vec<LargestBatch> {
        let mut draft = Draft::default();
        pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
        let mut work = BatchWork::of(&draft);
        let mut all = Vec::new();
        while work.left() > 0 {
            let Some(Answer::Batches(news)) = work.next() else {
                panic!("news are told")
            };
            all.extend(news.open());
        }
        all
    }

    #[test]
    fn it_is_what_the_engine_finds_and_says_what_stops_the_next() {
        let all = finish(&[
            (Key::Model, "gpt2"),
            (Setting::Seq.into(), "1024"),
            (Key::Gpu, "RTX 4060"),
        ]);
        let Some(LargestBatch::Found(found)) = all.last() else {
            panic!("{all:?}")
        };
        let card = Device::by_name("RTX 4060").expect("it is known");
        let model = Model::from_catalogue("gpt2").expect("it is known");
        let setup = vramscope_engine::Setup {
            seq: 1024,
            ..Default::default()
        };
        let limit = outside::for_allocator(card, 1);
        let wanted = max_batch(&model, &setup, card.gpu().unwrap_or_default(), limit, STEPS).expect("it runs");
        assert_eq!((found.batch, found.limit), (wanted.max_batch, limit));
        assert!(found.batch > 0 && found.reserved.is_some_and(|bytes| bytes <= limit));
        assert!(
            found
                .stop
                .as_ref()
                .is_some_and(|stop| stop.step <= STEPS && !stop.tensor.is_empty())
        );
        assert!(
            all.len() > 5
                && all[..all.len() - 1]
                    .iter()
                    .all(|news| matches!(news, LargestBatch::Between(_)))
        );
    }

    #[test]
    fn what_has_no_batch_to_look_for_says_why() {
        let all = finish(&[(Key::Model, "gpt2"), (Setting::Lengths.into(), "100,200")]);
        assert_eq!(all, [LargestBatch::Refused(SimulateError::LengthsDecide)]);
        assert_eq!(finish(&[(Key::Model, "gpt9")]), []);
    }
}
