//! The search space: settings that may change, and their values.

use serde::{Deserialize, Serialize};

use super::distance::learned_less;
use super::ways::{parallels, staged};
use crate::optimizers;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Parallel, Precision, Setting};
use vramscope_engine::simulate::SimulateError;
use vramscope_engine::simulate::{pipeline_stages, tensor_parts};
use vramscope_engine::{Model, Setup};

/// A setting that a search may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entry {
    /// Number format.
    Precision,
    /// Optimizer.
    Optim,
    /// Activation checkpointing.
    Ckpt,
    /// Attention implementation.
    Attn,
    /// Trained parts.
    Freeze,
    /// Implementation of the loss.
    Loss,
    /// Micro-batch.
    Batch,
    /// Pixels of images and frames.
    Resolution,
    /// Images per sample.
    Images,
    /// Frames per video.
    Frames,
    /// Parallel strategy.
    Strategy,
    /// Offloading of states, or of all inactive parts of the model, to the host's memory.
    Offload,
}

impl Entry {
    /// All settings, in menu order.
    pub const ALL: [Self; 12] = [
        Self::Precision,
        Self::Optim,
        Self::Ckpt,
        Self::Attn,
        Self::Freeze,
        Self::Loss,
        Self::Batch,
        Self::Resolution,
        Self::Images,
        Self::Frames,
        Self::Strategy,
        Self::Offload,
    ];

    /// The setting of a setup that the entry is, if it is one alone.
    pub const fn setting(self) -> Option<Setting> {
        match self {
            Self::Precision => Some(Setting::Precision),
            Self::Optim => Some(Setting::Optim),
            Self::Ckpt => Some(Setting::Ckpt),
            Self::Attn => Some(Setting::Attn),
            Self::Freeze => Some(Setting::Freeze),
            Self::Loss => Some(Setting::Loss),
            Self::Batch => Some(Setting::Batch),
            Self::Images => Some(Setting::Images),
            Self::Frames => Some(Setting::Frames),
            Self::Resolution | Self::Strategy | Self::Offload => None,
        }
    }

    /// The entry that a setting alone is, if a search may change it.
    pub fn of(setting: Setting) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.setting() == Some(setting))
    }

    /// Name of the entry: the key of its setting, if it is one.
    pub const fn name(self) -> &'static str {
        match (self.setting(), self) {
            (Some(setting), _) => setting.key(),
            (None, Self::Resolution) => "resolution",
            (None, Self::Strategy) => "strategy",
            (None, _) => "offload",
        }
    }

    /// Finds an entry by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entry| entry.name() == name)
    }

    /// Returns true if the setting stays fixed unless the person allows it to change: it alters the samples or uses
    /// host memory.
    pub const fn is_asked_for(self) -> bool {
        matches!(self, Self::Resolution | Self::Images | Self::Frames | Self::Offload)
    }
}

/// A sample: the model that takes it, and the setup that describes it.
#[derive(Debug, Clone)]
pub struct Input {
    /// The model; in some families its shape depends on the size of images and the number of frames.
    pub model: Model,
    /// The asked setup with this sample.
    pub setup: Setup,
    /// Distance from the asked sample; 0 for that sample itself.
    pub distance: u32,
}

/// Number of samples per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// A fixed number over all GPUs, in micro-batches of one size.
    Effective(u64),
    /// One micro-batch of as many as fit, up to this number.
    AsManyAsFit(u64),
}

impl Samples {
    /// The given number of samples; without one, as many as fit, up to 256.
    pub fn of(effective: Option<u64>) -> Self {
        effective.map_or(Self::AsManyAsFit(256), Self::Effective)
    }
}

/// The values of each setting that a search tries; the asked value comes first.
#[derive(Debug, Clone)]
pub struct Space {
    pub(super) inputs: Vec<Input>,
    pub(super) parallels: Vec<Option<Parallel>>,
    pub(super) precisions: Vec<Precision>,
    pub(super) optims: Vec<Optimizer>,
    pub(super) ckpts: Vec<Checkpointing>,
    pub(super) attns: Vec<Attention>,
    pub(super) freezes: Vec<Freeze>,
    pub(super) losses: Vec<Loss>,
    /// Micro-batches in ascending order, for strategies in which each GPU trains its own.
    pub(super) batches: Vec<u64>,
    /// Micro-batches in ascending order, for strategies in which all GPUs train one together.
    pub(super) common: Vec<u64>,
    /// Micro-batches in ascending order that give each stage of a pipeline one.
    pub(super) staged: Vec<u64>,
    pub(super) samples: Samples,
    pub(super) world: u64,
}

