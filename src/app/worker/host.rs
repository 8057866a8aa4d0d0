//! Answers questions one slice at a time. Pure: the caller decides when the next slice runs.

use std::collections::BTreeMap;
use std::rc::Rc;

use vramscope_engine::report::Instant;
use vramscope_launch::ModelFacts;

use super::lazy::{LoadedChunks, Need};
use super::prefetch::PrefetchWork;
use super::protocol::{Answer, Ask, Order, Progress, Refusal, Reply, Slot};
use super::recorded::{Packed, Replay};
use super::run::Subject;
use super::setups::SetupsWork;
use super::slices::{Kept, Parts};
use super::view::{Details, Live};
use super::what_if::WhatIfWork;
use crate::state::{Draft, Reading};

/// Pending questions and the most recent run.
#[derive(Default)]
pub struct Host {
    /// Ordered by urgency, most urgent first.
    jobs: BTreeMap<Slot, Job>,
    kept: Option<Kept>,
    /// The last recording, with its number.
    recording: Option<(u32, Rc<dyn Replay>)>,
    chunks: LoadedChunks,
}

/// A question in progress.
struct Job {
    id: u32,
    /// Parts answered so far.
    done: u32,
    /// Chunk that must load before the work can start.
    need: Option<Need>,
    work: Work,
}

/// Remaining work of a question.
enum Work {
    /// Not started.
    Asked(Ask),
    /// In progress, one answer per slice.
    Parts(Box<dyn Parts>),
}

impl Work {
    /// Starts work that comes in several parts. `recording` finds the recording of a number.
    fn begin(
        self,
        chunks: LoadedChunks,
        kept: Option<&Kept>,
        recording: impl Fn(u32) -> Option<Rc<dyn Replay>>,
    ) -> Self {
        let Self::Asked(ask) = self else { return self };
        Self::Parts(match (ask, chunks) {
            (Ask::RecordedChanges { number, entries, now }, _) => match recording(number) {
                Some(recording) => recording.changes(&entries, now),
                None => Box::new(Nothing),
            },
            (Ask::RecordedBatches { number, entries }, _) => match recording(number) {
                Some(recording) => recording.batches(&entries),
                None => Box::new(Nothing),
            },
            (ask, LoadedChunks { timer: Some(begin), .. }) if ask.is_timed() => {
                begin(kept.filter(|kept| ask.run() == Some(kept.id)), &ask)
            }
            (Ask::WhatIf { entries, now }, _) => Box::new(WhatIfWork::of(&entries, now)),
            (Ask::Setups(all), _) => Box::new(SetupsWork::of(all)),
            (Ask::Prefetch(all), _) => Box::new(PrefetchWork::of(all)),
            (
                Ask::Attention(entries),
                LoadedChunks {
                    attention: Some(begin), ..
                },
            ) => begin(&entries),
            (Ask::Sweep(entries), LoadedChunks { sweep: Some(begin), .. }) => begin(&entries),
            (
                Ask::Difference(both),
                LoadedChunks {
                    difference: Some(begin),
                    ..
                },
            ) => begin(&both),
            (
                Ask::Strategies(entries),
                LoadedChunks {
                    several: Some(several), ..
                },
            ) => (several.strategies)(&entries),
            (
                Ask::Numbers(entries),
                LoadedChunks {
                    several: Some(several), ..
                },
            ) => (several.numbers)(&entries),
            (
                Ask::Batches(entries),
                LoadedChunks {
                    batches: Some(begin), ..
                },
            ) => begin(&entries),
            (Ask::Plan { entries, card }, LoadedChunks { plan: Some(begin), .. }) => begin(&entries, card.as_deref()),
            (Ask::Cost { entries, prices, card }, LoadedChunks { cost: Some(begin), .. }) => {
                begin(&entries, &prices, card.as_deref())
            }
            (ask, _) => return Self::Asked(ask),
        })
    }
}

/// Work without an answer.
struct Nothing;

impl Parts for Nothing {
    fn left(&self) -> u32 {
        0
    }

