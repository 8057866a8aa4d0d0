//! A block: attention and a gated MLP, each after an RMS norm.

use super::CpmAntConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct Shared {
    /// Whole numbers, zero for keys that are not seen, [batch, seq, seq].
    pub mask: Tensor,
    /// [batch, heads, seq, seq].
    pub bias: Tensor,
    pub cache: Option<KvCache>,
}

/// `CpmAntLayerNorm`: an RMS norm that multiplies in the type of its input before it narrows.
pub(super) struct Norm {
    module: Module,
    weight: Tensor,
}

impl Norm {
    /// Makes a norm of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
        })
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let variance = {
                let squares = {
                    let wide = t.to_dtype(x, DType::F32);
                    t.pow(&wide)
                };
                t.mean_last(&squares)
            };
            let normed = {
                let inverse = {
                    let shifted = t.shift(&variance);
                    t.rsqrt(&shifted)
                };
                let product = t.mul(x, &inverse);
                drop(inverse);
                t.to_dtype(&product, x.dtype())
            };
            let out = t.mul(&normed, &self.weight);
            drop(variance);
            out
        })
    }
}

/// `CpmAntTransformerBlock`.
pub(super) struct Block {
    attention: AttentionBlock,
    ffn: FeedForwardBlock,
}

/// `CpmAntSelfAttentionBlock`.
struct AttentionBlock {
    module: Module,
    norm: Norm,
    attention: SelfAttention,
    dropout: f64,
}

/// `CpmAntFFNBlock`.
struct FeedForwardBlock {
    module: Module,
    norm: Norm,
    ffn: FeedForward,
    dropout: f64,
}

/// `CpmAntFeedForward`, with its `CpmAntDenseGatedACT`.
struct FeedForward {
    module: Module,
    gated: Module,
    maps: [Linear; 2],
    out: Linear,
    dropout: f64,
}

/// `CpmAntAttention`.
struct SelfAttention {
    module: Module,
    qkv: [Linear; 3],
    out: Linear,
    heads: u64,
    head_dim: u64,
    dropout: f64,
}

impl Block {
    /// Makes a block.
    pub fn new(b: &Builder, c: &CpmAntConfig) -> Self {
        let t = b.tape();
        let attention = t.scope("self_att", || AttentionBlock {
            module: b.module(),
            norm: Norm::new(b, "layernorm_before_attention", c.hidden),
            attention: t.scope("self_attention", || SelfAttention::new(b, c)),
            dropout: c.dropout,
        });
        let ffn = t.scope("ffn", || FeedForwardBlock {
            module: b.module(),
            norm: Norm::new(b, "layernorm_before_ffn", c.hidden),
            ffn: t.scope("ffn", || FeedForward::new(b, c)),
            dropout: c.dropout,
        });
        Self { attention, ffn }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let attended = self.attention.call(t, shared, &x);
        let out = self.ffn.call(t, &attended);
        drop((attended, x));
        out
    }
}

impl AttentionBlock {
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let normed = self.norm.call(t, x);
            let mut out = self.attention.call(t, shared, &normed);
            drop(normed);
            out = t.dropout(&out, self.dropout);
            t.add(x, &out)
        })
    }
}

impl FeedForwardBlock {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let normed = self.norm.call(t, x);
            let mut out = self.ffn.call(t, &normed);
            out = t.dropout(&out, self.dropout);
            let sum = t.add(x, &out);
            drop(normed);
            sum
        })
    }
}

impl FeedForward {
    fn new(b: &Builder, c: &CpmAntConfig) -> Self {
        let (gated, maps) = b.tape().scope("w_in", || {
            let map = |name| Linear::new(b, name, c.hidden, c.intermediate, false);
            (b.module(), ["w_0", "w_1"].map(map))
        });
        Self {
            module: b.module(),
            gated,
            maps,
            out: Linear::new(b, "w_out", c.intermediate, c.hidden, false),
            dropout: c.dropout,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut h = self.gated.call(t, || {
                let gate = nn::activate(t, Activation::Gelu, self.maps[0].call(t, x));
                let open = self.maps[1].call(t, x);
                let product = t.mul(&gate, &open);
                drop((gate, open));
                product
            });
            h = t.dropout(&h, self.dropout);
            self.out.call(t, &h)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &CpmAntConfig) -> Self {
        let inner = c.heads * c.head_dim;
        Self {
            module: b.module(),
            qkv: ["project_q", "project_k", "project_v"].map(|name| Linear::new(b, name, c.hidden, inner, false)),
            out: Linear::new(b, "attention_out", inner, c.hidden, false),
            heads: c.heads,
            head_dim: c.head_dim,
            dropout: c.dropout,
        }
    }

    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let flat = [0, 1, 2].map(|i| self.qkv[i].call(t, x));
            let [q, mut k, mut v] = flat.map(|flat| {
                let split = t.view(&flat, [batch, seq, self.heads, self.head_dim]);
                t.permute(&split, &[0, 2, 1, 3])
            });
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let mut scores = {
                let product = t.matmul(&q, &t.transpose(&k, 2, 3));
                t.scale(&product)
            };
            scores = t.add(&scores, &shared.bias);
            scores = masked(t, &scores, &shared.mask);
            scores = t.softmax(&scores, None);
            scores = masked(t, &scores, &shared.mask);
            scores = t.dropout(&scores, self.dropout);
            let mut out = t.matmul(&scores, &v);
            drop(scores);
            out = t.contiguous(&t.permute(&out, &[0, 2, 1, 3]));
            out = t.view(&out, [batch, seq, self.heads * self.head_dim]);
            self.out.call(t, &out)
        })
    }
}

/// Scores filled where the mask, [batch, seq, seq], is zero.
fn masked(t: &Tape, scores: &Tensor, mask: &Tensor) -> Tensor {
    let hidden = t.unsqueeze(&t.compute(mask, DType::Bool, "mask is zero"), 1);
    let value = t.empty([], scores.dtype(), "value");
    let filled = t.masked_fill(scores, &hidden);
    drop((hidden, value));
    filled
}
