//! What may be changed of a setup: the values that a search goes through.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::distance::learned_less;
use super::ways::{parallels, staged};
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Parallel, Precision};
use vramscope_engine::simulate::SimulateError;
use vramscope_engine::simulate::{pipeline_stages, tensor_parts};
use vramscope_engine::{Model, Setup};

/// An entry of a setup that a search may change.
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
    /// What is trained.
    Freeze,
    /// How the loss is taken.
    Loss,
    /// Micro-batch.
    Batch,
    /// Pixels of images and frames.
    Resolution,
    /// Images of a sample.
    Images,
    /// Frames of a video.
    Frames,
    /// How several GPUs share.
    Strategy,
    /// Whether states, or all of a model that is not at work, may lie in the memory of the host.
    Offload,
}

impl Entry {
    /// All, in the order of a menu.
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

    /// Its name, that of the key of a case where there is one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Optim => "optim",
            Self::Ckpt => "ckpt",
            Self::Attn => "attn",
            Self::Freeze => "freeze",
            Self::Loss => "loss",
            Self::Batch => "batch",
            Self::Resolution => "resolution",
            Self::Images => "images",
            Self::Frames => "frames",
            Self::Strategy => "strategy",
            Self::Offload => "offload",
        }
    }

    /// Whether it stays as it is unless a person allows it: what a sample is, and the use of another memory.
    pub const fn is_asked_for(self) -> bool {
        matches!(self, Self::Resolution | Self::Images | Self::Frames | Self::Offload)
    }
}

/// What a sample is: the model that takes it, and the entries of a setup that describe it.
#[derive(Debug, Clone)]
pub struct Input {
    /// The model; its shape follows the size of images and the frames of some families.
    pub model: Model,
    /// The setup that was asked, with this sample.
    pub setup: Setup,
    /// How far the sample is from what was asked; 0 for that itself.
    pub distance: u32,
}

/// How many samples a step has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// So many on all GPUs together, in micro-batches of one size.
    Effective(u64),
    /// One micro-batch of as many as fit, up to so many.
    AsManyAsFit(u64),
}

impl Samples {
    /// As many as were asked; where nobody did, as many as fit, up to 256.
    pub fn of(effective: Option<u64>) -> Self {
        effective.map_or(Self::AsManyAsFit(256), Self::Effective)
    }
}

/// The values of each entry that a search goes through; the first is the one that was asked.
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
    /// Micro-batches, rising, where each GPU trains its own.
    pub(super) batches: Vec<u64>,
    /// The same where all GPUs train one.
    pub(super) common: Vec<u64>,
    /// Those of which a step has one for each stage of a pipeline.
    pub(super) staged: Vec<u64>,
    pub(super) samples: Samples,
    pub(super) world: u64,
}

/// No micro-batch makes up the samples of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoBatch {
    /// Samples of a step on all GPUs.
    pub samples: u64,
    /// GPUs.
    pub gpus: u64,
}

impl fmt::Display for NoBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, gpus } = self;
        write!(
            f,
            "no micro-batch makes up {samples} samples a step on {gpus} GPUs in at most {MOST_ACCUMULATED} accumulated \
             ones; change the samples, the GPUs, or the micro-batch where it stays as it is"
        )
    }
}

/// Most micro-batches of a step: what [`simulate`](vramscope_engine::simulate()) takes.
pub const MOST_ACCUMULATED: u64 = 64;

