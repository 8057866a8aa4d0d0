//! Simulates the effect of every single change to a setup.

use serde::{Deserialize, Serialize};

use super::change::changes;
use vramscope_engine::report::{Phase, StepBytes};
use vramscope_engine::setup::{Change, Parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room, Verdict};
use vramscope_engine::{Model, Report, Setup, SimulateError, simulate_on};

/// Memory of the current run, to compare changes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Peak of reserved bytes.
    pub reserved: Bytes,
    /// Memory of the steady step.
    pub steady: StepBytes,
}

/// Effect of a change, as the difference of two simulations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Change of the reserved peak in bytes. Memory outside the allocator does not change.
    pub difference: i64,
    /// Change of the peak in bytes, for forward, backward and optimizer.
    pub phases: [(Phase, i64); 3],
    /// Phase of the peak after the change.
    pub peak_phase: Phase,
    /// Verdict on the changed run, if the card is known.
    pub verdict: Option<Verdict>,
}

/// One change and its effect, or the reason why the changed setup cannot run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The change.
    pub change: Change,
    /// Effect of the change.
    pub effect: Result<Effect, SimulateError>,
}

/// Simulates a step on one of several GPUs; [`simulate_parallel`](vramscope_engine::simulate::simulate_parallel).
pub type SimulateSeveral = fn(&Model, &Setup, &Parallel, Gpu) -> Result<Report, SimulateError>;

/// Tries every single change that applies to a setup. Each [`next`](Iterator::next) simulates one.
pub struct WhatIf {
    model: Model,
    setup: Setup,
    gpu: Gpu,
    room: Option<Room<'static>>,
    now: Now,
    /// Several GPUs that share the run, and what simulates one of them.
    several: Option<(Parallel, SimulateSeveral)>,
    changes: std::vec::IntoIter<Change>,
}

impl WhatIf {
    /// Creates the changes of a setup whose run has the memory in `now`, on a GPU with this room.
    pub fn new(model: Model, setup: Setup, gpu: Gpu, room: Option<Room<'static>>, now: Now) -> Self {
        let changes = changes(&model, &setup).into_iter();
        Self {
            model,
            setup,
            gpu,
            room,
            now,
            several: None,
            changes,
        }
    }

    /// The same changes where several GPUs share the run. What simulates one of them is given, so that only a frontend
    /// that needs its code contains it.
    #[must_use]
    pub fn on_several(self, parallel: Parallel, simulate: SimulateSeveral) -> Self {
        Self {
            several: Some((parallel, simulate)),
            ..self
        }
    }

    fn simulate(&self, setup: &Setup) -> Result<Report, SimulateError> {
        match &self.several {
            None => simulate_on(&self.model, setup, self.gpu),
            Some((parallel, simulate)) => simulate(&self.model, setup, parallel, self.gpu),
        }
    }

    /// Tries the next change; returns its effect, and the report if it can run.
    pub fn try_next(&mut self) -> Option<(Tried, Option<Report>)> {
        let change = self.changes.next()?;
        let (effect, report) = match self.simulate(&change.apply(&self.setup)) {
            Ok(report) => {
                let gpus = self.several.map_or(1, |(parallel, _)| parallel.world);
                let verdict = self.room.map(|room| Fit::of_each(&report, room, gpus).verdict);
                (Ok(self.now.effect(&report, verdict)), Some(report))
            }
            Err(why) => (Err(why), None),
        };
        Some((Tried { change, effect }, report))
    }
}

impl Iterator for WhatIf {
    type Item = Tried;

    fn next(&mut self) -> Option<Tried> {
        self.try_next().map(|(tried, _)| tried)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.changes.size_hint()
    }
}

impl ExactSizeIterator for WhatIf {}

impl Now {
    /// Memory of a report's run.
    pub const fn of(report: &Report) -> Self {
        Self {
            reserved: report.peak_reserved,
            steady: report.steady,
        }
    }

    /// Effect of going from this run to another, whose verdict is given if its card is known.
    pub fn effect(&self, then: &Report, verdict: Option<Verdict>) -> Effect {
        let (before, after) = (&self.steady, &then.steady);
        Effect {
            difference: then.peak_reserved.difference_to(self.reserved),
            phases: [Phase::Forward, Phase::Backward, Phase::Optimizer]
                .map(|phase| (phase, after.peak_of(phase).difference_to(before.peak_of(phase)))),
            peak_phase: then.peak_phase,
            verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::format::rounds_to_nothing;
    use vramscope_engine::setup::{Checkpointing, Optimizer};
    use vramscope_engine::simulate;

    fn tried(setup: &Setup) -> (Report, Vec<Tried>) {
        let model = Model::from_catalogue("gpt2").unwrap();
        let now = simulate(&model, setup).unwrap();
        let what_if = WhatIf::new(model, setup.clone(), Gpu::default(), None, Now::of(&now));
        assert_eq!(what_if.len(), what_if.size_hint().0);
        (now, what_if.collect())
    }

    fn effect<'a>(tried: &'a [Tried], change: &Change) -> &'a Effect {
        let found = tried.iter().find(|t| t.change == *change).unwrap();
        found.effect.as_ref().unwrap()
    }

    #[test]
    fn a_difference_is_that_of_two_runs() {
        let setup = Setup {
            seq: 512,
            ..Setup::default()
        };
        let (now, all) = tried(&setup);
        let model = Model::from_catalogue("gpt2").unwrap();
        for Tried { change, effect } in &all {
            let alone = simulate(&model, &change.apply(&setup));
            match (effect, alone) {
                (Ok(effect), Ok(alone)) => {
                    let reserved = now.peak_reserved.get().checked_add_signed(effect.difference);
                    assert_eq!(reserved, Some(alone.peak_reserved.get()), "{change:?}");
                    assert_eq!(effect.peak_phase, alone.peak_phase);
                }
                (Err(told), Err(e)) => assert_eq!(*told, e),
                (told, alone) => panic!("{change:?}: {told:?}, alone {:?}", alone.map(|r| r.peak_reserved)),
            }
        }
        assert!(all.iter().any(|t| t.effect.is_err()), "GPT-2 takes no adapters");
    }

    #[test]
    fn what_does_not_touch_the_phase_of_the_peak_saves_nothing() {
        // With one short sample the foreach optimizer's temporaries hold the peak.
        let setup = Setup {
            seq: 32,
            ..Setup::default()
        };
        let (now, all) = tried(&setup);
        assert_eq!(now.peak_phase, Phase::Optimizer);
        let checkpointed = effect(&all, &Change::Ckpt(Checkpointing::Full));
        // Blocks at other addresses may change the reserved memory slightly.
        assert!(rounds_to_nothing(checkpointed.phases[2].1), "{checkpointed:?}");
        assert_eq!(checkpointed.peak_phase, Phase::Optimizer);
        let fused = effect(&all, &Change::Optim(Optimizer::AdamwFused));
        assert!(fused.difference < 0 && fused.phases[2].1 < 0);
    }
}
