//! Simulates one of several GPUs. The code has a chunk of its own, since a first visit simulates a single GPU.

use std::collections::VecDeque;

use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::simulate::{can_train, simulate_parallel};
use vramscope_plan::SimulateSeveral;

use super::coded::Coded;
use super::lazy::Begin;
use super::protocol::Answer;
use super::run::Subject;
use super::shared_step::provide;
pub use super::shared_step::{Offered, OnNumber};
use super::slices::Parts;
use crate::state::{Draft, Key, Reading, Task, world};

/// Code of the chunk.
#[derive(Debug, Clone, Copy)]
pub struct Several {
    /// Simulates a step.
    pub simulate: SimulateSeveral,
    /// Says which strategies a setup can take.
    pub strategies: Begin,
    /// Simulates a setup on each of a few numbers of GPUs.
    pub numbers: Begin,
}

impl Several {
    /// Returns the code. The caller's part of the program contains it.
    pub fn own() -> Self {
        Self {
            simulate: simulate_parallel,
            strategies: |entries| Box::new(StrategiesWork::of(entries)),
            numbers: |entries| Box::new(NumbersWork::of(entries)),
        }
    }

    /// Makes the code available from now on.
    pub fn provide(self) {
        provide(self.simulate);
    }
}

/// Strategies that entries can take, in one part; none if they describe no model or cannot run on one GPU either.
struct StrategiesWork(Option<Subject>);

impl StrategiesWork {
    fn of(entries: &Draft) -> Self {
        Self(Subject::read(entries).ok())
    }
}

impl Parts for StrategiesWork {
    fn left(&self) -> u32 {
        self.0.is_some().into()
    }

    fn next(&mut self) -> Option<Answer> {
        let subject = self.0.take()?;
        let parallel = subject.reading.parallel.unwrap_or_default();
        Some(Answer::Strategies(Coded::of(&offered(&subject, &parallel))))
    }
}

/// All strategies for as many GPUs, without options of one of them.
fn offered(subject: &Subject, parallel: &Parallel) -> Vec<Offered> {
    let offer = |strategy: &Strategy| {
        let parallel = Parallel {
            strategy: *strategy,
            world: parallel.world,
            ..Parallel::default()
        };
        Offered {
            strategy: *strategy,
            refusal: can_train(&subject.model, &subject.reading.setup, &parallel).err(),
        }
    };
    Strategy::ALL.iter().map(offer).collect()
}

/// Numbers of GPUs that are always shown.
const NUMBERS: [u64; 4] = [1, 2, 4, 8];

/// Strategies that one GPU's setup is shown with on several, the one that saves the most first.
const USUAL: [Strategy; 4] = [Strategy::Fsdp, Strategy::Zero1, Strategy::DdpView, Strategy::Ddp];

/// A setup on a few numbers of GPUs and, on several, by other strategies: one simulation each.
struct NumbersWork {
    entries: Draft,
    parallel: Parallel,
    left: VecDeque<(u64, Option<Strategy>)>,
}

impl NumbersWork {
    /// Prepares the runs; none if the entries describe no model or do not train.
    fn of(entries: &Draft) -> Self {
        let subject = Subject::read(entries).ok();
        let Some(subject) = subject.filter(|subject| subject.reading.task == Task::Train) else {
            return Self {
                entries: Draft::default(),
                parallel: Parallel::default(),
                left: VecDeque::new(),
            };
        };
        let mut numbers = NUMBERS.to_vec();
        numbers.push(subject.gpus().max(1));
        numbers.sort_unstable();
        numbers.dedup();
        let parallel = chosen(entries).unwrap_or_else(|| usual(&subject));
        let others = others(&subject, &parallel).into_iter();
        let others = others.map(|strategy| (parallel.world, Some(strategy)));
        Self {
            entries: entries.clone(),
            parallel,
            left: numbers.into_iter().map(|gpus| (gpus, None)).chain(others).collect(),
        }
    }
}

/// Other strategies that the setup can take on as many GPUs; none on one.
fn others(subject: &Subject, parallel: &Parallel) -> Vec<Strategy> {
    if subject.gpus() <= 1 {
        return Vec::new();
    }
    let offered = offered(subject, parallel).into_iter();
    let can = offered.filter(|offered| offered.refusal.is_none());
    can.map(|offered| offered.strategy)
        .filter(|strategy| *strategy != parallel.strategy)
        .collect()
}

/// How several GPUs share a run as entered, for one GPU too if a strategy was entered.
fn chosen(entries: &Draft) -> Option<Parallel> {
    let mut shared = entries.clone();
    if world(entries) == 1 {
        let two = entries.has(Key::Strategy).then_some("2")?;
        shared.set(Key::World, two);
    }
    Reading::of(&shared, &Draft::default()).parallel
}

/// The first usual strategy that a setup can take; the very first if it can take none, so that its refusal is shown.
fn usual(subject: &Subject) -> Parallel {
    let of = |strategy: Strategy| Parallel {
        strategy,
        ..Parallel::default()
    };
    let can = |strategy: &Strategy| can_train(&subject.model, &subject.reading.setup, &of(*strategy)).is_ok();
    of(USUAL.into_iter().find(can).unwrap_or(USUAL[0]))
}

impl Parts for NumbersWork {
    fn left(&self) -> u32 {
        self.left.len() as u32
    }

    fn next(&mut self) -> Option<Answer> {
        let (gpus, other) = self.left.pop_front()?;
        let mut entries = self.entries.clone();
        match (gpus, other) {
            // The strategy stays, for the way back.
            (1, _) => entries.set(Key::World, "1"),
            (world, None) => entries.share(Some(&Parallel { world, ..self.parallel })),
            // Options are of one strategy.
            (world, Some(strategy)) => entries.share(Some(&Parallel {
                world,
                strategy,
                ..Parallel::default()
            })),
        }
        let found = super::setups::summary(&entries);
        let answer = OnNumber {
            gpus,
            other,
            entries,
            found,
        };
        Some(Answer::OnNumber(Coded::of(&answer)))
    }
}

#[cfg(test)]
mod tests;
