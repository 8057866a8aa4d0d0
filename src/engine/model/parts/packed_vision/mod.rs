//! Vision towers whose blocks are SigLIP's, over the packed patches of all images: each image attends to itself.

mod attention;
mod block;
mod config;
mod patches;

pub(crate) use attention::PackedAttention;
pub(crate) use block::PackedBlocks;
pub use config::PackedVisionConfig;
pub(crate) use patches::PatchConv;