    fn next(&mut self) -> Option<Answer> {
        None
    }
}

impl Host {
    /// Takes an order. A new question replaces the pending one in the same slot.
    pub fn take(&mut self, order: Order) {
        match order {
            Order::Ask { id, slot, ask } => {
                let job = Job {
                    id,
                    done: 0,
                    need: Need::of(&ask, self.chunks),
                    work: Work::Asked(ask),
                };
                self.jobs.insert(slot, job);
            }
            Order::Cancel(slot) => {
                self.jobs.remove(&slot);
            }
        }
    }

    /// Returns true if a question can be worked on now.
    pub fn is_busy(&self) -> bool {
        self.jobs.values().any(|job| job.need.is_none())
    }

    /// Returns the chunk that the most urgent blocked question waits for.
    pub fn need(&self) -> Option<Need> {
        self.jobs.values().find_map(|job| job.need)
    }

    /// Returns the chunks that are loaded.
    pub const fn chunks(&self) -> LoadedChunks {
        self.chunks
    }

    /// Records newly loaded chunks, which unblocks the questions that waited for them.
    pub fn receive(&mut self, chunks: LoadedChunks) {
        self.chunks = chunks;
        for job in self.jobs.values_mut() {
            if let Work::Asked(ask) = &job.work {
                job.need = Need::of(ask, chunks);
            }
        }
    }

    /// The recording that the most urgent question about one waits for.
    pub fn packed(&self) -> Option<Packed> {
        let waits = |job: &&Job| job.need == Some(Need::UnpackedRecording);
        match &self.jobs.values().find(waits)?.work {
            Work::Asked(Ask::Recorded { file, .. }) => Some(file.clone()),
            _ => None,
        }
    }

    /// A recording is unpacked: the question about it can begin.
    pub fn receive_recording(&mut self, number: u32, recording: Rc<dyn Replay>) {
        self.recording = Some((number, recording));
        self.receive(self.chunks);
    }

    /// Takes the most urgent job that matches the predicate.
    fn pop_first(&mut self, is_wanted: impl Fn(&Job) -> bool) -> Option<(Slot, Job)> {
        let (&slot, _) = self.jobs.iter().find(|(_, job)| is_wanted(job))?;
        self.jobs.remove_entry(&slot)
    }

    /// Drops one question that waits for a chunk that cannot be loaded, and replies without an answer.
    pub fn give_up(&mut self, need: Need) -> Option<Reply> {
        let (slot, job) = self.pop_first(|job| job.need == Some(need))?;
        Some(answered(slot, job.id, Progress::default(), None))
    }

    /// Runs one slice of the most urgent work.
    pub fn step(&mut self) -> Option<Reply> {
        let (slot, mut job) = self.pop_first(|job| job.need.is_none())?;
        let id = job.id;
        job.work = job
            .work
            .begin(self.chunks, self.kept.as_ref(), |number| self.recording(number));
        let (answer, left) = match &mut job.work {
            Work::Asked(ask) => match self.answer(id, ask) {
                Ok(answer) => (answer, 0),
                Err(need) => {
                    job.need = Some(need);
                    self.jobs.insert(slot, job);
                    return None;
                }
            },
            Work::Parts(parts) => {
                let answer = parts.next();
                // The work may end before its bound is reached.
                (answer, parts.left())
            }
        };
        job.done += 1;
        let (done, of) = (job.done, job.done + left);
        if left > 0 {
            self.jobs.insert(slot, job);
        }
        Some(answered(slot, id, Progress { done, of }, answer))
    }

