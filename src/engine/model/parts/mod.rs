//! Parts of models that several families have.

pub(crate) mod alibi;
pub(crate) mod bart;
pub mod clip_vision;
pub(crate) mod delta_decoder;
pub(crate) mod encoder;
pub mod idefics_vision;
pub(crate) mod image_text;
pub(crate) mod image_tokens;
pub(crate) mod lfm2_decoder;
pub mod llava_vision;
pub(crate) mod mamba2;
pub(crate) mod mixed_layers;
pub(crate) mod omni;
pub mod packed_vision;
pub(crate) mod pixel_shuffle;
pub mod pixtral_vision;
pub mod qwen3_vision;
pub mod qwen_vl;
pub(crate) mod rotary_decoder;
pub mod sam_vision;
pub mod siglip2_vision;
pub mod siglip_vision;
pub(crate) mod sinusoids;
pub(crate) mod text;
pub(crate) mod tiles;
