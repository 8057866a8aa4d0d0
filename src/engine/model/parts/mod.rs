//! Parts of models that several families have.

pub mod clip_vision;
pub(crate) mod delta_decoder;
pub(crate) mod encoder;
pub(crate) mod image_tokens;
pub(crate) mod lfm2_decoder;
pub mod llava_vision;
pub(crate) mod mixed_layers;
pub mod qwen3_vision;
pub mod qwen_vl;
pub(crate) mod rotary_decoder;
pub mod siglip_vision;
pub(crate) mod text;
