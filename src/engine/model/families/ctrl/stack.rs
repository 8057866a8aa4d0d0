//! Embeddings, blocks and last norm of CTRL (`transformers/models/ctrl/modeling_ctrl.py`).

use std::rc::Rc;

use super::CtrlConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, AttentionCall, Builder, Embedding, KvCache, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `CTRLModel`.
pub(super) struct CtrlStack {
    w: Embedding,
    blocks: Vec<Numbered<Layer>>,
    layernorm: LayerNorm,
    /// Sines and cosines, [positions, hidden].
    pos_encoding: Tensor,
    dropout: f64,
}

/// `EncoderLayer`.
struct Layer {
    attention: SelfAttention,
    ffn: Module,
    ffn_maps: [Linear; 2],
    layernorm1: LayerNorm,
    layernorm2: LayerNorm,
    dropout: f64,
}

/// `MultiHeadAttention`.
struct SelfAttention {
    module: Module,
    /// Queries, keys and values.
    maps: [Linear; 3],
    dense: Linear,
    heads: u64,
}

/// State that all blocks of one forward share.
struct Shared {
    attn: Attention,
    mask: Option<Mask>,
    cache: Option<KvCache>,
}

/// `positional_encoding` in fp32, made by `last`.
fn sinusoids(t: &Tape, [positions, width]: [u64; 2], last: impl FnOnce() -> Tensor) -> Tensor {
    let counted = |n: u64| {
        let _whole = t.empty([n], DType::I64, "arange");
        t.empty([n], DType::F32, "arange as float")
    };
    let (rows, columns) = (counted(positions), counted(width));
    let angles = {
        let part = |name| t.empty([width], DType::F32, name);
        let steps = {
            let doubled = {
                let _halves = part("floor_divide");
                part("mul")
            };
            let shares = part("div");
            drop(doubled);
            shares
        };
        let powers = part("pow");
        drop(steps);
        let inverse = part("reciprocal");
        let rates = part("times 1");
        drop((inverse, powers));
        let angles = t.empty([positions, width], DType::F32, "angles");
        drop(rates);
        angles
    };
    drop((rows, columns));
    let [sines, cosines] = ["sin", "cos"].map(|name| t.empty([positions, width / 2], DType::F32, name));
    let joined = last();
    drop((sines, cosines, angles));
    joined
}

impl CtrlStack {
    pub fn new(b: &Builder, c: &CtrlConfig) -> Self {
        let t = b.tape();
        let shape = [c.positions, c.hidden];
        let w = Embedding::new(b, "w", c.vocab, c.hidden);
        let blocks = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "h", i, || Rc::new(Layer::new(b, c))))
            .collect();
        let layernorm = LayerNorm::new(b, "layernorm", c.hidden);
        // The first forward casts the buffer to the type of the embeddings, and the module keeps that one: all steps after
        // it find it there.
        let pos_encoding = {
            let wide = sinusoids(t, shape, || t.empty(shape, DType::F32, "pos_encoding"));
            drop(sinusoids(t, shape, || t.empty(shape, DType::F32, "pos_encoding again")));
            drop(wide);
            b.buffer("pos_encoding", shape, b.dtype())
        };
        Self {
            w,
            blocks,
            layernorm,
            pos_encoding,
            dropout: c.embedding_dropout,
        }
    }
}

impl Stack for CtrlStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let mut embeds = self.w.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let position_ids = nn::ids(t, &[embeds.size(1)], "arange");
        let mask = nn::causal_mask(t, run.attn, &embeds);
        embeds = t.scale_(embeds);
        let positions = t.unsqueeze(&t.index(&self.pos_encoding, std::slice::from_ref(&position_ids)), 0);
        let mut h = {
            let sum = t.add(&embeds, &positions);
            t.shift(&sum)
        };
        h = t.dropout(&h, self.dropout);
        let attn = run.attn;
        let shared = Rc::new(Shared { attn, mask, cache });
        let last = run_blocks(t, run, (&self.blocks, &shared), h, Layer::forward);
        let out = self.layernorm.call(t, &last);
        drop((shared, positions, position_ids, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.w.weight()
    }
}

impl Layer {
    fn new(b: &Builder, c: &CtrlConfig) -> Self {
        let t = b.tape();
        let widths = [[c.hidden, c.intermediate], [c.intermediate, c.hidden]];
        let attention = t.scope("multi_head_attention", || SelfAttention::new(b, c));
        let (ffn, ffn_maps) = t.scope("ffn", || {
            let map = |i: usize| {
                let [input, output] = widths[i];
                t.scope(["0", "2"][i], || Linear::unnamed(b, input, output))
            };
            (b.module(), [map(0), map(1)])
        });
        Self {
            attention,
            ffn,
            ffn_maps,
            layernorm1: LayerNorm::new(b, "layernorm1", c.hidden),
            layernorm2: LayerNorm::new(b, "layernorm2", c.hidden),
            dropout: c.residual_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let normed = self.layernorm1.call(t, &x);
        let mut attended = self.attention.call(t, shared, &normed);
        attended = t.dropout(&attended, self.dropout);
        let h = t.add(&x, &attended);
        let normed_again = self.layernorm2.call(t, &h);
        let mut fed = self.ffn.call(t, || {
            let up = self.ffn_maps[0].call(t, &normed_again);
            let active = nn::activate(t, Activation::Relu, up);
            self.ffn_maps[1].call(t, &active)
        });
        fed = t.dropout(&fed, self.dropout);
        let out = t.add(&h, &fed);
        drop((fed, normed_again, h, attended, normed));
        out
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &CtrlConfig) -> Self {
        let map = |name| Linear::new(b, name, c.hidden, c.hidden, true);
        Self {
            module: b.module(),
            maps: ["Wq", "Wk", "Wv"].map(map),
            dense: map("dense"),
            heads: c.heads,
        }
    }

    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let shape = [batch, seq, self.heads, hidden / self.heads];
            let [q, mut k, mut v] = [0, 1, 2].map(|i| t.transpose(&t.view(&self.maps[i].call(t, x), shape), 1, 2));
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: 0.0,
                softmax: None,
            };
            let (mut out, _weights) = nn::attention(t, shared.attn, &call);
            out = t.contiguous(&t.reshape(&out, [batch, seq, hidden]));
            self.dense.call(t, &out)
        })
    }
}