    /// Returns the answer, `None` if there is none, or the chunk that it needs first.
    fn answer(&mut self, id: u32, ask: &Ask) -> Result<Option<Answer>, Need> {
        match ask {
            Ask::Run(draft) => {
                // Frees the kept run first; the next one needs its memory.
                self.kept = None;
                let run = self.read(draft)?.and_then(|subject| self.run(id, subject));
                Ok(Some(run.unwrap_or_else(|why| Answer::Run(Err(why)))))
            }
            Ask::Recorded { file, entries, first } => {
                let recording = self.recording(file.number).ok_or(Need::UnpackedRecording)?;
                self.kept = None;
                let (answer, kept) = recording.play(id, entries, *first);
                self.kept = kept;
                Ok(Some(answer))
            }
            Ask::Launch(launched) => {
                let Some(reader) = self.chunks.launch else {
                    return Ok(None);
                };
                let model = self.read(&(reader.model)(launched))?;
                let facts = match model {
                    Ok(subject) => Ok(ModelFacts::of(&subject.model)),
                    Err(Refusal::Model(message)) => Err(message),
                    Err(Refusal::Setup(why)) => Err(why.to_string()),
                };
                Ok(Some((reader.read)(launched, facts)))
            }
            ask => Ok(self.about(ask)),
        }
    }

    /// Answers a question about the kept run.
    fn about(&self, ask: &Ask) -> Option<Answer> {
        match ask {
            Ask::Details { run } => {
                let kept = self.kept(*run)?;
                Some(Answer::Details(Box::new(Details::of(&kept.ran.report))))
            }
            Ask::Live { run, instant } => self.live(*run, *instant).map(Answer::Live),
            Ask::Export { run, .. } | Ask::Derive { run, .. } => self.chunks.derive_or_export?(self.kept(*run)?, ask),
            Ask::Around { run, .. } => self.chunks.around?(self.kept(*run)?, ask),
            // Not questions about a kept run.
            Ask::Run(_)
            | Ask::Recorded { .. }
            | Ask::RecordedChanges { .. }
            | Ask::RecordedBatches { .. }
            | Ask::WhatIf { .. }
            | Ask::Setups(_)
            | Ask::Difference(_)
            | Ask::Launch(_)
            | Ask::Strategies(_)
            | Ask::Numbers(_)
            | Ask::Prefetch(_)
            | Ask::Attention(_)
            | Ask::Sweep(_)
            | Ask::Batches(_)
            | Ask::Plan { .. }
            | Ask::Cost { .. } => None,
            // Answered in several parts.
            Ask::Time { .. } => None,
        }
    }

    /// Reads entries to run, or returns the chunk that their model needs first.
    fn read(&self, draft: &Draft) -> Result<Result<Subject, Refusal>, Need> {
        let reading = Reading::of(draft, &Draft::default());
        let several = Need::to_share(&reading, self.chunks);
        if let Some(need) = Need::to_read(&reading.source, self.chunks).or(several) {
            return Err(need);
        }
        let read = Subject::of(reading);
        let group = read.as_ref().ok().and_then(|subject| subject.model.lazy_group());
        Need::models(group, self.chunks).map_or(Ok(read), Err)
    }

    fn run(&mut self, id: u32, subject: Subject) -> Result<Answer, Refusal> {
        let ran = subject.run()?;
        let run = subject.run_view(id, &ran);
        let card = run.card.clone().ok();
        self.kept = Some(Kept {
            id,
            subject: Some(subject),
            recorded: None,
            ran,
            card,
        });
        Ok(Answer::Run(Ok(Box::new(run))))
    }

    fn live(&self, run: u32, instant: Instant) -> Option<Live> {
        Some(Live::of(&self.kept(run)?.ran.report.timeline, instant))
    }

    fn recording(&self, number: u32) -> Option<Rc<dyn Replay>> {
        let of_number = self.recording.as_ref().filter(|(known, _)| *known == number);
        of_number.map(|(_, recording)| recording.clone())
    }

    fn kept(&self, run: u32) -> Option<&Kept> {
        self.kept.as_ref().filter(|kept| kept.id == run)
    }
}

fn answered(slot: Slot, id: u32, progress: Progress, answer: Option<Answer>) -> Reply {
    Reply::Answered {
        id,
        slot,
        progress,
        answer: answer.map(Box::new),
    }
}

#[cfg(test)]
mod tests;
