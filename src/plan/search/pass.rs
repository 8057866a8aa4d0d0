//! Recorded forwards and backwards, and recorded updates.

use std::rc::Rc;

use vramscope_engine::setup::{Optimizer, Parallel};
use vramscope_engine::simulate::{
    Counted, Ground, Notes, Pass, PassRecorder, Place, Recording, Share, SimulateError, base_of_parts, count,
    record_ground, record_notes, record_parallel_notes, record_update, share,
};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::work::Item;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};
use vramscope_time::{Costs, Pace, Passes, seconds};

use super::shared::Shared;

/// What an optimizer adds to a pass, and its update.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Live bytes of its states.
    pub states: Bytes,
    /// Highest live bytes of the update itself.
    pub peak: Bytes,
    /// States that CUDA moves between host and card.
    pub paged: Bytes,
    /// Seconds of the update by itself, and where the GPU is far behind the host. By how much it is behind at the end
    /// of a pass moves the end of the update by one of these two, whichever is later; so of two updates the one that
    /// is no slower in both is no slower after any pass.
    pub time: Option<[f64; 2]>,
    /// What GPU and host do in it, on one GPU: what it takes depends on what runs before it.
    pub work: Rc<[Item]>,
    /// Bytes of what is trained, and of what travels between GPUs.
    pub trained: Bytes,
}

/// A whole step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// Highest live bytes.
    pub peak: Bytes,
    /// Seconds of forward, backward and update.
    pub time: Option<[f64; 3]>,
    /// States that CUDA moves between host and card.
    pub paged: Bytes,
    /// Bytes of what is trained.
    pub trained: Bytes,
}

/// Live bytes, seconds of each phase, and bytes of paged states and of what is trained.
type Recorded = (Counted, Option<[f64; 3]>, [Bytes; 2]);

/// Where recordings come from.
pub(crate) struct Recorder<'a> {
    pub gpu: Gpu,
    pub costs: Option<&'a Costs<'a>>,
    pub shared: Shared,
    /// The host's pace over `DTensor`s.
    pub sharded: Option<Pace>,
    passes: PassRecorder,
    /// Recordings so far.
    pub recorded: usize,
}

/// The setup with at most two micro-batches a step: with gradients there from the one before, all later ones hold the
/// same bytes.
pub(crate) fn repeated(setup: &Setup) -> Setup {
    Setup {
        accum: setup.accum.min(2),
        ..setup.clone()
    }
}

/// The same where it is shared so: a pipeline has several of them at once.
pub(crate) fn repeated_by(setup: &Setup, parallel: Option<&Parallel>) -> Setup {
    if parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) {
        setup.clone()
    } else {
        repeated(setup)
    }
}

/// The same without states of an optimizer.
fn without_states(setup: &Setup) -> Setup {
    repeated(&Setup {
        optim: Optimizer::Sgd,
        ..setup.clone()
    })
}

/// Whether each GPU has a part of the model, so that its own part of a step is recorded.
pub(super) fn has_parts(parallel: &Parallel) -> bool {
    parallel.is_in_parts()
}

/// The setup with as many micro-batches as a pipeline takes at least.
fn enough(setup: &Setup, parallel: &Parallel) -> Setup {
    let least = if parallel.strategy.is_pipeline() {
        parallel.world
    } else {
        1
    };
    Setup {
        accum: setup.accum.max(least),
        ..setup.clone()
    }
}

impl<'a> Recorder<'a> {
    /// One that has recorded nothing yet, for cards that are joined so.
    pub fn new(gpu: Gpu, costs: Option<&'a Costs<'a>>, shared: Shared) -> Self {
        Self {
            gpu,
            costs,
            shared,
            sharded: costs.map(|costs| costs.pace.sharded()),
            passes: PassRecorder::default(),
            recorded: 0,
        }
    }