/// Error for a number of samples that no micro-batch divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "no micro-batch makes up {samples} samples a step on {gpus} GPUs in at most {MOST_ACCUMULATED} accumulated ones; \
     change the samples, the GPUs, or the micro-batch where it stays as it is"
)]
pub struct NoBatch {
    /// Samples per step over all GPUs.
    pub samples: u64,
    /// Number of GPUs.
    pub gpus: u64,
}

/// Largest number of micro-batches per step, the limit of [`simulate`](vramscope_engine::simulate()).
pub const MOST_ACCUMULATED: u64 = match Setting::Accum.declaration().most {
    Some(most) => most,
    None => u64::MAX,
};

impl Space {
    /// Creates the space of all values that apply to a model, except for settings that are kept.
    ///
    /// `inputs` are the samples that may be trained, the asked one first; `world` is the number of GPUs.
    pub fn around(inputs: Vec<Input>, samples: Samples, world: u64, kept: &[Entry]) -> Self {
        let open = |entry| !kept.contains(&entry);
        let (takes, asked) = match inputs.first() {
            Some(input) => (input.model.takes(), input.setup.clone()),
            None => (Takes::default(), Setup::default()),
        };
        let is_cut = |cut: fn(&Model, u64) -> Result<(), SimulateError>| {
            inputs.first().is_some_and(|input| cut(&input.model, world).is_ok())
        };
        let cut = [is_cut(tensor_parts), is_cut(pipeline_stages)];
        let common = batches(&asked, samples, 1, open(Entry::Batch));
        Self {
            parallels: parallels(world, open(Entry::Strategy), open(Entry::Offload), cut),
            staged: staged(&common, samples, world),
            precisions: choices(asked.precision, &precisions(&asked), open(Entry::Precision)),
            optims: choices(
                asked.optim,
                &optimizers::searched(asked.optim, open(Entry::Offload)),
                open(Entry::Optim),
            ),
            ckpts: choices(asked.ckpt, &ckpts(takes), open(Entry::Ckpt)),
            attns: choices(asked.attn, &[Attention::Sdpa, Attention::Eager], open(Entry::Attn)),
            freezes: choices(asked.freeze, &freezes(takes, asked.freeze), open(Entry::Freeze)),
            losses: choices(asked.loss, asked.loss.alike(), open(Entry::Loss) && takes.text),
            batches: batches(&asked, samples, world, open(Entry::Batch)),
            common,
            samples,
            world: world.max(1),
            inputs,
        }
    }

    /// Number of setups.
    pub fn len(&self) -> usize {
        let batches = |parallel: &Option<Parallel>| self.batches_of(parallel.as_ref()).len();
        let all: usize = self.parallels.iter().map(batches).sum();
        self.passes() / self.parallels.len().max(1) * self.optims.len() * all
    }

    /// Reason why the space is empty; `None` if it is not.
    pub fn refusal(&self) -> Option<NoBatch> {
        self.is_empty().then(|| NoBatch {
            samples: self.effective().unwrap_or(0),
            gpus: self.world,
        })
    }

    /// Returns true if no micro-batch divides the samples of a step.
    pub fn is_empty(&self) -> bool {
        let has_none = |parallel: &Option<Parallel>| self.batches_of(parallel.as_ref()).is_empty();
        self.parallels.iter().all(has_none) || self.inputs.is_empty()
    }

