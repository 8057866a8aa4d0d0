//! The engine in one call: a model, a setup, the GPU, and how several of them share the step.

use super::{Recording, SimulateError, record_checked, record_parallel, simulate_on, simulate_parallel};
use crate::setup::Parallel;
use crate::tape::Gpu;
use crate::{Model, Report, Setup};

/// A simulation of three training steps, of which the last is reported.
///
/// # A guided example
///
/// A model is known by name, or read from its `config.json` ([`Model::from_config`]):
///
/// ```
/// use vramscope_engine::device::Device;
/// use vramscope_engine::setup::{Checkpointing, Parallel, Strategy};
/// use vramscope_engine::verdict::{Fit, Room, Verdict};
/// use vramscope_engine::{Model, Setup, Simulation};
///
/// let model = Model::from_catalogue("gpt2")?;
///
/// // What is not chosen stays as it is by default.
/// let setup = Setup { batch: 8, seq: 1024, ..Setup::default() };
/// let report = Simulation::new(&model, &setup).run()?;
///
/// // Every byte is accounted for: the phase that holds the peak decides, and the breakdown adds up to it.
/// assert_eq!(report.peak_allocated, report.steady.peak_of(report.peak_phase));
/// assert_eq!(report.peak_allocated, report.breakdown.bytes);
///
/// // A card decides which kernels run, and whether the run has room.
/// let card = Device::by_name("RTX 4090")?;
/// let gpu = card.gpu().expect("its multiprocessors are known");
/// let report = Simulation::new(&model, &setup).gpu(gpu).run()?;
/// let fit = Fit::of(&report, Room::Card(card));
/// assert_eq!(fit.verdict, Verdict::Fits);
/// assert!(fit.needed > report.peak_allocated, "the CUDA context counts too");
///
/// // One change at a time shows what it saves: here activations, so the peak must lie where they live.
/// let checkpointed = Setup { ckpt: Checkpointing::Full, ..setup.clone() };
/// let saved = Simulation::new(&model, &checkpointed).gpu(gpu).run()?;
/// assert!(saved.peak_allocated < report.peak_allocated);
///
/// // Of several GPUs the first is simulated.
/// let parallel = Parallel { strategy: Strategy::Fsdp, world: 4, ..Parallel::default() };
/// let shard = Simulation::new(&model, &setup).gpu(gpu).parallel(parallel).run()?;
/// assert!(shard.steady.end < report.steady.end, "each GPU holds a quarter of weights and states");
///
/// // What cannot run is refused with what to change.
/// let none = Setup { batch: 0, ..setup };
/// let refused = Simulation::new(&model, &none).run().unwrap_err();
/// assert!(refused.to_string().contains("`batch` is 0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Simulation<'a> {
    model: &'a Model,
    setup: &'a Setup,
    parallel: Option<Parallel>,
    gpu: Gpu,
}

impl<'a> Simulation<'a> {
    /// A simulation on one GPU, with the shape of an H200 unless [`Self::gpu`] names another.
    pub fn new(model: &'a Model, setup: &'a Setup) -> Self {
        Self {
            model,
            setup,
            parallel: None,
            gpu: Gpu::default(),
        }
    }

    /// The same on a GPU of this shape, which decides the kernels that run and what they take.
    #[must_use]
    pub const fn gpu(self, gpu: Gpu) -> Self {
        Self { gpu, ..self }
    }

    /// The same on the first of several GPUs that share the step, or on one for `None`.
    #[must_use]
    pub fn parallel(self, parallel: impl Into<Option<Parallel>>) -> Self {
        Self {
            parallel: parallel.into(),
            ..self
        }
    }

    /// Simulates the steps and reports their memory.
    ///
    /// # Errors
    /// When the setup does not fit the model (zero batch, text shorter than its image tokens, …), the strategy is not
    /// simulated for it, or the run itself would fail; the message says what to change.
    pub fn run(self) -> Result<Report, SimulateError> {
        match &self.parallel {
            None => simulate_on(self.model, self.setup, self.gpu),
            Some(parallel) => simulate_parallel(self.model, self.setup, parallel, self.gpu),
        }
    }

    /// Records the steps' allocations and kernels, to be replayed or timed.
    ///
    /// # Errors
    /// Those of [`Self::run`], but for the allocator's.
    pub fn record(self) -> Result<Recording, SimulateError> {
        match &self.parallel {
            None => record_checked(self.model, self.setup, self.gpu),
            Some(parallel) => record_parallel(self.model, self.setup, parallel, self.gpu),
        }
    }
}
