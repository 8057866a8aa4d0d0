//! Reasons that a setup cannot be simulated, with their English messages.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::change::{Change, behind};
use super::unshared::Unshared;
use crate::allocator::OutOfMemory;
use crate::model::NoFlash;
use crate::tape::Failure;

/// Reason that a setup cannot be simulated. Its `Display` is English: the value given, the values allowed, and the next
/// step. Frontends in other languages have texts of their own for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum SimulateError {
    /// The model's configuration can be read, but its forward cannot be simulated.
    #[error("the configuration of {model} is read, but this version does not simulate its forward")]
    NoForward {
        /// The model's name.
        model: String,
    },
    /// A number is too small or too large.
    #[error("`{entry}` is {value}; it must be between {least} and {most}")]
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
    #[error("`lora_dropout` is {given}; it is a probability below 1, such as 0.05")]
    Dropout {
        /// Value given.
        given: String,
    },
    /// Sizes of images, for a model that takes none beside text.
    #[error("`image_sizes` are of images beside text, and {model} takes none; leave them out")]
    NoImages {
        /// The model's name.
        model: String,
    },
    /// A list of samples that has another number of them than the batch.
    #[error("`{entry}` tells of {given} {}, and the batch has {samples}", if *.given == 1 { "sample" } else { "samples" })]
    SampleCount {
        /// The entry, by its name in a case.
        entry: String,
        /// Samples that it tells of.
        given: usize,
        /// Samples of the batch.
        samples: u64,
    },
    /// Sizes of images, fewer or more than the samples have.
    #[error("`image_counts` has {counted} images in all, and `image_sizes` has {given}")]
    ImageCount {
        /// Images of all samples.
        counted: u64,
        /// Sizes given.
        given: usize,
    },
    /// Several sizes of images, for a model that takes one image.
    #[error("`image_sizes` has {images} images, but {model} takes one for each sample")]
    OneImage {
        /// The model's name.
        model: String,
        /// Number of sizes given.
        images: usize,
    },
    /// An image with sides that no photograph has.
    #[error(
        "`image_sizes` holds [{}, {}]; a side has 1 to {most} pixels, and the longer one at most 200 times the \
         shorter",
        .size[0],
        .size[1]
    )]
    ImageSize {
        /// Height and width (pixels).
        size: [u64; 2],
        /// Most pixels of a side.
        most: u64,
    },
    /// Sizes of images, for a model whose processor's tiles are not simulated.
    #[error(
        "`image_sizes` are not simulated for {model}: leave them out, and count in `images` what its processor makes"
    )]
    ImageSizesUnknown {
        /// The model's name.
        model: String,
    },
    /// A patch grid that is not made of whole tokens.
    #[error("`grid` is [{}, {}]; both are patches a side, multiples of {multiple} up to {most}", .grid[0], .grid[1])]
    Grid {
        /// Rows and columns of patches.
        grid: [u64; 2],
        /// Factor that both must be multiples of.
        multiple: u64,
        /// Most patches of a side.
        most: u64,
    },
    /// More patches than are simulated.
    #[error(
        "{samples} samples of {each} patches each are more than is simulated ({most} patches, {attentions} runs of \
         attention in the vision tower); lower `batch`, `images`, `grid` or `accum`"
    )]
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
    #[error(
        "the images of a sample ({images}) take {tokens} tokens, but `seq` is {seq}; raise `seq` to at least {tokens} or \
         lower `images`"
    )]
    TooShort {
        /// Images of a sample.
        images: u64,
        /// Positions that they take.
        tokens: u64,
        /// Positions of the sequence.
        seq: u64,
    },
    /// The sequence is longer than the table of learned positions.
    #[error(
        "`seq` is {seq}, but the model has learned positions for {learned} tokens, and a run stops with an index \
         error; set `seq` to {learned} or less"
    )]
    BeyondPositions {
        /// Entries of the table.
        learned: u64,
        /// Positions of the sequence.
        seq: u64,
    },
    /// `flash_attention_2` cannot run.
    #[error("`attn` is flash_attention_2, but {}; set `attn` to sdpa", .0.label())]
    NoFlash(NoFlash),
    /// Lengths of texts, for a model without text.
    #[error("`lengths` are of texts, and {model} takes none; set `batch`")]
    NoText {
        /// The model's name.
        model: String,
    },
    /// A sample without a position.
    #[error("`lengths` holds 0; each sample has at least one position")]
    EmptySample,
    /// A search for the batch size of a setup whose batch follows from lengths of samples.
    #[error("`lengths` decide the batch; leave them out and set `seq` to the longest sample")]
    LengthsDecide,
    /// Samples of different lengths under `flash_attention_2`.
    #[error("samples of different lengths are simulated for `attn` sdpa and eager, not flash_attention_2")]
    RaggedFlash,
    /// Samples of different lengths, which are not simulated for the family.
    #[error("samples of different lengths are not simulated for {model}; give all the same length")]
    RaggedUnknown {
        /// The model's name.
        model: String,
    },
    /// Packed samples of a model that takes images.
    #[error("`packing` packed is simulated for models of text alone; {model} takes images too, use padded")]
    PackedImages {
        /// The model's name.
        model: String,
    },
    /// Packed samples in a run that keeps keys and values.
    #[error(
        "`packing` is packed, but with `use_cache` transformers does not tell packed samples apart; set `use_cache` \
         to false"
    )]
    PackedCache,
    /// The model lacks a part that the setup would freeze or train.
    #[error("`freeze` does not fit {model}, which has no {}{}", .missing.label(), behind(&.missing.ways()))]
    Freeze {
        /// The model's name.
        model: String,
        /// Part that the model lacks.
        missing: Missing,
    },
    /// 4-bit weights outside language models.
    #[error("`freeze` qlora is simulated for language models; {model} is none, use lora or none")]
    NotQuantised {
        /// The model's name.
        model: String,
    },
    /// Liger's forward of the model fails.
    #[error("Liger 0.8.5's forward of {model} fails in transformers 5.17; set `loss` to full")]
    LigerFails {
        /// The model's name.
        model: String,
    },
    /// Liger does not know the model.
    #[error("Liger has no fused linear cross-entropy for {model}; set `loss` to full")]
    NoLiger {
        /// The model's name.
        model: String,
    },
    /// The model is simulated, but not with this value of a setting.
    #[error("{model} is not simulated with {given}{}", behind(.ways))]
    NotSimulated {
        /// The model's name.
        model: String,
        /// Setting and value given.
        given: String,
        /// Ways out, of which each was tried.
        ways: Vec<Change>,
    },
    /// Zero new tokens, or more than can be simulated.
    #[error("{given} new tokens: generation is simulated for 1 to {most}")]
    NewTokens {
        /// Value given.
        given: u64,
        /// Greatest value allowed.
        most: u64,
    },
    /// The model generates no text.
    #[error("{model} does not generate; take a decoder or a vision-language model")]
    NoGeneration {
        /// The model's name.
        model: String,
    },
    /// The run itself fails.
    #[error("{0}")]
    Fails(Failure),
    /// The run needs more than the allocator's limit.
    #[error("{0}")]
    OutOfMemory(String),
    /// The GPUs cannot share the run as the setup asks.
    #[error("{0}")]
    Parallel(Unshared),
}

