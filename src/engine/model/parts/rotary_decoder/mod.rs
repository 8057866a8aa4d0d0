//! Decoders with layer norms whose heads are partly rotated: GPT-NeoX, StableLM and Persimmon.

mod attention;
mod config;
mod forward;

pub(crate) use config::{
    FeedForwardForm, Form, QkvForm, QueryNorms, Residual, RotaryDecoderConfig, read_heads, read_rope,
};
