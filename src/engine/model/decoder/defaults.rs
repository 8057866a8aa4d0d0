//! Defaults of the decoders' configuration classes.

use crate::model::config::Activation;

/// Values that transformers' configuration class of a family takes for absent keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecoderDefaults {
    pub vocab: u64,
    pub hidden: u64,
    pub intermediate: u64,
    pub layers: u64,
    pub heads: u64,
    /// `None` for as many as query heads.
    pub kv_heads: Option<u64>,
    /// `None` for hidden ÷ heads.
    pub head_dim: Option<u64>,
    pub max_positions: u64,
    pub tie: bool,
    pub activation: Activation,
    /// Base wavelength of the rotary embedding.
    pub theta: f64,
    /// Layers that see all positions, before the first sliding one (Qwen).
    pub max_window_layers: u64,
    pub attention_dropout: f64,
    /// Share of each head's elements that is rotated.
    pub partial_rotary: f64,
}

impl DecoderDefaults {
    /// `LlamaConfig`, from which other families differ in a few values.
    pub const LLAMA: Self = Self {
        vocab: 32_000,
        hidden: 4096,
        intermediate: 11_008,
        layers: 32,
        heads: 32,
        kv_heads: None,
        head_dim: None,
        max_positions: 2048,
        tie: false,
        activation: Activation::Silu,
        theta: 10_000.0,
        max_window_layers: 28,
        attention_dropout: 0.0,
        partial_rotary: 1.0,
    };

    /// `Qwen2Config`, from which Qwen's other families differ.
    pub const QWEN2: Self = Self {
        vocab: 151_936,
        intermediate: 22_016,
        kv_heads: Some(32),
        max_positions: 32_768,
        ..Self::LLAMA
    };

    /// `GemmaConfig`.
    pub const GEMMA: Self = Self {
        vocab: 256_000,
        hidden: 3072,
        intermediate: 24_576,
        layers: 28,
        heads: 16,
        kv_heads: Some(16),
        head_dim: Some(256),
        max_positions: 8192,
        tie: true,
        activation: Activation::GeluTanh,
        ..Self::LLAMA
    };

    /// `Gemma2Config`, and `VaultGemmaConfig`.
    pub const GEMMA2: Self = Self {
        hidden: 2304,
        intermediate: 9216,
        layers: 26,
        heads: 8,
        kv_heads: Some(4),
        ..Self::GEMMA
    };
}
