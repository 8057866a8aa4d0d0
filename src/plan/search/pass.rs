//! Records forward and backward passes and updates for a search.

use std::rc::Rc;

use vramscope_engine::setup::{Optimizer, Parallel};
use vramscope_engine::simulate::{
    Counted, ModelShare, Notes, Pass, PassRecorder, Recording, Share, SimulateError, UpdateInput, base_of_parts, count,
    record_notes, record_parallel_notes, record_update, record_update_input, share,
};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::work::WorkItem;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};
use vramscope_time::{Costs, Pace, Passes, seconds};

use super::shared::Shared;

/// The memory that an optimizer adds to a pass, and its update.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Live bytes of the optimizer's states.
    pub states: Bytes,
    /// Peak of live bytes of the update itself.
    pub peak: Bytes,
    /// Bytes of states that CUDA pages between host and card.
    pub paged: Bytes,
    /// Seconds of the update alone, and when the GPU lags far behind the host. The lag at the end of a pass delays the
    /// end of the update to the later of these two, so an update that is no slower in both is no slower after any pass.
    pub time: Option<[f64; 2]>,
    /// Work of GPU and host in the update on one GPU; its time depends on what runs before it.
    pub work: Rc<[WorkItem]>,
    /// Bytes of trained parameters, which are also the bytes of gradients sent between GPUs.
    pub trained: Bytes,
}

/// Memory and time of a whole step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    /// Peak of live bytes.
    pub peak: Bytes,
    /// Seconds of forward, backward and update.
    pub time: Option<[f64; 3]>,
    /// Bytes of states that CUDA pages between host and card.
    pub paged: Bytes,
    /// Bytes of trained parameters.
    pub trained: Bytes,
}

/// Live bytes, seconds of each phase, and bytes of paged states and of trained parameters.
type Recorded = (Counted, Option<[f64; 3]>, [Bytes; 2]);

/// Makes recordings, and counts them.
pub(crate) struct Recorder<'a> {
    pub gpu: Gpu,
    pub costs: Option<&'a Costs<'a>>,
    pub shared: Shared,
    /// The host's pace on `DTensor`s.
    pub sharded: Option<Pace>,
    passes: PassRecorder,
    /// Number of recordings made.
    pub recorded: usize,
}

/// The setup with at most two micro-batches per step: from the second on gradients exist, and all later micro-batches
/// need the same memory.
pub(crate) fn repeated(setup: &Setup) -> Setup {
    Setup {
        accum: setup.accum.min(2),
        ..setup.clone()
    }
}

/// The setup with at most two micro-batches per step, except in a pipeline, which has several in flight.
pub(crate) fn repeated_by(setup: &Setup, parallel: Option<&Parallel>) -> Setup {
    if parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) {
        setup.clone()
    } else {
        repeated(setup)
    }
}

/// The setup with plain SGD, which has no optimizer states.
fn without_states(setup: &Setup) -> Setup {
    repeated(&Setup {
        optim: Optimizer::Sgd,
        ..setup.clone()
    })
}

/// Returns true if each GPU holds a part of the model, so that one GPU's part of a step is recorded.
pub(super) fn has_parts(parallel: &Parallel) -> bool {
    parallel.is_in_parts()
}

/// The setup with at least as many micro-batches as a pipeline has stages.
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
    /// Creates a recorder for GPUs connected as `shared` describes.
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

    /// Costs of an update, on plain tensors or on `DTensor`s.
    pub fn of_update(&self, parallel: Option<&Parallel>) -> Option<Costs<'_>> {
        let (costs, sharded) = self.costs.zip(self.sharded.as_ref())?;
        let shards = parallel.is_some_and(|parallel| parallel.group() > 1);
        Some(costs.with_pace(if shards { sharded } else { costs.pace }))
    }

    /// Records forward and backward of one micro-batch without optimizer states: its peak of live bytes, and the work
    /// of GPU and host if costs are known.
    pub fn pass(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Pass, SimulateError> {
        if let Some(parallel) = parallel.filter(|parallel| parallel.strategy.is_pipeline()) {
            return self.staged_pass(model, setup, parallel);
        }
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        let pass = self.passes.record(model, &setup, place, self.costs.is_some())?;
        Ok(match parallel {
            // A pass on one GPU lacks what DDP and the like add, such as buckets of gradients. A whole run on several
            // has it; with plain SGD it has no states, which the search adds for each optimizer.
            Some(parallel) if !has_parts(parallel) => Pass {
                peak: self.counted(model, &without_states(&setup), Some(parallel))?.pass,
                ..pass
            },
            _ => pass,
        })
    }

    /// GPU and setup to record: if each GPU holds a part of the model, that part of the step; otherwise the step of a
    /// single GPU.
    fn place(
        &self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
    ) -> Result<(ModelShare, Setup), SimulateError> {
        let parts = parallel.filter(|parallel| has_parts(parallel));
        let setup = match parts {
            Some(parallel) => base_of_parts(model, &enough(setup, parallel), parallel)?,
            None => setup.clone(),
        };
        let share = parallel.map_or(Share::ALONE, share);
        Ok((ModelShare { gpu: self.gpu, share }, setup))
    }

    /// Records a whole step of a setup.
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

    /// Records the live memory that every update of a setup starts from.
    pub fn update_input(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
    ) -> Result<UpdateInput, SimulateError> {
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        record_update_input(model, &setup, place)
    }

    /// Records the update of a setup, which depends on the trained parameters and their dtypes, not on samples.
    pub fn update(
        &mut self,
        model: &Model,
        (setup, parallel): (&Setup, Option<&Parallel>),
        update_input: &UpdateInput,
    ) -> Result<Update, SimulateError> {
        let (place, setup) = self.place(model, setup, parallel)?;
        self.recorded += 1;
        let update = record_update(model, &setup, place, (update_input, self.costs.is_some()))?;
        Ok(Update {
            states: update.states,
            peak: update.peak,
            paged: update.paged,
            time: self.of_update(parallel).map(|costs| {
                [Passes::default(), Passes::with_gpu_backlog()].map(|mut passes| passes.update(&update.work, &costs))
            }),
            work: update.work.into(),
            trained: update.trained,
        })
    }

    /// Records the update on one of several GPUs; `bare` is the live memory without optimizer states, in bytes.
    pub fn shared_update(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: &Parallel,
        bare: Bytes,
    ) -> Result<Update, SimulateError> {
        let (counted, time, [paged, trained]) = self.record(model, setup, Some(parallel))?;
        Ok(Update {
            // Parameters are in both, and gradients are dropped in both, so the difference is the optimizer's states.
            states: counted.end.saturating_sub(bare),
            peak: counted.update,
            paged,
            time: time.map(|[.., update]| [Shared::of_update(Some(parallel), update); 2]),
            work: Rc::default(),
            trained,
        })
    }

    /// Live bytes after a step without optimizer states.
    pub fn bare(&mut self, model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Bytes, SimulateError> {
        Ok(self.counted(model, setup, Some(parallel))?.end)
    }

    /// Records one run with its time.
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
            .map(|&(id, _)| Bytes::new(run.log.allocations[id as usize].bytes))
            .sum();
        Ok((counted, time, [run.paged, trained]))
    }

    /// Records a run on one GPU, with the work of GPU and host if costs are known.
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
