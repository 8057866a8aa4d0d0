//! Answers of a family about one of its configurations.

use super::decoder::DecoderConfig;
use super::forward::MainInputs;
use super::libraries::{AdapterMaps, Liger, NoFlash};
use super::parts::qwen_vl::QwenPatches;

/// Closeness of the simulated forward of a configuration to the measured one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fidelity {
    /// Tensor by tensor.
    Exact,
    /// Tensor by tensor, as it runs without these packages: one that is installed replaces a part of it.
    ExactWithout(&'static [&'static str]),
    /// Tensor by tensor, but for convolutions: of the memory that cuDNN takes inside, the copies are counted as most kernels
    /// make them, and the partial sums of kernels that it splits are left out.
    WithoutPartialSums,
    /// By a forward that makes a few small tensors less than its own; parameters are exact.
    StandIn,
    /// Not at all: the configuration is only read.
    ReadOnly,
}

/// Number of text positions of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// Entries of a table of learned positions, past which a run stops with an index error.
    Learned(u64),
    /// Positions that a model with rotary ones was trained for (`max_position_embeddings`): a longer text runs, but was
    /// never seen in training.
    Rotary(u64),
    /// The most tokens that are simulated: a longer text runs, through other code (BigBird's attention of blocks).
    Simulated(u64),
    /// The model has no text, or none whose length can be chosen.
    Fixed,
}

/// Attention heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Query heads.
    pub query: u64,
    /// Key and value heads.
    pub key_value: u64,
    /// Elements of one head.
    pub width: u64,
}

impl Heads {
    /// Heads of a decoder like Llama's.
    pub const fn of_decoder(c: &DecoderConfig) -> Self {
        Self {
            query: c.heads,
            key_value: c.kv_heads,
            width: c.head_dim,
        }
    }

    /// Heads of attention in which each query head has a key and a value head of its own, in a model of `hidden`
    /// elements.
    pub const fn of_all(heads: u64, hidden: u64) -> Self {
        Self {
            query: heads,
            key_value: heads,
            width: hidden / heads,
        }
    }
}

/// Form in which a vision tower takes the images of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ImageForm<'a> {
    /// No images, or one tensor of equal ones.
    Stacked,
    /// Images whose features are packed one by one.
    Packed,
    /// Patches of images of any size, in attention over each image or over windows of this many tokens a side.
    Patches(&'a QwenPatches, Option<u64>),
}

/// Sizes of images and videos that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Pixels a side of an image; `None` if the model takes one size only.
    pub image: Option<Size>,
    /// Frames of a video; `None` if the model takes no videos.
    pub frames: Option<Size>,
}

impl Sizes {
    /// No size can be chosen.
    pub(crate) const FIXED: Self = Self {
        image: None,
        frames: None,
    };

    /// The side of images can be chosen, in whole patches.
    pub(crate) const fn of_image(own: u64, unit: u64) -> Self {
        Self {
            image: Some(Size { own, unit }),
            frames: None,
        }
    }
}

/// A size that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Size without a choice.
    pub own: u64,
    /// Step between valid sizes: whole patches that merge into whole tokens, or whole tubelets.
    pub unit: u64,
}

/// Support of a model by training libraries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Support<'a> {
    /// Main inputs of the classes of the model and its tower.
    pub main_inputs: MainInputs,
    /// Linear layers that peft finds for adapters.
    pub adapters: AdapterMaps,
    /// Liger's replacement of the loss.
    pub liger: Liger,
    /// Reason that `flash_attention_2` fails; `None` if it runs.
    pub no_flash: Option<NoFlash>,
    /// Plan of transformers' tensor parallelism; `None` if it has none or it is not simulated.
    pub tensor_parallel: Option<TensorPlan<'a>>,
    /// Language model whose blocks the stages of a pipeline share, where one tensor is all that passes from block to
    /// block; `None` if pipelines are not simulated.
    pub pipeline: Option<&'a DecoderConfig>,
}

impl Support<'_> {
    /// Support of most models: the whole model takes token ids and its tower none, linear layers have the usual names, and
    /// neither Liger nor the plans of several GPUs know the model.
    pub const USUAL: Support<'static> = Support {
        main_inputs: MainInputs {
            model_takes_ids: true,
            tower_takes_ids: false,
        },
        adapters: AdapterMaps::Usual,
        liger: Liger::Unknown,
        no_flash: None,
        tensor_parallel: None,
        pipeline: None,
    };
}

/// Plan of transformers' tensor parallelism for a model (`base_model_tp_plan`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorPlan<'a> {
    /// Language model whose linear layers the GPUs share.
    pub text: &'a DecoderConfig,
    /// True if they also share its head by the vocabulary, and the embedding tied to it.
    pub splits_head: bool,
}

impl<'a> TensorPlan<'a> {
    /// Plan of a model with this language model; `None` if the plan of its family is not simulated.
    pub fn of(text: &'a DecoderConfig, splits_head: bool) -> Option<Self> {
        text.family.tensor_parallel.then_some(Self { text, splits_head })
    }
}
