//! Stages of a pipeline: each is recorded, and the most of each figure counts.
//!
//! More micro-batches than are ever in flight change nothing but what lies there all step long, inputs and buffers; so
//! few are recorded, and these are added. The peak of one stage beside the states of another is more than any takes:
//! what is offered is played through the allocator stage by stage.

use super::pass::{Recorder, Update, Whole};
use vramscope_engine::setup::{Optimizer, Parallel};
use vramscope_engine::simulate::{
    Pass, PassWork, Recording, SimulateError, Work, count, distinct_stages, record_parallel_notes,
};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};
use vramscope_time::{Passes, seconds};

/// The stages of a pipeline that are told apart.
pub(super) fn stages(parallel: &Parallel) -> impl Iterator<Item = Parallel> + use<> {
    let parallel = *parallel;
    distinct_stages(parallel.world).map(move |stage| Parallel {
        stage: Some(stage),
        ..parallel
    })
}

/// Micro-batches that are recorded.
pub(super) fn recorded(accum: u64, parallel: &Parallel) -> u64 {
    accum.clamp(parallel.world, parallel.world + 1)
}

/// One stage.
struct Stage {
    run: Recording,
    /// Bytes of what more micro-batches bring with them.
    more: Bytes,
}

impl Recorder<'_> {
    fn stage(&mut self, model: &Model, setup: &Setup, stage: &Parallel) -> Result<Stage, SimulateError> {
        let few = recorded(setup.accum, stage);
        let recorded = Setup {
            accum: few,
            ..setup.clone()
        };
        self.recorded += 1;
        let run = record_parallel_notes(model, &recorded, stage, self.gpu, self.notes())?;
        let inputs = run.log.births.iter().filter(|birth| birth.kind == Kind::Input);
        let each = inputs.map(|birth| birth.bytes).sum::<u64>() / few;
        Ok(Stage {
            run,
            more: Bytes::new(each * setup.accum.saturating_sub(few)),
        })
    }

    /// Seconds of the micro-batches that were recorded and of the update.
    fn stage_seconds(&self, parallel: &Parallel, work: &Work) -> Option<[f64; 3]> {
        let costs = self.costs?;
        let [in_forward, in_backward] = self.shared.between(Some(parallel), work.phases())?;
        let [forward, backward, update] = seconds(work, costs, costs);
        Some([forward + in_forward, backward + in_backward, update])
    }

    /// Forwards and backwards of a step without states: the highest live bytes of any stage, and what the slowest does.
    pub(super) fn staged_pass(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: &Parallel,
    ) -> Result<Pass, SimulateError> {
        let bare = Setup {
            optim: Optimizer::Sgd,
            ..setup.clone()
        };
        let mut most: Option<(f64, Pass)> = None;
        for stage in stages(parallel) {
            let Stage { run, more } = self.stage(model, &bare, &stage)?;
            let peak = count(&run).pass + more;
            let costs = self.costs;
            let work = PassWork::from(run.work);
            let slow = costs.map_or(0.0, |costs| Passes::of(work.phases(), costs).seconds.iter().sum());
            most = Some(match most {
                Some((known, pass)) if known >= slow => (
                    known,
                    Pass {
                        peak: pass.peak.max(peak),
                        ..pass
                    },
                ),
                other => {
                    let peak = other.map_or(peak, |(_, pass)| pass.peak.max(peak));
                    (slow, Pass { peak, work })
                }
            });
        }
        match most {
            Some((_, pass)) => Ok(pass),
            None => unreachable!("a pipeline has stages"),
        }
    }

    /// A whole step: the most of any stage.
    pub(super) fn staged_whole(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: &Parallel,
    ) -> Result<Whole, SimulateError> {
        let mut most: Option<Whole> = None;
        for stage in stages(parallel) {
            let Stage { run, more } = self.stage(model, setup, &stage)?;
            let counted = count(&run);
            let whole = Whole {
                peak: counted.pass.max(counted.update) + more,
                time: self.stage_seconds(&stage, &run.work),
                paged: run.paged,
                trained: Bytes::ZERO,
            };
            let total = |time: Option<[f64; 3]>| time.map_or(0.0, |time| time.iter().sum());
            most = Some(match most {
                Some(known) => Whole {
                    peak: known.peak.max(whole.peak),
                    time: if total(known.time) >= total(whole.time) {
                        known.time
                    } else {
                        whole.time
                    },
                    ..known
                },
                None => whole,
            });
        }
        match most {
            Some(whole) => Ok(whole),
            None => unreachable!("a pipeline has stages"),
        }
    }
}

/// The most of two stages' updates.
pub(super) fn most(one: Update, other: Update) -> Update {
    let slower = |a: &Update, b: &Update| a.time.map_or(0.0, |[time, _]| time) >= b.time.map_or(0.0, |[time, _]| time);
    let [slow, quick] = if slower(&one, &other) {
        [one, other]
    } else {
        [other, one]
    };
    Update {
        states: slow.states.max(quick.states),
        peak: slow.peak.max(quick.peak),
        paged: slow.paged.max(quick.paged),
        trained: slow.trained.max(quick.trained),
        ..slow
    }
}
