//! gpt-oss's block (`transformers/models/gpt_oss/modeling_gpt_oss.py`).

use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::router::Router;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{self, Builder, Experts, Linear, RmsNorm, RmsScale, SinkCall};
use crate::tape::{Tape, Tensor};

/// `GptOssDecoderLayer`.
pub(crate) struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

struct SelfAttention {
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
        let mut h = t.scope("input_layernorm", || self.input_layernorm.forward(t, &x));
        drop(x);
        let (out, weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, h));
        h = t.add(&residual, &out);
        drop(out);
        let residual = h.clone();
        h = t.scope("post_attention_layernorm", || {
            self.post_attention_layernorm.forward(t, &h)
        });
        let (out, _scores) = t.scope("mlp", || self.mlp.forward(t, h));
        drop(weights);
        t.add(&residual, &out)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
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
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Tensor) {
        let [batch, seq] = [x.size(0), x.size(1)];
        let heads = |name, proj: &Linear| {
            let projected = t.scope(name, || proj.forward(t, &x));
            let split = t.view(
                &projected,
                [batch, seq, projected.last() / self.head_dim, self.head_dim],
            );
            t.transpose(&split, 1, 2)
        };
        let mut q = heads("q_proj", &self.q_proj);
        let mut k = heads("k_proj", &self.k_proj);
        let mut v = heads("v_proj", &self.v_proj);
        [q, k] = {
            let cos = t.unsqueeze(&shared.cos, 1);
            let sin = t.unsqueeze(&shared.sin, 1);
            [&q, &k].map(|x| turned(t, x, &cos, &sin))
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
        out = t.scope("o_proj", || self.o_proj.forward(t, &out));
        (out, weights)
    }
}

/// `_apply_rotary_emb`.
fn turned(t: &Tape, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let half = x.last() / 2;
    let parts = t.split(x, 3, &[half; 2]);
    let [first, second] = [&parts[0], &parts[1]];
    let turned_first = {
        let [a, b] = [t.mul(first, cos), t.mul(second, sin)];
        t.sub(&a, &b)
    };
    let turned_second = {
        let [a, b] = [t.mul(second, cos), t.mul(first, sin)];
        t.add(&a, &b)
    };
    t.cat(&[&turned_first, &turned_second], 3)
}

impl Mlp {
    fn new(b: &Builder, e: &ExpertsConfig) -> Self {
        Self {
            router: b.tape().scope("router", || Router::new(b, e)),
            experts: Experts::biased(b, "experts", e.sizes),
        }
    }

    /// [batch, seq, hidden] → the same, and the router's scores.
    fn forward(&self, t: &Tape, x: Tensor) -> (Tensor, Tensor) {
        let shape = *x.shape();
        let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
        drop(x);
        let [_logits, scores, indices] = t.scope("router", || self.router.forward(t, &rows));
        let out = t.scope("experts", || self.experts.forward(t, &rows, &indices, &scores));
        drop(rows);
        (t.reshape(&out, shape), scores)
    }
}
