//! GPT-2 (`transformers/models/gpt2/modeling_gpt2.py`).

use std::rc::Rc;

use super::config::Gpt2Config;
use crate::model::config::Activation;
use crate::model::decoder::head::{last_logits, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, AttentionCall, Builder, Conv1d, Embedding, KvCache, LayerNorm, Linear, Numbered, Pattern};
use crate::setup::Attention;
use crate::tape::{Component, Mask, Module, SdpaInputs, Tape, Tensor};

/// `GPT2LMHeadModel`.
pub struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    blocks: Vec<Numbered<Block>>,
    ln_f: LayerNorm,
    lm_head: Linear,
    embedding_dropout: f64,
}

struct Block {
    ln_1: LayerNorm,
    attn: SelfAttention,
    ln_2: LayerNorm,
    mlp: Mlp,
}

struct SelfAttention {
    module: Module,
    c_attn: Conv1d,
    c_proj: Conv1d,
    heads: u64,
    dropout: f64,
    residual_dropout: f64,
}

/// State that all blocks of one forward share.
struct BlockContext {
    attn: Attention,
    mask: Option<Mask>,
    cache: Option<KvCache>,
}

struct Mlp {
    module: Module,
    c_fc: Conv1d,
    c_proj: Conv1d,
    activation: Activation,
    dropout: f64,
}

impl Gpt2 {
    pub fn new(b: &Builder, c: &Gpt2Config) -> Self {
        let t = b.tape();
        let (wte, wpe, blocks, ln_f) = t.component("transformer", Component::LanguageModel, || {
            let wte = Embedding::new(b, "wte", c.vocab, c.hidden);
            let wpe = Embedding::new(b, "wpe", c.positions, c.hidden);
            let blocks = (0..c.layers as usize)
                .map(|i| Numbered::new(b, "h", i, || Rc::new(Block::new(b, c))))
                .collect();
            (wte, wpe, blocks, LayerNorm::new(b, "ln_f", c.hidden))
        });
        let lm_head = t.component("", Component::Head, || {
            if c.tie_word_embeddings {
                Linear::tied(b, "lm_head", wte.weight())
            } else {
                Linear::new(b, "lm_head", c.hidden, c.vocab, false)
            }
        });
        Self {
            wte,
            wpe,
            blocks,
            ln_f,
            lm_head,
            embedding_dropout: c.embedding_dropout,
        }
    }

    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor {
        let cache = run.cache(&[]);
        let embeds = self.wte.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        let positions = self.wpe.call(t, &position_ids);
        let mut h = t.add(&embeds, &positions);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask: nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal),
            cache,
        });
        h = t.watched("drop", || t.dropout(&h, self.embedding_dropout));
        for block in &self.blocks {
            let (called, shared) = (block.clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| called.forward(t, &shared, x);
            h = run.block(t, block, h, forward);
        }
        self.ln_f.call(t, &h)
    }
}

impl Forward for Gpt2 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("transformer", Component::LanguageModel, || {
            self.hidden(t, run, ids, batch.positions.as_ref())
        });
        logits_and_loss(t, &self.lm_head, h, batch)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = t.component("transformer", Component::LanguageModel, || {
            self.hidden(t, run, ids, None)
        });
        Some(last_logits(t, &self.lm_head, &h))
    }
}

impl Block {
    fn new(b: &Builder, c: &Gpt2Config) -> Self {
        let t = b.tape();
        let ln_1 = LayerNorm::new(b, "ln_1", c.hidden);
        let attn = t.scope("attn", || SelfAttention {
            module: b.module(),
            c_attn: Conv1d::new(b, "c_attn", c.hidden, 3 * c.hidden),
            c_proj: Conv1d::new(b, "c_proj", c.hidden, c.hidden),
            heads: c.heads,
            dropout: c.attention_dropout,
            residual_dropout: c.residual_dropout,
        });
        let ln_2 = LayerNorm::new(b, "ln_2", c.hidden);
        let mlp = t.scope("mlp", || Mlp {
            module: b.module(),
            c_fc: Conv1d::new(b, "c_fc", c.hidden, c.intermediate),
            c_proj: Conv1d::new(b, "c_proj", c.intermediate, c.hidden),
            activation: c.activation,
            dropout: c.residual_dropout,
        });
        Self { ln_1, attn, ln_2, mlp }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.ln_1.call(t, &x);
        let (out, _weights) = self.attn.call(t, shared, &h);
        h = t.add(&out, &residual);
        let residual = h.clone();
        h = self.ln_2.call(t, &h);
        let feed_forward = self.mlp.call(t, &h);
        t.add(&residual, &feed_forward)
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let (attn, mask) = (shared.attn, shared.mask.as_ref());
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let qkv = self.c_attn.call(t, x);
            let parts = t.split(&qkv, 2, &[hidden; 3]);
            drop(qkv);
            let head = |x: &Tensor| t.transpose(&t.view(x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let (mut k, mut v) = (head(&parts[1]), head(&parts[2]));
            let q = head(&parts[0]);
            drop(parts);
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let (mut out, weights) = match attn {
                Attention::Sdpa => {
                    let inputs = SdpaInputs {
                        q: &q,
                        k: &k,
                        v: &v,
                        mask,
                        dropout: t.module_dropout(self.dropout),
                        enable_gqa: false,
                    };
                    let out = t.transpose(&t.sdpa(&inputs), 1, 2);
                    (t.contiguous(&out), None)
                }
                Attention::Eager => self.eager(t, &q, &k, &v, mask),
                Attention::FlashAttention2 => {
                    let call = AttentionCall {
                        q: &q,
                        k: &k,
                        v: &v,
                        mask,
                        dropout: t.module_dropout(self.dropout),
                        softmax: None,
                    };
                    nn::attention(t, attn, &call)
                }
            };
            out = t.reshape(&out, [batch, seq, hidden]);
            out = self.c_proj.call(t, &out);
            out = t.watched("resid_dropout", || t.dropout(&out, self.residual_dropout));
            (out, weights)
        })
    }

    /// GPT-2's own `eager_attention_forward`: the softmax is computed in the scores' type.
    fn eager(&self, t: &Tape, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Mask>) -> (Tensor, Option<Tensor>) {
        let mut weights = {
            let scores = t.matmul(q, &t.transpose(k, 2, 3));
            t.scale(&scores)
        };
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            weights = t.add(&weights, bias);
        }
        weights = t.softmax(&weights, None);
        weights = t.to_dtype(&weights, v.dtype());
        weights = t.watched("attn_dropout", || t.dropout(&weights, self.dropout));
        let out = t.matmul(&weights, v);
        (t.transpose(&out, 1, 2), Some(weights))
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.c_fc.call(t, x);
            h = t.watched("act", || nn::activate(t, self.activation, h));
            h = self.c_proj.call(t, &h);
            t.watched("dropout", || t.dropout(&h, self.dropout))
        })
    }
}
