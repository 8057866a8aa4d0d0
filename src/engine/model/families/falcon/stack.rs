//! Embeddings, blocks and last norm of Falcon.

use std::rc::Rc;

use super::attention::{SelfAttention, Shared};
use super::{FalconConfig, Norms};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::alibi::linear_biases;
use crate::model::parts::text::{Outputs, Stack, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, Numbered, Pattern, Rotary};
use crate::tape::{Mask, Module, Tape, Tensor};

/// `FalconModel`.
pub(super) struct FalconStack {
    word_embeddings: Embedding,
    h: Vec<Numbered<Block>>,
    ln_f: LayerNorm,
    rotary: Rotary,
    heads: u64,
    alibi: bool,
}

/// `FalconDecoderLayer`.
struct Block {
    self_attention: SelfAttention,
    mlp: Mlp,
    norms: NamedNorms,
    hidden_dropout: f64,
    attention_dropout: f64,
}

enum NamedNorms {
    /// `input_layernorm` and `post_attention_layernorm`.
    InTurn([LayerNorm; 2]),
    /// `input_layernorm`.
    Shared(LayerNorm),
    /// `ln_attn` and `ln_mlp`.
    Each([LayerNorm; 2]),
}

struct Mlp {
    module: Module,
    dense_h_to_4h: Linear,
    dense_4h_to_h: Linear,
    activation: Activation,
}

impl FalconStack {
    pub fn new(b: &Builder, c: &FalconConfig) -> Self {
        let t = b.tape();
        Self {
            word_embeddings: Embedding::new(b, "word_embeddings", c.vocab, c.hidden),
            h: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "h", i, || Rc::new(Block::new(b, c))))
                .collect(),
            ln_f: LayerNorm::new(b, "ln_f", c.hidden),
            rotary: Rotary::new(b, c.head_dim()).dynamic(c.rope.is_dynamic()).initialised(t),
            heads: c.heads,
            alibi: c.alibi,
        }
    }

    /// Adds ALiBi to the causal mask: [batch, heads, seq, seq] in the type of the embeddings.
    fn joined_mask(&self, t: &Tape, alibi: &Tensor, mask: Mask) -> Mask {
        let dtype = alibi.dtype();
        let mask = match mask {
            Mask::Bias(bias) => bias,
            Mask::Bool(allowed) => {
                let zero = t.empty([], dtype, "0");
                let lowest = t.empty([], dtype, "lowest value");
                let bias = t.empty(*allowed.shape(), dtype, "additive mask");
                drop((lowest, zero));
                bias
            }
        };
        let [batch, seq] = [mask.size(0), mask.last()];
        let scaled = t.compute(
            &t.view(alibi, [batch, self.heads, 1, seq]),
            dtype,
            "divided by a number",
        );
        let hidden = t.compute(&mask, DType::Bool, "comparison");
        let joined = t.empty([batch, self.heads, seq, seq], dtype, "masked_fill");
        drop((hidden, scaled, mask));
        Mask::Bias(joined)
    }
}

impl Stack for FalconStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self
            .word_embeddings
            .call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let mut alibi = self
            .alibi
            .then(|| linear_biases(t, ids, self.heads, true, embeds.dtype()));
        let position_ids = nn::position_ids(t, &embeds);
        let mut mask = nn::made_mask(t, run.attn, &embeds, Pattern::Causal);
        if let Some(biases) = alibi.take() {
            let [batch, seq] = [embeds.size(0), embeds.size(1)];
            mask = self.joined_mask(t, &biases, mask);
            alibi = Some(t.view(&biases, [batch, self.heads, 1, seq]));
        }
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = Rc::new(Shared {
            attn: run.attn,
            alibi,
            mask: Some(mask),
            cos,
            sin,
            cache,
            _position_ids: position_ids,
        });
        let h = embeds.clone();
        let (last, held) = run_blocks_with_weights(t, run, (&self.h, &shared), h, Block::forward);
        let out = self.ln_f.call(t, &last);
        drop((held, shared, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.word_embeddings.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &FalconConfig) -> Self {
        let t = b.tape();
        let norm = |name| LayerNorm::new(b, name, c.hidden);
        Self {
            self_attention: t.scope("self_attention", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                dense_h_to_4h: Linear::new(b, "dense_h_to_4h", c.hidden, c.intermediate, c.bias),
                dense_4h_to_h: Linear::new(b, "dense_4h_to_h", c.intermediate, c.hidden, c.bias),
                activation: c.activation,
            }),
            norms: match c.norms {
                Norms::InTurn => {
                    let after = norm("post_attention_layernorm");
                    NamedNorms::InTurn([norm("input_layernorm"), after])
                }
                Norms::Shared => NamedNorms::Shared(norm("input_layernorm")),
                Norms::Each => NamedNorms::Each(["ln_attn", "ln_mlp"].map(norm)),
            },
            hidden_dropout: c.hidden_dropout,
            attention_dropout: c.attention_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Outputs {
        let run = |norm: &LayerNorm, x: &Tensor| norm.call(t, x);
        let (before_attention, mut before_mlp) = match &self.norms {
            NamedNorms::InTurn([norm, _]) => (run(norm, &x), None),
            NamedNorms::Shared(norm) => {
                let normed = run(norm, &x);
                (normed.clone(), Some(normed))
            }
            NamedNorms::Each([of_attention, of_mlp]) => {
                let normed = run(of_attention, &x);
                (normed, Some(run(of_mlp, &x)))
            }
        };
        let (attended, weights) = self.self_attention.call(t, shared, &before_attention);
        let mut residual = x;
        if let NamedNorms::InTurn([_, norm]) = &self.norms {
            let dropped = t.dropout(&attended, self.attention_dropout);
            residual = t.add(&residual, &dropped);
            drop(dropped);
            before_mlp = Some(run(norm, &residual));
        }
        let before_mlp = before_mlp.unwrap_or_else(|| before_attention.clone());
        let mut fed = self.mlp.call(t, before_mlp.clone());
        if !matches!(self.norms, NamedNorms::InTurn(_)) {
            fed = t.add_(fed, &attended);
        }
        let dropped = t.dropout(&fed, self.hidden_dropout);
        let out = t.add(&residual, &dropped);
        drop((dropped, fed, attended, residual, before_attention, before_mlp));
        (out, weights)
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let h = {
                let up = self.dense_h_to_4h.call_apart(t, &x);
                drop(x);
                nn::activate(t, self.activation, up)
            };
            self.dense_4h_to_h.call_apart(t, &h)
        })
    }
}
