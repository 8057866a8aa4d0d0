//! Reasons that a setup cannot be simulated, with their English messages.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::allocator::OutOfMemory;
use crate::tape::Failure;

/// Reason that a setup cannot be simulated. Its `Display` is English: the value given, the values allowed, and the next
/// step. Frontends in other languages have texts of their own for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SimulateError {
    /// The model's configuration can be read, but its forward cannot be simulated.
    NoForward {
        /// The model's name.
        model: String,
    },
    /// A number is too small or too large.
    OutOfRange {
        /// The entry, by its name in a case.
        entry: Cow<'static, str>,
        /// Value given.
        value: u64,
        /// Least value allowed.
        least: u64,
        /// Greatest value allowed.
        most: u64,
    },
    /// A dropout that is not a probability below 1.
    Dropout {
        /// Value given.
        given: String,
    },
    /// Sizes of images, for a model that takes none beside text.
    NoImages {
        /// The model's name.
        model: String,
    },
    /// Several sizes of images, for a model that takes one image.
    OneImage {
        /// The model's name.
        model: String,
        /// Number of sizes given.
        images: usize,
    },
    /// An image with sides that no photograph has.
    ImageSize {
        /// Height and width (pixels).
        size: [u64; 2],
        /// Most pixels of a side.
        most: u64,
    },
    /// A patch grid that is not made of whole tokens.
    Grid {
        /// Rows and columns of patches.
        grid: [u64; 2],
        /// Factor that both must be multiples of.
        multiple: u64,
        /// Most patches of a side.
        most: u64,
    },
    /// More patches than are simulated.
    Patches {
        /// Samples of the micro-batch.
        samples: u64,
        /// Patches of each sample.
        each: u64,
        /// Most patches of a batch.
        most: u64,
        /// Most calls of attention in the vision tower.
        attentions: u64,
    },
    /// The image tokens do not fit the sequence.
    TooShort {
        /// Images of a sample.
        images: u64,
        /// Positions that they take.
        tokens: u64,
        /// Positions of the sequence.
        seq: u64,
    },
    /// The sequence is longer than the table of learned positions.
    BeyondPositions {
        /// Entries of the table.
        learned: u64,
        /// Positions of the sequence.
        seq: u64,
    },
    /// `flash_attention_2` cannot run.
    NoFlash(NoFlash),
    /// Lengths of texts, for a model without text.
    NoText {
        /// The model's name.
        model: String,
    },
    /// A sample without a position.
    EmptySample,
    /// A search for the batch size of a setup whose batch follows from lengths of samples.
    LengthsDecide,
    /// Samples of different lengths under `flash_attention_2`.
    RaggedFlash,
    /// Packed samples of a model that takes images.
    PackedImages {
        /// The model's name.
        model: String,
    },
    /// Packed samples in a run that keeps keys and values.
    PackedCache,
    /// The model lacks a part that the setup would freeze or train.
    Freeze {
        /// The model's name.
        model: String,
        /// Part that the model lacks.
        missing: Missing,
    },
    /// 4-bit weights outside language models.
    NotQuantised {
        /// The model's name.
        model: String,
    },
    /// Liger's forward of the model fails.
    LigerFails {
        /// The model's name.
        model: String,
    },
    /// Liger does not know the model.
    NoLiger {
        /// The model's name.
        model: String,
    },
    /// Zero new tokens, or more than can be simulated.
    NewTokens {
        /// Value given.
        given: u64,
        /// Greatest value allowed.
        most: u64,
    },
    /// The model generates no text.
    NoGeneration {
        /// The model's name.
        model: String,
    },
    /// The run itself fails.
    Fails(Failure),
    /// The run needs more than the allocator's limit.
    OutOfMemory(String),
    /// The GPUs cannot share the run as the setup asks.
    Parallel(String),
}

/// Part that a choice of trained parameters needs and the model lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// A vision tower beside a language model.
    Tower,
    /// A connector.
    Connector,
    /// Linear maps that can take adapters.
    Maps,
}

impl Missing {
    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tower => "vision tower beside a language model",
            Self::Connector => "connector",
            Self::Maps => "q_proj to down_proj for adapters",
        }
    }
}

/// Reason that transformers 5.17 and flash-attn 2.8 cannot run `flash_attention_2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoFlash {
    /// BLIP-2's querying transformer stays in fp32.
    Blip2,
    /// The attention of Llama-3.2-Vision's tower has no `is_causal`.
    Mllama,
    /// The kernels take only fp16 and bf16.
    Fp32,
}

