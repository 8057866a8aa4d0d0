//! Embeddings, blocks and last norm of MPT.

use std::rc::Rc;

use super::MptConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::{Outputs, Stack, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, KvCache, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `MptModel`.
pub(super) struct MptStack {
    wte: Embedding,
    blocks: Vec<Numbered<Block>>,
    norm_f: LayerNorm,
    heads: u64,
    positions: u64,
}

/// `MptBlock`.
struct Block {
    norm_1: LayerNorm,
    attn: SelfAttention,
    norm_2: LayerNorm,
    ffn: Mlp,
}

/// `MptMLP`.
struct Mlp {
    module: Module,
    up_proj: Linear,
    down_proj: Linear,
}

struct SelfAttention {
    module: Module,
    wqkv: Linear,
    out_proj: Linear,
    heads: u64,
    clips: bool,
}

/// State that all blocks of one forward share.
struct Shared {
    /// [heads, 1, positions].
    alibi: Tensor,
    /// True for keys that are hidden, or may be seen where nothing else is, [batch, 1, seq, seq].
    mask: Option<Tensor>,
    cache: Option<KvCache>,
}

impl MptStack {
    pub fn new(b: &Builder, c: &MptConfig) -> Self {
        Self {
            wte: Embedding::new(b, "wte", c.vocab, c.hidden),
            blocks: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "blocks", i, || Rc::new(Block::new(b, c))))
                .collect(),
            norm_f: LayerNorm::with_removed_bias(b, "norm_f", c.hidden),
            heads: c.heads,
            positions: c.positions,
        }
    }

    /// `build_mpt_alibi_tensor`, [heads, 1, positions].
    fn alibi(&self, t: &Tape) -> Tensor {
        let power = self.heads.next_power_of_two();
        let steps = t.empty([1, 1, 1, self.positions], DType::I32, "arange");
        let part = |name| t.empty([1, power, 1, 1], DType::F32, name);
        let base = {
            let whole = {
                let _heads = t.empty([power], DType::I64, "arange");
                part("arange as float")
            };
            let scaled = part("times a number");
            drop(whole);
            scaled
        };
        let mut slopes = {
            let powers = {
                let _two = t.empty([], DType::I64, "2");
                part("pow")
            };
            let inverse = part("reciprocal");
            let slopes = part("times 1");
            drop((inverse, powers));
            slopes
        };
        if power != self.heads {
            let joined = part("slopes in the order of heads");
            slopes = t.slice(&joined, 1, self.heads);
        }
        let alibi = t.mul(&steps, &slopes);
        drop((steps, base, slopes));
        t.squeeze(&alibi, 0)
    }
}

impl Stack for MptStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.wte.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let alibi = self.alibi(t);
        let mask = match nn::causal_mask(t, Attention::Eager, &embeds) {
            Some(Mask::Bias(bias) | Mask::Bool(bias)) => Some(t.compute(&bias, DType::Bool, "mask as booleans")),
            None => None,
        };
        let shared = Rc::new(Shared { alibi, mask, cache });
        let h = embeds.clone();
        let (last, held) = run_blocks_with_weights(t, run, (&self.blocks, &shared), h, Block::forward);
        let out = self.norm_f.call(t, &last);
        drop((held, shared, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.wte.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &MptConfig) -> Self {
        let t = b.tape();
        Self {
            norm_1: LayerNorm::with_removed_bias(b, "norm_1", c.hidden),
            attn: t.scope("attn", || SelfAttention {
                module: b.module(),
                wqkv: Linear::new(b, "Wqkv", c.hidden, 3 * c.hidden, false),
                out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, false),
                heads: c.heads,
                clips: c.clips,
            }),
            norm_2: LayerNorm::with_removed_bias(b, "norm_2", c.hidden),
            ffn: t.scope("ffn", || Mlp {
                module: b.module(),
                up_proj: Linear::adapted(b, "up_proj", c.hidden, 4 * c.hidden, false),
                down_proj: Linear::adapted(b, "down_proj", 4 * c.hidden, c.hidden, false),
            }),
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Outputs {
        let mut normed = self.norm_1.call(t, &x);
        let (attended, weights) = self.attn.call(t, shared, &normed);
        let h = t.add(&attended, &x);
        normed = self.norm_2.call(t, &h);
        let out = self.ffn.call(t, &normed, &h);
        drop((attended, h));
        (out, Some(weights))
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor, residual: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let h = {
                let up = self.up_proj.call(t, x);
                nn::activate(t, Activation::Gelu, up)
            };
            let down = self.down_proj.call(t, &h);
            let out = t.add(&down, residual);
            drop((down, h));
            out
        })
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let mut fused = self.wqkv.call(t, x);
            if self.clips {
                fused = t.clamp_between(&fused);
            }
            let parts = t.split(&fused, 2, &[hidden; 3]);
            let shape = [batch, seq, self.heads, hidden / self.heads];
            let [q, mut k, mut v] = [0, 1, 2].map(|i| t.transpose(&t.view(&parts[i], shape), 1, 2));
            drop(parts);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let mut scores = {
                let product = t.matmul(&q, &t.transpose(&k, 2, 3));
                t.scale(&product)
            };
            let bias = t.slice(&shared.alibi, 2, k.size(2).min(shared.alibi.last()));
            scores = t.add(&scores, &bias);
            if let Some(mask) = &shared.mask {
                scores = t.masked_fill(&scores, mask);
            }
            let weights = {
                let probabilities = t.softmax(&t.to_dtype(&scores, DType::F32), None);
                t.to_dtype(&probabilities, v.dtype())
            };
            let mut out = t.matmul(&weights, &v);
            out = t.view(&t.contiguous(&t.permute(&out, &[0, 2, 1, 3])), [batch, seq, hidden]);
            let projected = self.out_proj.call(t, &out);
            drop((scores, fused));
            (projected, weights)
        })
    }
}
