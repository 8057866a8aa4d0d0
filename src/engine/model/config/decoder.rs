//! Configuration of decoders like Llama's.

mod biases;
mod defaults;
mod windows;

use super::section::Section;
use super::{Activation, Rope, limits};
use crate::model::ModelError;
use biases::Biases;
pub(crate) use defaults::DecoderDefaults;

/// Family of a decoder, which decides its forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecoderFamily {
    /// `llama`: Llama 1 to 3.3, Vicuna, TinyLlama, SmolLM.
    Llama,
    /// `mistral`: Llama with a sliding window.
    Mistral,
    /// `qwen2`: Llama with query, key and value biases.
    Qwen2,
    /// `qwen3`: Llama with normalised queries and keys.
    Qwen3,
    /// `gemma`: scaled embeddings, `1 + weight` norms.
    Gemma,
    /// `gemma2`: norms before and after each part, soft-capped scores and logits.
    Gemma2,
    /// `gemma3_text`: Gemma 2 with normalised queries and keys in place of soft caps.
    Gemma3,
    /// `phi3`: fused query-key-value and gate-up projections.
    Phi3,
    /// `cwm`: Llama with sliding windows in three of four blocks.
    Cwm,
    /// `seed_oss`: Llama with biases on queries, keys and values, and dropout after attention and MLP.
    SeedOss,
    /// `vaultgemma`: Gemma 2 without the norms after attention and MLP.
    VaultGemma,
    /// `ernie4_5`: Llama's parameters; queries and keys are rotated in fp32.
    Ernie45,
    /// `granite`: Llama's parameters; embeddings, residuals and logits are scaled.
    Granite,
    /// `helium`: Llama's parameters; neighbouring elements of a head are rotated together.
    Helium,
    /// `ministral3`: Mistral's parameters; queries are scaled by position.
    Ministral3,
    /// `smollm3`: Llama's parameters; every fourth block has no rotary positions.
    SmolLm3,
}

impl DecoderFamily {
    /// Returns true if Llama's forward stands in for one that makes a few small tensors more; parameters are exact.
    pub const fn stands_in(self) -> bool {
        matches!(
            self,
            Self::Ernie45 | Self::Granite | Self::Helium | Self::Ministral3 | Self::SmolLm3
        )
    }

    /// Returns true if all blocks get one mask (`MistralModel.forward`, `Phi3Model.forward`).
    pub const fn has_one_mask(self) -> bool {
        matches!(self, Self::Mistral | Self::Ministral3 | Self::Phi3)
    }

    /// Returns true if `validate_architecture` requires the width to be a multiple of the heads even if `head_dim` is
    /// given.
    const fn validates_heads(self) -> bool {
        matches!(
            self,
            Self::Llama | Self::Cwm | Self::Gemma2 | Self::Gemma3 | Self::VaultGemma
        )
    }
}

/// A decoder like Llama's: RMS norms, rotary positions, gated MLP.
///
/// Source: `configuration_*.py` and `modeling_*.py` of each family in `transformers/models/`.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Family, which decides the forward.
    pub family: DecoderFamily,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads, a divisor of `heads`.
    pub kv_heads: u64,
    /// Elements of one head; `heads × head_dim` may differ from `hidden`.
    pub head_dim: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
    /// True if the output projection has a bias.
    pub o_bias: bool,
    /// True if the MLP's projections have biases.
    pub mlp_bias: bool,
    /// True if queries and keys pass an RMS norm of `head_dim` elements.
    pub qk_norm: bool,
    /// Activation of the gate.
    pub activation: Activation,
    /// Sliding window of each layer in positions; `None` for a layer that sees all.
    pub windows: Vec<Option<u64>>,
    /// Rotary embedding.
    pub rope: Rope,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout after each projection into the residual stream.
    pub residual_dropout: f64,
    /// Soft cap of attention scores.
    pub attention_softcap: Option<f64>,
    /// Soft cap of logits.
    pub logit_softcap: Option<f64>,
}