impl NoFlash {
    /// English reason.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Blip2 => "transformers refuses it for BLIP-2, whose querying transformer stays in fp32",
            Self::Mllama => {
                "transformers 5.17 fails for Llama-3.2-Vision: the attention of its tower has no `is_causal`"
            }
            Self::Fp32 => "FlashAttention runs in fp16 and bf16 only, and `precision` is fp32",
        }
    }
}

impl fmt::Display for SimulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoForward { model } => write!(
                f,
                "the configuration of {model} is read, but this version does not simulate its forward"
            ),
            Self::OutOfRange {
                entry,
                value,
                least,
                most,
            } => write!(f, "`{entry}` is {value}; it must be between {least} and {most}"),
            Self::Dropout { given } => write!(
                f,
                "`lora_dropout` is {given}; it is a probability below 1, such as 0.05"
            ),
            Self::NoImages { model } => write!(
                f,
                "`image_sizes` are of images beside text, and {model} takes none; leave them out"
            ),
            Self::OneImage { model, images } => write!(
                f,
                "`image_sizes` has {images} images, but {model} takes one for each sample"
            ),
            Self::ImageSize {
                size: [height, width],
                most,
            } => write!(
                f,
                "`image_sizes` holds [{height}, {width}]; a side has 1 to {most} pixels, and the longer one at most 200 times \
                 the shorter"
            ),
            Self::Grid {
                grid: [rows, columns],
                multiple,
                most,
            } => write!(
                f,
                "`grid` is [{rows}, {columns}]; both are patches a side, multiples of {multiple} up to {most}"
            ),
            Self::Patches {
                samples,
                each,
                most,
                attentions,
            } => write!(
                f,
                "{samples} samples of {each} patches each are more than is simulated ({most} patches, {attentions} runs of \
                 attention in the vision tower); lower `batch`, `images` or `grid`"
            ),
            Self::TooShort { images, tokens, seq } => write!(
                f,
                "{images} images take {tokens} of the sequence's positions, but `seq` is {seq}; raise `seq` to at least \
                 {tokens} or lower `images`"
            ),
            Self::BeyondPositions { learned, seq } => write!(
                f,
                "`seq` is {seq}, but the model has learned positions for {learned} tokens, and a run stops with an index \
                 error; set `seq` to {learned} or less"
            ),
            Self::NoFlash(why) => write!(f, "`attn` is flash_attention_2, but {}; set `attn` to sdpa", why.label()),
            Self::NoText { model } => write!(f, "`lengths` are of texts, and {model} takes none; set `batch`"),
            Self::EmptySample => f.write_str("`lengths` holds 0; each sample has at least one position"),
            Self::LengthsDecide => {
                f.write_str("`lengths` decide the batch; leave them out and set `seq` to the longest sample")
            }
            Self::RaggedFlash => f.write_str(
                "samples of different lengths are simulated for `attn` sdpa and eager, not flash_attention_2",
            ),
            Self::PackedImages { model } => write!(
                f,
                "`packing` packed is simulated for models of text alone; {model} takes images too, use padded"
            ),
            Self::PackedCache => f.write_str(
                "`packing` is packed, but with `use_cache` transformers does not tell packed samples apart; set `use_cache` \
                 to false",
            ),
            Self::Freeze { model, missing } => {
                write!(f, "`freeze` does not fit {model}, which has no {}; use none", missing.label())
            }
            Self::NotQuantised { model } => write!(
                f,
                "`freeze` qlora is simulated for language models; {model} is none, use lora or none"
            ),
            Self::LigerFails { model } => write!(
                f,
                "Liger 0.8.5's forward of {model} fails in transformers 5.17; set `loss` to full"
            ),
            Self::NoLiger { model } => write!(
                f,
                "Liger has no fused linear cross-entropy for {model}; set `loss` to full"
            ),
            Self::NewTokens { given, most } => {
                write!(f, "{given} new tokens: generation is simulated for 1 to {most}")
            }
            Self::NoGeneration { model } => write!(
                f,
                "{model} does not generate; take a decoder or a vision-language model"
            ),
            Self::Fails(failure) => failure.fmt(f),
            Self::OutOfMemory(why) | Self::Parallel(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SimulateError {}

impl From<OutOfMemory> for SimulateError {
    fn from(why: OutOfMemory) -> Self {
        Self::OutOfMemory(why.to_string())
    }
}
