//! Embeddings and blocks of the first GPT (`transformers/models/openai/modeling_openai.py`).

use std::rc::Rc;

use super::OpenAiGptConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Conv1d, Embedding, LayerNorm, Numbered};
use crate::tape::{Module, Tape, Tensor};

/// `OpenAIGPTModel`.
pub(super) struct OpenAiStack {
    tokens_embed: Embedding,
    positions_embed: Embedding,
    blocks: Vec<Numbered<Block>>,
    position_ids: Tensor,
    dropout: f64,
}

/// `Block`.
struct Block {
    attn: SelfAttention,
    ln_1: LayerNorm,
    mlp: Mlp,
    ln_2: LayerNorm,
}

/// `Attention`.
struct SelfAttention {
    module: Module,
    /// Ones for keys up to the query's own position, [1, 1, positions, positions].
    bias: Tensor,
    c_attn: Conv1d,
    c_proj: Conv1d,
    heads: u64,
    dropout: f64,
    residual_dropout: f64,
}

/// `MLP`.
struct Mlp {
    module: Module,
    c_fc: Conv1d,
    c_proj: Conv1d,
    activation: Activation,
    dropout: f64,
}

/// `torch.tril(torch.ones(n, n))`, made by `last`.
fn triangle(t: &Tape, n: u64, dtype: DType, last: impl FnOnce() -> Tensor) -> Tensor {
    let ones = t.empty([n, n], dtype, "ones");
    let triangle = last();
    drop(ones);
    triangle
}

impl OpenAiStack {
    pub fn new(b: &Builder, c: &OpenAiGptConfig) -> Self {
        let t = b.tape();
        let tokens_embed = Embedding::new(b, "tokens_embed", c.vocab, c.hidden);
        let positions_embed = Embedding::new(b, "positions_embed", c.positions, c.hidden);
        let blocks: Vec<Numbered<Block>> = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "h", i, || Rc::new(Block::new(b, c))))
            .collect();
        let position_ids = b.buffer("position_ids", [c.positions], DType::I64);
        // `_init_weights` makes all buffers once more.
        for _ in &blocks {
            let again = || t.empty([c.positions; 2], b.dtype(), "bias again");
            drop(triangle(t, c.positions, b.dtype(), again));
        }
        drop(t.empty([c.positions], DType::I64, "position ids again"));
        Self {
            tokens_embed,
            positions_embed,
            blocks,
            position_ids,
            dropout: c.embedding_dropout,
        }
    }

    /// The mask of padding that is added to scores, [batch, 1, 1, seq].
    fn padding(&self, t: &Tape, [batch, seq]: [u64; 2]) -> Tensor {
        let dtype = self.tokens_embed.weight().dtype();
        let part = |name| t.empty([batch, 1, 1, seq], dtype, name);
        let mask = part("mask in the type of weights");
        let inverse = part("1 - mask");
        let scaled = part("times the lowest number");
        drop((inverse, mask));
        scaled
    }
}

impl Stack for OpenAiStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let [batch, seq] = [ids.size(0), ids.size(1)];
        let mask = Rc::new(self.padding(t, [batch, seq]));
        let embeds = self.tokens_embed.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let position_ids = t.unsqueeze(&t.slice(&self.position_ids, 0, seq), 0);
        let positions = self.positions_embed.call(t, &position_ids);
        let mut h = {
            let sum = t.add(&embeds, &positions);
            t.shift(&sum)
        };
        h = t.dropout(&h, self.dropout);
        let out = run_blocks(t, run, (&self.blocks, &mask), h, Block::forward);
        drop((positions, embeds, mask));
        out
    }

    fn table(&self) -> &Tensor {
        self.tokens_embed.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &OpenAiGptConfig) -> Self {
        let t = b.tape();
        Self {
            attn: t.scope("attn", || SelfAttention::new(b, c)),
            ln_1: LayerNorm::new(b, "ln_1", c.hidden),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                c_fc: Conv1d::new(b, "c_fc", c.hidden, 4 * c.hidden),
                c_proj: Conv1d::new(b, "c_proj", 4 * c.hidden, c.hidden),
                activation: c.activation,
                dropout: c.residual_dropout,
            }),
            ln_2: LayerNorm::new(b, "ln_2", c.hidden),
        }
    }

    fn forward(&self, t: &Tape, mask: &Tensor, x: Tensor) -> Tensor {
        let attended = self.attn.call(t, mask, &x);
        let normed = {
            let sum = t.add(&x, &attended);
            self.ln_1.call(t, &sum)
        };
        let fed = self.mlp.call(t, &normed);
        let out = {
            let sum = t.add(&normed, &fed);
            self.ln_2.call(t, &sum)
        };
        drop((fed, normed, attended));
        out
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &OpenAiGptConfig) -> Self {
        let shape = [1, 1, c.positions, c.positions];
        let buffer = || b.buffer("bias", shape, b.dtype());
        Self {
            module: b.module(),
            bias: triangle(b.tape(), c.positions, b.dtype(), buffer),
            c_attn: Conv1d::new(b, "c_attn", c.hidden, 3 * c.hidden),
            c_proj: Conv1d::new(b, "c_proj", c.hidden, c.hidden),
            heads: c.heads,
            dropout: c.attention_dropout,
            residual_dropout: c.residual_dropout,
        }
    }

    fn call(&self, t: &Tape, mask: &Tensor, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let fused = self.c_attn.call(t, x);
            let parts = t.split(&fused, 2, &[hidden; 3]);
            let shape = [batch, seq, self.heads, hidden / self.heads];
            let orders: [&[usize]; 3] = [&[0, 2, 1, 3], &[0, 2, 3, 1], &[0, 2, 1, 3]];
            let [q, k, v] = [0, 1, 2].map(|i| t.permute(&t.view(&parts[i], shape), orders[i]));
            let attended = self.attend(t, [&q, &k, &v], mask);
            let merged = t.contiguous(&t.permute(&attended, &[0, 2, 1, 3]));
            let mut out = t.view(&merged, [batch, seq, hidden]);
            drop(merged);
            out = self.c_proj.call(t, &out);
            out = t.dropout(&out, self.residual_dropout);
            // The list that `_attn` returns holds its output.
            drop(attended);
            out
        })
    }

    /// `_attn`, whose keys are rotated already.
    fn attend(&self, t: &Tape, [q, k, v]: [&Tensor; 3], mask: &Tensor) -> Tensor {
        let mut weights = t.matmul(q, k);
        weights = t.scale(&weights);
        let seen = t.slice(&t.slice(&self.bias, 2, weights.size(2)), 3, weights.last());
        weights = {
            let of_seen = t.mul(&weights, &seen);
            let others = {
                let inverse = t.shift(&seen);
                t.scale(&inverse)
            };
            t.add(&of_seen, &others)
        };
        weights = t.add(&weights, mask);
        weights = t.softmax(&weights, None);
        weights = t.dropout(&weights, self.dropout);
        t.matmul(&weights, v)
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let h = nn::activate(t, self.activation, self.c_fc.call(t, x));
            let out = self.c_proj.call(t, &h);
            let dropped = t.dropout(&out, self.dropout);
            drop((out, h));
            dropped
        })
    }
}
