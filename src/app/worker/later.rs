//! What the host computes with a chunk of the program that is fetched when it is first needed: what the first
//! view of a page does not ask for.

use super::attention::AttentionWork;
use super::batches::BatchWork;
use super::coded::Coded;
use super::host::{Kept, Parts};
use super::plans::PlanWork;
use super::played::Recorder;
use super::protocol::{Answer, Ask};
use super::run::{Subject, model};
use super::sweep::SweepWork;
use crate::state::{Draft, Reading};

/// Begins work in many slices on entries.
pub type Begin = fn(&Draft) -> Box<dyn Parts>;
/// Answers a question about a run.
pub type Closer = fn(&Kept, &Ask) -> Option<Answer>;
/// Begins to answer one that needs the time of a run, if it is kept.
pub type Timer = fn(Option<&Kept>, &Ask) -> Box<dyn Parts>;

/// The curves of attention.
pub fn attention(entries: &Draft) -> Box<dyn Parts> {
    Box::new(AttentionWork::of(entries))
}

/// A sweep.
pub fn sweep(entries: &Draft) -> Box<dyn Parts> {
    Box::new(SweepWork::of(entries))
}

/// A search for the largest micro-batch.
pub fn batches(entries: &Draft) -> Box<dyn Parts> {
    Box::new(BatchWork::of(entries))
}

/// A search for setups that run.
pub fn plan(entries: &Draft) -> Box<dyn Parts> {
    Box::new(PlanWork::of(entries))
}

/// How a number comes about, or the run as a table.
pub fn closer(kept: &Kept, ask: &Ask) -> Option<Answer> {
    match ask {
        Ask::Export { file, .. } => {
            let table = file.table(&kept.ran.report)?;
            Some(Answer::File(table))
        }
        Ask::Derive { quantity, changed, .. } => {
            let quantity = quantity.open()?;
            let now = kept.subject.as_ref()?.explained(&kept.ran.report, kept.card.as_ref());
            let found = match changed {
                None => now.derivation(&quantity)?,
                Some(entries) => {
                    let subject = Subject::read(entries).ok()?;
                    let ran = subject.run().ok()?;
                    let card = subject.card(&ran.report).ok();
                    let changed = subject.explained(&ran.report, card.as_ref());
                    now.derivation_beside(changed, &quantity)?
                }
            };
            Some(Answer::Derivation(Coded::of(&found)))
        }
        _ => None,
    }
}

/// A chunk that the host needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// [`attention`].
    Attention,
    /// [`sweep`].
    Sweep,
    /// [`batches`].
    Batches,
    /// [`plan`].
    Plan,
    /// [`closer`].
    Closer,
    /// [`time::begin`](super::time::begin).
    Timer,
    /// What runs most families of models.
    Models,
    /// [`Recorder`].
    Recorder,
    /// A recording, unpacked.
    Unpacked,
}

impl Need {
    /// What a question needs of what is not there yet. A run finds out by itself: its model is read just once.
    pub fn of(ask: &Ask, here: Here) -> Option<Self> {
        let own = match ask {
            Ask::Attention(_) => Some(Self::Attention),
            Ask::Sweep(_) => Some(Self::Sweep),
            Ask::Batches(_) => Some(Self::Batches),
            Ask::Plan(_) => Some(Self::Plan),
            ask if ask.is_timed() => Some(Self::Timer),
            Ask::Export { .. } | Ask::Derive { .. } => Some(Self::Closer),
            Ask::Recorded { .. } | Ask::RecordedJson { .. } => Some(Self::Recorder),
            _ => None,
        };
        let runs = match ask {
            Ask::Sweep(entries) | Ask::Batches(entries) | Ask::Plan(entries) | Ask::WhatIf { entries, .. } => {
                std::slice::from_ref(entries)
            }
            Ask::Setups(all) | Ask::Near(all) => all,
            _ => &[],
        };
        own.filter(|need| !here.has(*need))
            .or_else(|| (!here.models && runs.iter().any(is_further)).then_some(Self::Models))
    }
}

/// Whether entries are of a model that the first program does not run.
fn is_further(entries: &Draft) -> bool {
    model(&Reading::of(entries, &Draft::default())).is_ok_and(|model| model.is_further())
}

/// The chunks that are there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here {
    /// [`attention`].
    pub attention: Option<Begin>,
    /// [`sweep`].
    pub sweep: Option<Begin>,
    /// [`batches`].
    pub batches: Option<Begin>,
    /// [`plan`].
    pub plan: Option<Begin>,
    /// [`closer`].
    pub closer: Option<Closer>,
    /// [`time::begin`](super::time::begin).
    pub timer: Option<Timer>,
    /// Whether models of every family run.
    pub models: bool,
    /// What plays recordings.
    pub recorder: Option<Recorder>,
}

impl Here {
    /// All of them: natively nothing is fetched.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn all() -> Self {
        Self {
            attention: Some(attention),
            sweep: Some(sweep),
            batches: Some(batches),
            plan: Some(plan),
            closer: Some(closer),
            timer: Some(super::time::begin),
            models: true,
            recorder: Some(super::played::recorder()),
        }
    }

    /// Whether this one is there.
    pub const fn has(&self, need: Need) -> bool {
        match need {
            Need::Attention => self.attention.is_some(),
            Need::Sweep => self.sweep.is_some(),
            Need::Batches => self.batches.is_some(),
            Need::Plan => self.plan.is_some(),
            Need::Closer => self.closer.is_some(),
            Need::Timer => self.timer.is_some(),
            Need::Models => self.models,
            Need::Recorder => self.recorder.is_some(),
            Need::Unpacked => false,
        }
    }

    /// Fetches one; in a browser only.
    #[cfg(target_arch = "wasm32")]
    pub async fn fetch(mut self, need: Need) -> Option<Self> {
        match need {
            Need::Attention => self.attention = Some(crate::chunk::attention_work().await.ok()?),
            Need::Sweep => self.sweep = Some(crate::chunk::sweep_work().await.ok()?),
            Need::Batches => self.batches = Some(crate::chunk::batches_work().await.ok()?),
            Need::Plan => self.plan = Some(crate::chunk::plan_work().await.ok()?),
            Need::Closer => self.closer = Some(crate::chunk::closer_work().await.ok()?),
            Need::Timer => self.timer = Some(crate::chunk::time_work().await.ok()?),
            Need::Recorder => self.recorder = Some(crate::chunk::recorder_work().await.ok()?),
            // That is of one question (`Pump::unpack`).
            Need::Unpacked => {}
            Need::Models => {
                crate::chunk::further_models().await.ok()?.provide();
                self.models = true;
            }
        }
        Some(self)
    }
}
