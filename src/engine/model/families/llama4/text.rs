//! Llama 4's language model (`transformers/models/llama4/modeling_llama4.py`).

use std::rc::Rc;

use super::moe::Moe;
use super::norm::TextNorm;
use super::text_config::{BlockKind, Llama4TextConfig};
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_each_block};
use crate::nn::{self, AttentionCall, Builder, ComplexRotary, Embedding, KvCache, Linear, Numbered, Pattern};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `Llama4TextModel`.
pub struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    norm: TextNorm,
    rotary: ComplexRotary,
    chunk: u64,
    windows: Vec<Option<u64>>,
}

/// State that all blocks of one kind share.
#[derive(Clone)]
struct Shared {
    attn: Attention,
    mask: Option<Mask>,
    freqs_cis: Tensor,
    cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    _position_ids: Tensor,
}

struct Layer {
    kind: BlockKind,
    self_attn: SelfAttention,
    feed_forward: FeedForward,
    input_layernorm: TextNorm,
    post_attention_layernorm: TextNorm,
}

enum FeedForward {
    Dense(Mlp),
    Sparse(Moe),
}

struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    qk_norm: Option<TextNorm>,
    use_rope: bool,
    attn_temperature_tuning: bool,
    head_dim: u64,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &Llama4TextConfig) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layers = c
            .blocks
            .iter()
            .enumerate()
            .map(|(i, &kind)| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, kind))))
            .collect();
        Self {
            embed_tokens,
            layers,
            norm: TextNorm::new(b, "norm", c.hidden),
            rotary: ComplexRotary::new(b, c.head_dim),
            chunk: c.chunk,
            windows: c.blocks.iter().map(|kind| kind.is_chunked.then_some(c.chunk)).collect(),
        }
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: &Tensor) -> Tensor {
        let cache = run.cache(&self.windows);
        let position_ids = nn::position_ids(t, embeds);
        let full = nn::pattern_mask(t, run.attn, embeds, Pattern::Causal);
        let chunked = nn::pattern_mask(t, run.attn, embeds, Pattern::Chunked(self.chunk));
        let freqs_cis = self.rotary.call(t, &position_ids);
        let full = Shared {
            attn: run.attn,
            mask: full,
            freqs_cis,
            cache,
            _position_ids: position_ids,
        };
        let chunked = Shared {
            mask: chunked,
            ..full.clone()
        };
        let shared = [full, chunked].map(Rc::new);
        let blocks = self.layers.iter();
        let blocks = blocks.map(|layer| (layer.clone(), shared[usize::from(layer.kind.is_chunked)].clone()));
        let h = run_each_block(t, run, blocks, embeds.clone(), (Layer::forward, |_| {}));
        let out = self.norm.call(t, &h);
        drop(shared);
        out
    }
}

impl Stack for Decoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embed(t, run, ids);
        self.forward(t, run, &embeds)
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}

impl Layer {
    fn new(b: &Builder, c: &Llama4TextConfig, kind: BlockKind) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || SelfAttention::new(b, c, kind));
        let feed_forward = t.scope("feed_forward", || match kind.is_moe_layer {
            true => FeedForward::Sparse(Moe::new(b, c)),
            false => FeedForward::Dense(Mlp::of(b, [c.hidden, c.dense_intermediate], false, c.activation)),
        });
        let norm = |name| TextNorm::new(b, name, c.hidden);
        Self {
            kind,
            self_attn,
            feed_forward,
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (attended, mut rest) = self.self_attn.call(t, shared, &h);
        h = t.add(&residual, &attended);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = match &self.feed_forward {
            FeedForward::Dense(mlp) => mlp.call(t, h),
            FeedForward::Sparse(moe) => {
                let (out, logits) = moe.call(t, &h);
                rest = Some(logits);
                out
            }
        };
        let out = t.add(&residual, &t.view(&h, *residual.shape()));
        drop((rest, attended));
        out
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Llama4TextConfig, kind: BlockKind) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.bias),
            qk_norm: (c.qk_norm && kind.use_rope).then(|| TextNorm::plain("qk_norm")),
            use_rope: kind.use_rope,
            attn_temperature_tuning: c.attn_temperature_tuning && !kind.use_rope,
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let project = |proj: &Linear| {
                let out = proj.call(t, x);
                t.view(&out, [batch, seq, out.last() / self.head_dim, self.head_dim])
            };
            let mut q = project(&self.q_proj);
            let mut k = project(&self.k_proj);
            let mut v = t.transpose(&project(&self.v_proj), 1, 2);
            if self.use_rope {
                [q, k] = nn::apply_complex_rotary(t, [&q, &k], &t.unsqueeze(&shared.freqs_cis, 2));
            }
            if let Some(norm) = &self.qk_norm {
                q = norm.call(t, &q);
                k = norm.call(t, &k);
            }
            let mut scales = None;
            if self.attn_temperature_tuning {
                let of_positions = attention_scales(t, seq);
                let wide = t.expand(&t.view(&of_positions.1, [1, seq, 1, 1]), [batch, seq, 1, 1]);
                q = {
                    let scaled = t.mul(&q, &wide);
                    t.to_dtype(&scaled, q.dtype())
                };
                scales = Some(of_positions);
            }
            q = t.transpose(&q, 1, 2);
            k = t.transpose(&k, 1, 2);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            drop(scales);
            (out, weights)
        })
    }
}

/// Positions and the scale of each query, [seq] both.
fn attention_scales(t: &Tape, seq: u64) -> (Tensor, Tensor) {
    let positions = {
        let _arange = nn::ids(t, &[seq], "arange");
        nn::ids(t, &[seq], "positions")
    };
    let mut scales = t.compute(&positions, DType::F32, "float");
    for name in [
        "plus 1",
        "over the floor",
        "floor",
        "log1p",
        "times the scale",
        "plus 1",
    ] {
        scales = t.compute(&scales, DType::F32, name);
    }
    (positions, scales)
}
