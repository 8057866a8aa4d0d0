//! A block of the decoders: attention and an MLP, with a layer norm before or after each.

use super::attention::{BartAttention, BlockContext};
use crate::model::config::Activation;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Tape, Tensor};

/// Form and sizes of a decoder's blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockConfig {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Attention heads.
    pub heads: u64,
    /// Form of attention.
    pub attention: AttentionForm,
    /// True if attention's projections have biases.
    pub bias: bool,
    /// True if norms come before each part, false if after.
    pub norm_before: bool,
    /// True if the modules of cross attention are there, which run only beside an encoder ([`Layer::forward_across`]).
    pub has_cross_attention: bool,
    /// True if the first linear layer and the activation are one expression, in which the MLP's input lives until the end
    /// of both.
    pub nests_activation: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout inside the MLP.
    pub activation_dropout: f64,
}

/// Forms of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttentionForm {
    /// Behind transformers' interface.
    Interface,
    /// Behind transformers' interface, with queries that are scaled before, contiguous inputs, and keys without a bias
    /// (`WhisperAttention`).
    Contiguous,
    /// Written out: batched products of all heads of all samples (`MvpAttention`).
    WrittenOut,
    /// Written out, with masked products clamped to the lowest number, and weights that are returned (`XGLMAttention`).
    Clamped,
}

/// A block of a decoder.
pub(crate) struct Layer {
    norm_before: bool,
    nests_activation: bool,
    self_attn: BartAttention,
    self_attn_layer_norm: LayerNorm,
    /// Attention to what an encoder made, and its norm.
    across: Option<(BartAttention, LayerNorm)>,
    fc1: Linear,
    fc2: Linear,
    final_layer_norm: LayerNorm,
    activation: Activation,
    dropout: f64,
    activation_dropout: f64,
}

impl Layer {
    /// Makes a block.
    pub fn new(b: &Builder, c: &BlockConfig) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || BartAttention::new(b, c));
        let self_attn_layer_norm = LayerNorm::new(b, "self_attn_layer_norm", c.hidden);
        let across = c.has_cross_attention.then(|| {
            let attention = t.scope("encoder_attn", || BartAttention::new(b, c));
            (attention, LayerNorm::new(b, "encoder_attn_layer_norm", c.hidden))
        });
        Self {
            norm_before: c.norm_before,
            nests_activation: c.nests_activation,
            self_attn,
            self_attn_layer_norm,
            across,
            fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, true),
            fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, true),
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", c.hidden),
            activation: c.activation,
            dropout: c.dropout,
            activation_dropout: c.activation_dropout,
        }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let attend = |h: Tensor| self.self_attn.call(t, shared, h);
        let (h, _weights) = self.attended(t, x, &self.self_attn_layer_norm, attend);
        self.fed(t, h)
    }

    /// The same, where the block also attends to what an encoder made, [batch, positions, hidden].
    pub fn forward_across(&self, t: &Tape, shared: &BlockContext, x: Tensor, context: &Tensor) -> Tensor {
        let attend = |h: Tensor| self.self_attn.call(t, shared, h);
        let (mut h, mut weights) = self.attended(t, x, &self.self_attn_layer_norm, attend);
        if let Some((attention, norm)) = &self.across {
            let attend = |h: Tensor| {
                let made = attention.call_across(t, shared, h, context);
                // The weights of this attention take the variable of those before.
                drop(weights.take());
                made
            };
            (h, weights) = self.attended(t, h, norm, attend);
        }
        let out = self.fed(t, h);
        drop(weights);
        out
    }

    /// Adds what an attention makes to the residual stream; returns its weights too.
    fn attended(
        &self,
        t: &Tape,
        x: Tensor,
        norm: &LayerNorm,
        attend: impl FnOnce(Tensor) -> (Tensor, Option<Tensor>),
    ) -> (Tensor, Option<Tensor>) {
        let residual = x.clone();
        let mut h = x;
        if self.norm_before {
            h = norm.call(t, &h);
        }
        let (out, weights) = attend(h);
        h = t.functional_dropout(&out, self.dropout);
        drop(out);
        h = t.add(&residual, &h);
        if !self.norm_before {
            h = norm.call(t, &h);
        }
        (h, weights)
    }

    /// Adds what the MLP makes to the residual stream.
    fn fed(&self, t: &Tape, mut h: Tensor) -> Tensor {
        let final_norm = |h: &Tensor| self.final_layer_norm.call(t, h);
        let residual = h.clone();
        if self.norm_before {
            h = final_norm(&h);
        }
        let nested = self.nests_activation.then(|| h.clone());
        h = self.fc1.call(t, &h);
        h = nn::activate(t, self.activation, h);
        drop(nested);
        h = t.functional_dropout(&h, self.activation_dropout);
        h = self.fc2.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        h = t.add(&residual, &h);
        if !self.norm_before {
            h = final_norm(&h);
        }
        h
    }
}