    /// Micro-batches of a parallel strategy, in ascending order.
    pub fn batches_of(&self, parallel: Option<&Parallel>) -> &[u64] {
        match parallel.map_or(self.world, Parallel::replicas) {
            1 if parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) => &self.staged,
            1 => &self.common,
            _ => &self.batches,
        }
    }

    /// Returns true if no micro-batch leaves one for each stage of a pipeline.
    pub(crate) fn has_no_stages(&self) -> bool {
        self.staged.is_empty()
    }

    /// Samples per step over all GPUs, if given.
    pub const fn effective(&self) -> Option<u64> {
        match self.samples {
            Samples::Effective(samples) => Some(samples),
            Samples::AsManyAsFit(_) => None,
        }
    }

    /// Number of GPUs.
    pub const fn world(&self) -> u64 {
        self.world
    }

    /// The asked setup.
    pub fn asked(&self) -> &Setup {
        self.input(0)
    }

    /// The model of an input.
    pub fn model(&self, input: usize) -> &Model {
        &self.inputs[input].model
    }

    /// The setup of an input.
    pub fn input(&self, input: usize) -> &Setup {
        &self.inputs[input].setup
    }

    /// The parallel strategy at an index; `None` for one GPU.
    pub fn parallel(&self, at: usize) -> Option<Parallel> {
        self.parallels.get(at).copied().flatten()
    }

    /// Number of micro-batches of `batch` samples per step under a parallel strategy.
    pub fn accum(&self, batch: u64, parallel: Option<&Parallel>) -> u64 {
        let at_once = parallel.map_or(self.world, Parallel::replicas);
        match self.samples {
            Samples::Effective(samples) => (samples / (batch * at_once)).max(1),
            Samples::AsManyAsFit(_) => 1,
        }
    }

    /// Returns true if the largest micro-batch alone fills a step, so that no gradients lie beside it, while smaller
    /// ones accumulate.
    pub(super) fn ends_without_gradients(&self, parallel: Option<&Parallel>) -> bool {
        // The first micro-batch of a step makes the gradients and every later one finds them, so the peak jumps by their
        // bytes between one micro-batch and two. Bounds that assume a convex curve must leave this end out.
        let batches = self.batches_of(parallel);
        let accum = |batch: Option<&u64>| batch.is_some_and(|batch| self.accum(*batch, parallel) > 1);
        accum(batches.first()) && !accum(batches.last())
    }

    /// Number of distinct forward and backward passes, not counting micro-batches.
    pub(super) fn passes(&self) -> usize {
        self.inputs.len()
            * self.parallels.len()
            * self.precisions.len()
            * self.ckpts.len()
            * self.attns.len()
            * self.freezes.len()
            * self.losses.len()
    }
}

/// Values of a setting, the asked one first: [`dominated`](super::dominated) and distances take the first as what was
/// asked.
fn choices<T: Copy + PartialEq>(asked: T, all: &[T], open: bool) -> Vec<T> {
    let others = all.iter().copied().filter(|choice| open && *choice != asked);
    std::iter::once(asked).chain(others).collect()
}

/// Micro-batches of one size that make up the samples of a step on `world` GPUs, in at most [`MOST_ACCUMULATED`] of them.
fn batches(asked: &Setup, samples: Samples, world: u64, open: bool) -> Vec<u64> {
    let most = match samples {
        Samples::Effective(samples) => samples / world.max(1),
        Samples::AsManyAsFit(most) => most,
    };
    let makes_up = |batch: &u64| match samples {
        Samples::Effective(samples) => {
            samples.is_multiple_of(batch * world.max(1)) && samples / (batch * world.max(1)) <= MOST_ACCUMULATED
        }
        Samples::AsManyAsFit(_) => true,
    };
    let all = if open { 1..=most } else { asked.batch..=asked.batch };
    all.filter(makes_up).collect()
}

/// Precisions to try, including higher ones than asked: with few samples autocast's copies can take more memory than
/// fp32.
fn precisions(asked: &Setup) -> Vec<Precision> {
    match asked.precision {
        Precision::AmpFp16 => vec![Precision::AmpFp16, Precision::Fp32],
        Precision::Fp16 => vec![Precision::Fp16, Precision::AmpFp16, Precision::Fp32],
        Precision::Fp16Amp => vec![Precision::Fp16Amp, Precision::AmpFp16, Precision::Fp32],
        Precision::Bf16Amp => vec![Precision::Bf16Amp, Precision::Bf16, Precision::AmpBf16, Precision::Fp32],
        _ => vec![Precision::Bf16, Precision::AmpBf16, Precision::Fp32],
    }
}

/// Checkpointing modes to try; a text model has no vision tower to checkpoint.
fn ckpts(takes: Takes) -> Vec<Checkpointing> {
    use Checkpointing as C;
    if !takes.checkpointing {
        vec![C::None]
    } else if takes.parts {
        vec![C::None, C::Vision, C::Language, C::Full]
    } else {
        vec![C::None, C::Full]
    }
}

/// Parts to train: at most what was asked, never more.
fn freezes(takes: Takes, asked: Freeze) -> Vec<Freeze> {
    let mut all = vec![Freeze::NONE];
    if takes.parts {
        all.push(Freeze::VISION);
    }
    if takes.text {
        all.extend([Freeze::Lora, Freeze::Qlora]);
    }
    if takes.parts {
        all.push(Freeze::ALL_BUT_CONNECTOR);
    }
    all.retain(|freeze| learned_less(*freeze) >= learned_less(asked));
    all
}
