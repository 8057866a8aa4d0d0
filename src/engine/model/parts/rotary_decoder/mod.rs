//! Decoders with layer norms whose heads are partly rotated: GPT-NeoX, StableLM, Persimmon, and Fuyu's.

mod attention;
mod config;
mod forward;

pub(crate) use config::{
    FeedForwardForm, Form, QkvForm, QueryNorms, Residual, RotaryDecoderConfig, read_heads, read_rope,
};
pub(crate) use forward::RotaryDecoder;
