//! Configuration of torchvision's video ResNets: the arguments of `VideoResNet`, and the size of its videos.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;

/// torchvision's `VideoResNet`, of which `r3d_18`, `mc3_18` and `r2plus1d_18` are made. Its files are written by hand:
/// torchvision has none.
///
/// Source: `torchvision/models/video/resnet.py`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VideoResNetConfig {
    /// Kind of blocks.
    pub block: Block,
    /// Convolutions of the blocks of each of the four layers.
    pub conv_makers: [ConvMaker; 4],
    /// Blocks of each layer.
    pub layers: [u64; 4],
    /// First convolutions.
    pub stem: Stem,
    /// Classes.
    pub classes: u64,
    /// Frames of one video.
    pub frames: u64,
    /// Pixels a side of a frame.
    pub image: u64,
}

/// A residual block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// Two convolutions (`BasicBlock`).
    Basic,
    /// A convolution between two that cover single pixels, with four times the channels after (`Bottleneck`).
    Bottleneck,
}

/// The convolutions of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvMaker {
    /// 3 × 3 × 3 (`Conv3DSimple`).
    Volume,
    /// 1 × 3 × 3, then 3 × 1 × 1 (`Conv2Plus1D`).
    PlaneThenTime,
    /// 1 × 3 × 3 (`Conv3DNoTemporal`).
    Plane,
}

/// The first convolutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stem {
    /// One (`BasicStem`).
    Basic,
    /// 1 × 7 × 7, then 3 × 1 × 1 (`R2Plus1dStem`).
    PlaneThenTime,
}

impl Block {
    /// Channels after a block for each of those within (`expansion`).
    pub const fn expansion(self) -> u64 {
        match self {
            Self::Basic => 1,
            Self::Bottleneck => 4,
        }
    }
}

const BLOCKS: [(&str, Block); 2] = [("BasicBlock", Block::Basic), ("Bottleneck", Block::Bottleneck)];

const MAKERS: [(&str, ConvMaker); 3] = [
    ("Conv3DSimple", ConvMaker::Volume),
    ("Conv2Plus1D", ConvMaker::PlaneThenTime),
    ("Conv3DNoTemporal", ConvMaker::Plane),
];

const STEMS: [(&str, Stem); 2] = [("BasicStem", Stem::Basic), ("R2Plus1dStem", Stem::PlaneThenTime)];

impl VideoResNetConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let block = one_of(s, "block", &BLOCKS)?;
        if block == Block::Bottleneck {
            // The constructor looks for a `bn3`, which the block does not have.
            s.only("zero_init_residual", "false beside `Bottleneck`", |given| {
                given == false
            })?;
        }
        Ok(Self {
            block,
            conv_makers: makers(s)?,
            layers: layers(s)?,
            stem: one_of(s, "stem", &STEMS)?,
            classes: s.size_or("num_classes", 400, limits::VOCAB)?,
            frames: s.size_or("num_frames", 16, limits::COUNT)?,
            image: s.size_or("image_size", 112, limits::PIXELS)?,
        })
    }
}

/// Reads one of a list of names, without a default.
fn one_of<T: Copy>(s: &Section, key: &str, names: &[(&str, T)]) -> Result<T, ModelError> {
    let given = s.value(key).unwrap_or(&Value::Null);
    named(given, names).ok_or_else(|| s.wrong(key, given, &allowed(names)))
}

fn named<T: Copy>(given: &Value, names: &[(&str, T)]) -> Option<T> {
    let name = given.as_str()?;
    names.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

fn allowed<T>(names: &[(&str, T)]) -> String {
    let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

fn makers(s: &Section) -> Result<[ConvMaker; 4], ModelError> {
    let given = s.value("conv_makers").unwrap_or(&Value::Null);
    let list = given.as_array().map_or(&[][..], Vec::as_slice);
    let makers: Option<Vec<ConvMaker>> = list.iter().map(|name| named(name, &MAKERS)).collect();
    makers
        .and_then(|makers| makers.try_into().ok())
        .ok_or_else(|| s.wrong("conv_makers", given, &format!("four names, each {}", allowed(&MAKERS))))
}

fn layers(s: &Section) -> Result<[u64; 4], ModelError> {
    let blocks = s.optional_indices("layers", limits::LAYERS)?;
    let four = blocks.and_then(|blocks| <[u64; 4]>::try_from(blocks).ok());
    let given = s.value("layers").unwrap_or(&Value::Null);
    match four {
        // The constructor makes the first block of a layer whatever their number is.
        Some(blocks) => Ok(blocks.map(|blocks| blocks.max(1))),
        None => Err(s.wrong("layers", given, "four numbers of blocks")),
    }
}