impl DecoderConfig {
    /// Returns true for Gemma's decoders: scaled embeddings, `1 + weight` norms.
    pub fn is_gemma(&self) -> bool {
        matches!(
            self.family,
            DecoderFamily::Gemma | DecoderFamily::Gemma2 | DecoderFamily::Gemma3 | DecoderFamily::VaultGemma
        )
    }

    /// Returns true if embeddings are multiplied by √hidden (Gemma).
    pub fn scale_embeddings(&self) -> bool {
        self.is_gemma()
    }

    /// Name of the norm after attention; in families without one, of the norm before the MLP.
    pub fn second_norm(&self) -> &'static str {
        match self.family {
            DecoderFamily::VaultGemma => "pre_feedforward_layernorm",
            _ => "post_attention_layernorm",
        }
    }

    /// Returns true if both attention and MLP have norms before and after them (Gemma 2 and 3).
    pub fn sandwich_norms(&self) -> bool {
        matches!(self.family, DecoderFamily::Gemma2 | DecoderFamily::Gemma3)
    }

    /// Returns true if one projection makes query, key and value, and one gate and up (Phi-3).
    pub fn fused_projections(&self) -> bool {
        self.family == DecoderFamily::Phi3
    }

    pub(crate) fn read(s: &Section, family: DecoderFamily) -> Result<Self, ModelError> {
        Self::read_with(s, family, &DecoderDefaults::of(family))
    }

    /// Reads a decoder with the given defaults instead of its family's.
    pub(crate) fn read_with(s: &Section, family: DecoderFamily, d: &DecoderDefaults) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", d.hidden, limits::WIDTH)?;
        let layers = s.size("num_hidden_layers", d.layers, limits::LAYERS)?;
        let heads = s.size("num_attention_heads", d.heads, limits::HEADS)?;
        let vocab = s.size("vocab_size", d.vocab, limits::VOCAB)?;
        let kv_heads = s.size_or("num_key_value_heads", d.kv_heads.unwrap_or(heads), limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let given = s.optional_size("head_dim", limits::HEAD_DIM)?.or(d.head_dim);
        let head_dim = match given {
            Some(n) if !family.validates_heads() => n,
            _ => {
                let part = s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
                given.unwrap_or(part)
            }
        };
        if family == DecoderFamily::Helium {
            // `HeliumAttention` projects back from `hidden_size`, regardless of the heads' width.
            s.equal(
                ("hidden_size", hidden),
                ("num_attention_heads × head_dim", heads * head_dim),
            )?;
        }
        s.padding(vocab)?;
        let biases = Biases::read(s, family)?;
        Ok(Self {
            family,
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", d.intermediate, limits::WIDTH * 4)?,
            layers,
            heads,
            kv_heads,
            head_dim,
            max_positions: s.size_or("max_position_embeddings", d.max_positions, limits::POSITIONS)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", d.tie)?,
            qkv_bias: biases.qkv,
            o_bias: biases.output,
            mlp_bias: biases.mlp,
            qk_norm: matches!(family, DecoderFamily::Qwen3 | DecoderFamily::Gemma3),
            activation: s.activation(defaults::activation_key(s, family), d.activation)?,
            windows: windows::read(s, family, layers, d.max_window_layers)?,
            rope: Rope::read(s, d.theta, 1.0)?,
            attention_dropout: s.probability("attention_dropout", d.attention_dropout)?,
            residual_dropout: match family {
                DecoderFamily::Phi3 => s.probability("resid_pdrop", 0.0)?,
                DecoderFamily::SeedOss => s.probability("residual_dropout", 0.1)?,
                _ => 0.0,
            },
            attention_softcap: defaults::softcap(s, family, "attn_logit_softcapping", 50.0)?,
            logit_softcap: defaults::softcap(s, family, "final_logit_softcapping", 30.0)?,
        })
    }
}