impl SimulateError {
    /// Returns true if the run itself may well work, and is only not simulated; false if it would fail, or is no run.
    pub fn is_only_unsimulated(&self) -> bool {
        match self {
            Self::NoForward { .. }
            | Self::ImageSizesUnknown { .. }
            | Self::Patches { .. }
            | Self::NoFlash(NoFlash::NotSimulated)
            | Self::RaggedFlash
            | Self::RaggedUnknown { .. }
            | Self::PackedImages { .. }
            | Self::NotQuantised { .. }
            | Self::NotSimulated { .. } => true,
            Self::Parallel(why) => why.is_only_unsimulated(),
            _ => false,
        }
    }

    /// Changes that end the refusal. Those of what is not simulated were each tried: a setup with one of them runs. After the
    /// others, which take back what the model lacks, another setting may be refused.
    pub fn ways(&self) -> Vec<Change> {
        match self {
            Self::NotSimulated { ways, .. } => ways.clone(),
            Self::Parallel(why) => why.ways.clone(),
            Self::Freeze { missing, .. } => missing.ways(),
            Self::NotQuantised { .. } => vec![Change::set("freeze", "lora"), Change::set("freeze", "none")],
            Self::LigerFails { .. } | Self::NoLiger { .. } => vec![Change::set("loss", "full")],
            Self::PackedImages { .. } => vec![Change::set("packing", "padded")],
            Self::PackedCache => vec![Change::set("use_cache", "false")],
            _ => Vec::new(),
        }
    }

    /// The entry, by its name in a case, whose value is out of its range; `None` for other reasons.
    pub fn entry_out_of_range(&self) -> Option<&str> {
        match self {
            Self::OutOfRange { entry, .. } => Some(entry),
            Self::Dropout { .. } => Some("lora_dropout"),
            Self::ImageSize { .. } | Self::ImageCount { .. } => Some("image_sizes"),
            Self::SampleCount { entry, .. } => Some(entry),
            Self::Grid { .. } => Some("grid"),
            Self::TooShort { .. } | Self::BeyondPositions { .. } => Some("seq"),
            Self::NewTokens { .. } => Some("new_tokens"),
            Self::Parallel(why) => why.entry_out_of_range(),
            _ => None,
        }
    }
}

/// Part that a choice of trained parameters needs and the model lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// A vision tower beside a language model.
    Tower,
    /// A connector.
    Connector,
    /// Linear layers of the usual names; it has others, which adapters take.
    UsualMaps,
    /// Linear layers that can take adapters.
    Maps,
}

impl Missing {
    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tower => "vision tower beside a language model",
            Self::Connector => "connector",
            Self::UsualMaps => "q_proj to down_proj for adapters",
            Self::Maps => "linear layers for adapters",
        }
    }

    /// Changes, of which each ends the refusal.
    pub fn ways(self) -> Vec<Change> {
        let full = Change::set("freeze", "none");
        match self {
            Self::UsualMaps => vec![Change::set("lora_targets", "all-linear"), full],
            Self::Tower | Self::Connector | Self::Maps => vec![full],
        }
    }
}

impl From<OutOfMemory> for SimulateError {
    fn from(why: OutOfMemory) -> Self {
        Self::OutOfMemory(why.to_string())
    }
}
