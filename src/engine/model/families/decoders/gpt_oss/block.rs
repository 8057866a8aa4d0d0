//! gpt-oss's block (`transformers/models/gpt_oss/modeling_gpt_oss.py`).

use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::router::Router;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{self, Builder, Experts, Linear, RmsNorm, RmsScale, SinkCall};
use crate::tape::{Module, Tape, Tensor};

/// `GptOssDecoderLayer`.
pub(crate) struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// A score of each head that no key has.
    sinks: Tensor,
    head_dim: u64,
    dropout: f64,
}

/// `GptOssMLP`.
struct Mlp {
    module: Module,
    router: Router,
    experts: Experts,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> Self {
        let t = b.tape();
        let Some(experts) = &c.experts else {
            unreachable!("the family has experts")
        };
        let norm = |name| RmsNorm::scaled(b, name, c.hidden, RmsScale::WeightFirst);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, experts)),
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, weights) = self.self_attn.call(t, shared, h);
        h = t.add(&residual, &out);
        drop(out);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        let (out, _scores) = self.mlp.call(t, h);
        drop(weights);
        t.add(&residual, &out)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.o_bias),
            sinks: b.weight("sinks", [c.heads]),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// [batch, seq, hidden] → the same, and the attention's weights.
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Tensor) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |proj: &Linear| {
                let projected = proj.call(t, &x);
                let split = t.view(
                    &projected,
                    [batch, seq, projected.last() / self.head_dim, self.head_dim],
                );
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(&self.q_proj);
            let mut k = heads(&self.k_proj);
            let mut v = heads(&self.v_proj);
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                [&q, &k].map(|x| rotated(t, x, &cos, &sin))
            };
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let (mut out, weights) = nn::sink_attention(
                t,
                &SinkCall {
                    q: &q,
                    k: &k,
                    v: &v,
                    mask: shared.mask.as_ref(),
                    sinks: &self.sinks,
                    dropout: self.dropout,
                },
            );
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}

/// `_apply_rotary_emb`.
fn rotated(t: &Tape, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let half = x.last() / 2;
    let parts = t.split(x, 3, &[half; 2]);
    let [first, second] = [&parts[0], &parts[1]];
    let rotated_first = {
        let [a, b] = [t.mul(first, cos), t.mul(second, sin)];
        t.sub(&a, &b)
    };
    let rotated_second = {
        let [a, b] = [t.mul(second, cos), t.mul(first, sin)];
        t.add(&a, &b)
    };
    t.cat(&[&rotated_first, &rotated_second], 3)
}

impl Mlp {
    fn new(b: &Builder, e: &ExpertsConfig) -> Self {
        Self {
            module: b.module(),
            router: b.tape().scope("router", || Router::new(b, e)),
            experts: Experts::biased(b, "experts", e.sizes),
        }
    }

    /// [batch, seq, hidden] → the same, and the router's scores.
    fn call(&self, t: &Tape, x: Tensor) -> (Tensor, Tensor) {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            drop(x);
            let [_logits, scores, indices] = self.router.call(t, &rows);
            let out = self.experts.call(t, &rows, &indices, &scores);
            drop(rows);
            (t.reshape(&out, shape), scores)
        })
    }
}
