//! Parts of vision towers that take the patches of all images as one sequence, as Qwen2-VL's does, and the model around such
//! a tower.

mod attention;
mod batch;
mod block;
mod gated_mlp;
mod interpolation;
mod layout;
mod merge;
mod merger;
mod model;
mod patches;
mod plain_mlp;
mod positions;
mod rotary;
mod vision_ids;
mod windows;

pub(crate) use attention::{Attended, SegmentCall, Segments, VisionAttention, attend_within};
pub(crate) use batch::batch_of_patches;
pub(crate) use block::{Map, PatchEmbed, Positions, VisionBlock, VisionBlocks};
pub(crate) use gated_mlp::GatedMlp;
pub(crate) use interpolation::{interpolation, interpolation_by};
pub(crate) use layout::Layout;
pub(crate) use merge::{add_at_images, joined, split_images};
pub(crate) use merger::Merger;
pub(crate) use model::{Deepstack, LanguageModel, LayerPositions, MropePositions, QwenVl, VisionOutput, VisionTower};
pub use patches::{QwenPatches, Resize, Widening};
pub(crate) use plain_mlp::PlainMlp;
pub(crate) use rotary::{VisionRotary, apply_vision_rotary};
pub(crate) use vision_ids::{VisionIds, cu_seqlens, cu_seqlens_of_images, position_ids, position_ids_in_time};
pub(crate) use windows::windows;