    /// Costs of an update: of tensors, or of `DTensor`s.
    pub fn of_update(&self, parallel: Option<&Parallel>) -> Option<Costs<'_>> {
        let (costs, sharded) = self.costs.zip(self.sharded.as_ref())?;
        let shards = parallel.is_some_and(|parallel| parallel.group() > 1);
        Some(costs.with_pace(if shards { sharded } else { costs.pace }))
    }

    /// One micro-batch's forward and backward of a setup, without the states of an optimizer: its highest live bytes,
    /// and what GPU and host do where that has a price.
    pub fn pass(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Pass, SimulateError> {
        if let Some(parallel) = parallel.filter(|parallel| parallel.strategy.is_pipeline()) {
            return self.staged_pass(model, setup, parallel);
        }
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        let pass = self.passes.record(model, &setup, place, self.costs.is_some())?;
        Ok(match parallel {
            Some(parallel) if !has_parts(parallel) => Pass {
                peak: self.counted(model, &without_states(&setup), Some(parallel))?.pass,
                ..pass
            },
            _ => pass,
        })
    }

    /// Where a setup is recorded, and as what: one of several GPUs that have each a part of the model records its own
    /// part of a step, any other a step of a single one.
    fn place(
        &self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
    ) -> Result<(Place, Setup), SimulateError> {
        let parts = parallel.filter(|parallel| has_parts(parallel));
        let setup = match parts {
            Some(parallel) => base_of_parts(model, &enough(setup, parallel), parallel)?,
            None => setup.clone(),
        };
        let share = parallel.map_or(Share::ALONE, share);
        Ok((Place { gpu: self.gpu, share }, setup))
    }

    /// A whole step of a setup.
    pub fn whole(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Whole, SimulateError> {
        if let Some(parallel) = parallel.filter(|parallel| parallel.strategy.is_pipeline()) {
            return self.staged_whole(model, setup, parallel);
        }
        self.record(model, &repeated(setup), parallel)
            .map(|(counted, time, [paged, trained])| Whole {
                peak: counted.pass.max(counted.update),
                time,
                paged,
                trained,
            })
    }

    /// What every update of a setup finds.
    pub fn ground(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
    ) -> Result<Ground, SimulateError> {
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        record_ground(model, &setup, place)
    }

    /// The update of a setup, which depends on what is trained and in what types, not on samples.
    pub fn update(
        &mut self,
        model: &Model,
        (setup, parallel): (&Setup, Option<&Parallel>),
        ground: &Ground,
    ) -> Result<Update, SimulateError> {
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        let update = record_update(model, &setup, place, (ground, self.costs.is_some()))?;
        Ok(Update {
            states: update.states,
            peak: update.peak,
            paged: update.paged,
            time: self.of_update(parallel).map(|costs| {
                [Passes::default(), Passes::behind()].map(|mut passes| passes.update(&update.work, &costs))
            }),
            work: update.work.into(),
            trained: update.trained,
        })
    }

    /// The same on each of several GPUs; `bare` is what lives without states.
    pub fn shared_update(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: &Parallel,
        bare: Bytes,
    ) -> Result<Update, SimulateError> {
        let (counted, time, [paged, trained]) = self.record(model, setup, Some(parallel))?;
        Ok(Update {
            states: counted.end.saturating_sub(bare),
            peak: counted.update,
            paged,
            time: time.map(|[.., update]| [Shared::of_update(Some(parallel), update); 2]),
            work: Rc::default(),
            trained,
        })
    }

    /// Live bytes once a step without states is over.
    pub fn bare(&mut self, model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Bytes, SimulateError> {
        Ok(self.counted(model, setup, Some(parallel))?.end)
    }

    /// One run with its time.
    fn record(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Recorded, SimulateError> {
        let parts = parallel.filter(|parallel| has_parts(parallel));
        let run = match parts {
            Some(parallel) => {
                self.recorded += 1;
                record_parallel_notes(model, setup, parallel, self.gpu, self.notes())?
            }
            None => self.work(model, setup)?,
        };
        let counted = match parallel {
            Some(_) if parts.is_none() => self.counted(model, setup, parallel)?,
            _ => count(&run),
        };
        let between = self.shared.between(parts, run.work.phases());
        let costs = self.costs.zip(self.of_update(parallel));
        let time = costs
            .zip(between)
            .map(|((costs, of_update), [in_forward, in_backward])| {
                let [forward, backward, update] = seconds(&run.work, costs, &of_update);
                [forward + in_forward, backward + in_backward, update]
            });
        let trained = run.parameters.iter().filter(|(_, trained)| *trained);
        let trained = trained
            .map(|&(id, _)| Bytes::new(run.log.births[id as usize].bytes))
            .sum();
        Ok((counted, time, [run.paged, trained]))
    }

    /// A run on one GPU, with what GPU and host do where that has a price.
    fn work(&mut self, model: &Model, setup: &Setup) -> Result<Recording, SimulateError> {
        self.recorded += 1;
        record_notes(model, setup, self.gpu, self.notes())
    }

    pub(super) fn notes(&self) -> Notes {
        Notes {
            work: self.costs.is_some(),
            sums: true,
        }
    }

    fn counted(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Counted, SimulateError> {
        self.recorded += 1;
        let notes = Notes {
            work: false,
            sums: true,
        };
        Ok(count(&match parallel {
            None => record_notes(model, setup, self.gpu, notes)?,
            Some(parallel) => record_parallel_notes(model, setup, parallel, self.gpu, notes)?,
        }))
    }
}
