//! A block: attention or a recurrence, then a gated MLP (`RecurrentGemmaDecoderLayer`).

use super::RecurrentGemmaConfig;
use super::attention::SelfAttention;
use super::recurrent::RecurrentBlock;
use crate::model::config::Activation;
use crate::nn::{self, Builder, KvCache, Linear, RmsNorm, RmsScale};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Mask, positions and cache, which all blocks of a forward share.
pub(super) struct Shared {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub position_ids: Tensor,
    pub cache: Option<KvCache>,
}

/// `RecurrentGemmaDecoderLayer`.
pub(super) struct Block {
    temporal_pre_norm: RmsNorm,
    temporal: Temporal,
    channel_pre_norm: RmsNorm,
    mlp: Mlp,
}

/// `temporal_block`.
enum Temporal {
    Recurrent(Box<RecurrentBlock>),
    Attention(Box<SelfAttention>),
}

/// `RecurrentGemmaMlp`.
struct Mlp {
    module: Module,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl Block {
    pub fn new(b: &Builder, c: &RecurrentGemmaConfig, index: usize) -> Self {
        let t = b.tape();
        let norm = |name| RmsNorm::scaled(b, name, c.hidden, RmsScale::OnePlusWeight);
        Self {
            temporal_pre_norm: norm("temporal_pre_norm"),
            temporal: t.scope("temporal_block", || match c.has_attention[index] {
                true => Temporal::Attention(Box::new(SelfAttention::new(b, c))),
                false => Temporal::Recurrent(Box::new(RecurrentBlock::new(b, c))),
            }),
            channel_pre_norm: norm("channel_pre_norm"),
            mlp: t.scope("mlp_block", || Mlp {
                module: b.module(),
                gate_proj: Linear::new(b, "gate_proj", c.hidden, c.intermediate, true),
                up_proj: Linear::new(b, "up_proj", c.hidden, c.intermediate, true),
                down_proj: Linear::new(b, "down_proj", c.intermediate, c.hidden, true),
                activation: c.activation,
            }),
        }
    }

    /// `_init_weights` of its modules.
    pub fn initialise(&self, t: &Tape) {
        match &self.temporal {
            Temporal::Recurrent(recurrent) => recurrent.initialise(t),
            Temporal::Attention(attention) => attention.initialise(t),
        }
    }

    /// `_setup_cache`, for embeddings [batch, seq, hidden].
    pub fn reset(&self, t: &Tape, embeds: &Tensor) {
        if let Temporal::Recurrent(recurrent) = &self.temporal {
            recurrent.reset(t, embeds);
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let normed = self.temporal_pre_norm.call(t, &x);
        let (mut h, weights) = match &self.temporal {
            Temporal::Recurrent(recurrent) => (recurrent.call(t, shared, &normed), None),
            Temporal::Attention(attention) => attention.call(t, shared, &normed),
        };
        let residual = t.add(&h, &x);
        h = self.channel_pre_norm.call(t, &residual);
        h = self.mlp.call(t, &h);
        h = t.add(&h, &residual);
        drop((residual, weights, normed, x));
        h
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let gate = nn::activate(t, self.activation, self.gate_proj.call(t, x));
            let product = {
                let up = self.up_proj.call(t, x);
                t.mul(&gate, &up)
            };
            let out = self.down_proj.call(t, &product);
            drop((product, gate));
            out
        })
    }
}
