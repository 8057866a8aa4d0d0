//! Granite MoE's block (`transformers/models/granitemoe/modeling_granitemoe.py`, and `granitemoeshared`'s).

use crate::model::config::Activation;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::{Attend, SelfAttention};
use crate::model::decoder::router::Router;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{self, Builder, Experts, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `GraniteMoeDecoderLayer` and `GraniteMoeSharedDecoderLayer`.
pub(crate) struct Layer {
    self_attn: Box<dyn Attend>,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    block_sparse_moe: Moe,
    shared_mlp: Option<SharedMlp>,
}

/// `GraniteMoeMoE`.
pub(crate) struct Moe {
    module: Module,
    router: Router,
    experts: Experts,
}

/// `GraniteMoeSharedMLP`.
pub(crate) struct SharedMlp {
    module: Module,
    input_linear: Linear,
    output_linear: Linear,
    activation: Activation,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        Self::with_attention(b, c, &|| Box::new(SelfAttention::new(b, c, index)))
    }

    /// Makes a block with another attention.
    pub(crate) fn with_attention(b: &Builder, c: &DecoderConfig, attention: &dyn Fn() -> Box<dyn Attend>) -> Self {
        let t = b.tape();
        let Some(experts) = &c.experts else {
            unreachable!("the family has experts")
        };
        let self_attn = t.scope("self_attn", attention);
        let norm = |name| RmsNorm::new(b, name, c.hidden);
        let [input_layernorm, post_attention_layernorm] = ["input_layernorm", "post_attention_layernorm"].map(norm);
        let block_sparse_moe = t.scope("block_sparse_moe", || Moe::new(b, experts, c.activation));
        let shared_mlp = |width| t.scope("shared_mlp", || SharedMlp::new(b, c, width));
        Self {
            self_attn,
            input_layernorm,
            post_attention_layernorm,
            block_sparse_moe,
            shared_mlp: experts.shared_width().map(shared_mlp),
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = t.add(&residual, &t.scale(&out));
        drop(out);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        let routed = self.block_sparse_moe.call(t, &h);
        let mut _routed = None;
        h = match &self.shared_mlp {
            Some(mlp) => {
                let sum = t.add(&routed, &mlp.call(t, &h));
                _routed = Some(routed);
                sum
            }
            None => routed,
        };
        t.add(&residual, &t.scale(&h))
    }
}

impl Moe {
    pub(crate) fn new(b: &Builder, e: &ExpertsConfig, activation: Activation) -> Self {
        Self {
            module: b.module(),
            router: b.tape().scope("router", || Router::new(b, e)),
            experts: Experts::new(b, "experts", e.sizes, activation),
        }
    }

    pub(crate) fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let rows = t.view(x, [x.numel() / x.last(), x.last()]);
            let [_logits, weights, indices] = self.router.call(t, &rows);
            let out = self.experts.call(t, &rows, &indices, &weights);
            t.view(&out, *x.shape())
        })
    }
}

impl SharedMlp {
    pub(crate) fn new(b: &Builder, c: &DecoderConfig, width: u64) -> Self {
        Self {
            module: b.module(),
            input_linear: Linear::new(b, "input_linear", c.hidden, 2 * width, false),
            output_linear: Linear::new(b, "output_linear", width, c.hidden, false),
            activation: c.activation,
        }
    }

    pub(crate) fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let fused = self.input_linear.call(t, x);
            let half = fused.last() / 2;
            let parts = t.split(&fused, fused.dim() - 1, &[half; 2]);
            drop(fused);
            let product = {
                let activated = nn::activate(t, self.activation, parts[0].clone());
                t.mul(&activated, &parts[1])
            };
            self.output_linear.call(t, &product)
        })
    }
}
