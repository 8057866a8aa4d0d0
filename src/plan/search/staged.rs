//! Records each stage of a pipeline and takes the maximum of each figure.
//!
//! Once the pipeline is full, further micro-batches only add inputs and buffers that stay live for the whole step; so
//! only a few are recorded, and the rest is added. Taking the peak of one stage with the states of another
//! overestimates; recommended setups are therefore replayed through the allocator stage by stage.

use super::pass::{Recorder, Update, Whole};
use vramscope_engine::setup::{Optimizer, Parallel};
use vramscope_engine::simulate::{
    Pass, PassWork, Recording, SimulateError, Work, count, distinct_stages, record_parallel_notes,
};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};
use vramscope_time::{Passes, seconds};

/// The stages of a pipeline that differ from one another.
pub(super) fn stages(parallel: &Parallel) -> impl Iterator<Item = Parallel> + use<> {
    let parallel = *parallel;
    distinct_stages(parallel.world).map(move |stage| Parallel {
        stage: Some(stage),
        ..parallel
    })
}

/// Number of micro-batches to record.
pub(super) fn recorded(accum: u64, parallel: &Parallel) -> u64 {
    accum.clamp(parallel.world, parallel.world + 1)
}

/// Recording of one stage.
struct Stage {
    run: Recording,
    /// Bytes that the micro-batches beyond the recorded ones add.
    more: Bytes,
}

impl Recorder<'_> {
    fn stage(&mut self, model: &Model, setup: &Setup, stage: &Parallel) -> Result<Stage, SimulateError> {
        let few = recorded(setup.accum, stage);
        let recorded = Setup {
            accum: few,
            ..setup.clone()
        };
        // The schedule is given the whole batch at once, so that inputs of all micro-batches live for the whole step.
        self.recorded += 1;
        let run = record_parallel_notes(model, &recorded, stage, self.gpu, self.notes())?;
        let inputs = run
            .log
            .allocations
            .iter()
            .filter(|allocation| allocation.kind == Kind::Input);
        let each = inputs.map(|allocation| allocation.bytes).sum::<u64>() / few;
        Ok(Stage {
            run,
            more: Bytes::new(each * setup.accum.saturating_sub(few)),
        })
    }

    /// Seconds of the recorded micro-batches and of the update.
    fn stage_seconds(&self, parallel: &Parallel, work: &Work) -> Option<[f64; 3]> {
        let costs = self.costs?;
        let [in_forward, in_backward] = self.shared.between(Some(parallel), work.phases())?;
        let [forward, backward, update] = seconds(work, costs, costs);
        Some([forward + in_forward, backward + in_backward, update])
    }

    /// Forward and backward passes of a step without states: the largest peak of any stage, and the work of the
    /// slowest.
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

    /// A whole step: the maximum over the stages.
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

/// Maximum of two stages' updates.
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