impl Space {
    /// Everything that means something for a model, but for entries that have to stay as they are.
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
                &optims(asked.optim, open(Entry::Offload)),
                open(Entry::Optim),
            ),
            ckpts: choices(asked.ckpt, &ckpts(takes), open(Entry::Ckpt)),
            attns: choices(asked.attn, &[Attention::Sdpa, Attention::Eager], open(Entry::Attn)),
            freezes: choices(asked.freeze, &freezes(takes, asked.freeze), open(Entry::Freeze)),
            losses: choices(
                asked.loss,
                &[Loss::Full, Loss::FusedLinear],
                open(Entry::Loss) && takes.text,
            ),
            batches: batches(&asked, samples, world, open(Entry::Batch)),
            common,
            samples,
            world: world.max(1),
            inputs,
        }
    }

    /// How many setups there are.
    pub fn len(&self) -> usize {
        let batches = |parallel: &Option<Parallel>| self.batches_of(parallel.as_ref()).len();
        let all: usize = self.parallels.iter().map(batches).sum();
        self.passes() / self.parallels.len().max(1) * self.optims.len() * all
    }

    /// Why there is none, where there is none.
    pub fn refusal(&self) -> Option<NoBatch> {
        self.is_empty().then(|| NoBatch {
            samples: self.effective().unwrap_or(0),
            gpus: self.world,
        })
    }

    /// Whether there is none: no micro-batch makes up the samples of a step.
    pub fn is_empty(&self) -> bool {
        let has_none = |parallel: &Option<Parallel>| self.batches_of(parallel.as_ref()).is_empty();
        self.parallels.iter().all(has_none) || self.inputs.is_empty()
    }

    /// Micro-batches that are looked at where it is shared so, rising.
    pub fn batches_of(&self, parallel: Option<&Parallel>) -> &[u64] {
        match parallel.map_or(self.world, Parallel::replicas) {
            1 if parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) => &self.staged,
            1 => &self.common,
            _ => &self.batches,
        }
    }

    /// Whether no micro-batch gives each stage of a pipeline one.
    pub(crate) fn has_no_stages(&self) -> bool {
        self.staged.is_empty()
    }

    /// Samples of a step on all GPUs, where they were given.
    pub const fn effective(&self) -> Option<u64> {
        match self.samples {
            Samples::Effective(samples) => Some(samples),
            Samples::AsManyAsFit(_) => None,
        }
    }

    /// GPUs.
    pub const fn world(&self) -> u64 {
        self.world
    }

    /// What was asked.
    pub fn asked(&self) -> &Setup {
        self.input(0)
    }

    /// The model that takes an input.
    pub fn model(&self, input: usize) -> &Model {
        &self.inputs[input].model
    }

    /// An input's setup.
    pub fn input(&self, input: usize) -> &Setup {
        &self.inputs[input].setup
    }

    /// A way to share.
    pub fn parallel(&self, at: usize) -> Option<Parallel> {
        self.parallels.get(at).copied().flatten()
    }

    /// Micro-batches of a step of so many samples each, where it is shared so.
    pub fn accum(&self, batch: u64, parallel: Option<&Parallel>) -> u64 {
        let at_once = parallel.map_or(self.world, Parallel::replicas);
        match self.samples {
            Samples::Effective(samples) => (samples / (batch * at_once)).max(1),
            Samples::AsManyAsFit(_) => 1,
        }
    }

    /// Whether the largest micro-batch alone makes a step, so that no gradients lie beside it, and smaller ones do not.
    pub(super) fn ends_without_gradients(&self, parallel: Option<&Parallel>) -> bool {
        let batches = self.batches_of(parallel);
        let accum = |batch: Option<&u64>| batch.is_some_and(|batch| self.accum(*batch, parallel) > 1);
        accum(batches.first()) && !accum(batches.last())
    }

    /// How many forwards and backwards are told apart, whatever the micro-batch.
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

fn choices<T: Copy + PartialEq>(asked: T, all: &[T], open: bool) -> Vec<T> {
    let others = all.iter().copied().filter(|choice| open && *choice != asked);
    std::iter::once(asked).chain(others).collect()
}

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

/// More precise than asked is looked at too: with few samples autocast's copies can take more than fp32.
fn precisions(asked: &Setup) -> Vec<Precision> {
    match asked.precision {
        Precision::AmpFp16 => vec![Precision::AmpFp16, Precision::Fp32],
        _ => vec![Precision::Bf16, Precision::AmpBf16, Precision::Fp32],
    }
}

fn optims(asked: Optimizer, offload: bool) -> Vec<Optimizer> {
    use Optimizer as O;
    let mut all = match asked {
        O::Sgd | O::Sgdm => vec![O::Sgd],
        O::Adafactor | O::AdafactorTorch => vec![O::Adafactor, O::AdafactorTorch, O::Sgdm, O::Sgd],
        _ => vec![
            O::AdamwFused,
            O::Adamw,
            O::AdamwLoop,
            O::Adamw8bit,
            O::PagedAdamw8bit,
            O::PagedAdamw,
            O::Adafactor,
            O::AdafactorTorch,
            O::Sgdm,
            O::Sgd,
        ],
    };
    all.retain(|optim| offload || !matches!(optim, O::PagedAdamw | O::PagedAdamw8bit));
    all
}

/// The vision tower of a text model is not checkpointed by itself.
fn ckpts(takes: Takes) -> Vec<Checkpointing> {
    use Checkpointing as C;
    if takes.parts {
        vec![C::None, C::Vision, C::Language, C::Full]
    } else {
        vec![C::None, C::Full]
    }
}

/// Less is trained than was asked, never more.
fn freezes(takes: Takes, asked: Freeze) -> Vec<Freeze> {
    let mut all = vec![Freeze::None];
    if takes.parts {
        all.push(Freeze::Vision);
    }
    if takes.text {
        all.extend([Freeze::Lora, Freeze::Qlora]);
    }
    if takes.parts {
        all.push(Freeze::AllButConnector);
    }
    all.retain(|freeze| learned_less(*freeze) >= learned_less(asked));
    all
}
