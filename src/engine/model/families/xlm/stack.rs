//! Embeddings, blocks and head of XLM (`transformers/models/xlm/modeling_xlm.py`).

use super::XlmConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::{Head, Stack};
use crate::nn::{self, Builder, Embedding, KvCache, LayerNorm, Linear};
use crate::tape::{Component, Module, Tape, Tensor};

/// `XLMModel`.
pub(super) struct XlmStack {
    position_embeddings: Embedding,
    /// Embeddings of languages, which no input names.
    _languages: Option<Embedding>,
    embeddings: Embedding,
    layer_norm_emb: LayerNorm,
    blocks: Vec<Block>,
    position_ids: Tensor,
    dropout: f64,
    causal: bool,
}

/// The modules of a block, which are elements of four lists.
struct Block {
    attention: SelfAttention,
    layer_norm1: LayerNorm,
    ffn: FeedForward,
    layer_norm2: LayerNorm,
}

/// `MultiHeadAttention`.
struct SelfAttention {
    module: Module,
    /// Queries, keys and values.
    maps: [Linear; 3],
    out_lin: Linear,
    heads: u64,
    dropout: f64,
}

/// `TransformerFFN`.
struct FeedForward {
    module: Module,
    lin1: Linear,
    lin2: Linear,
    activation: Activation,
    dropout: f64,
}

/// `XLMPredLayer`.
pub(super) struct PredictionHead {
    module: Module,
    proj: Linear,
}

/// Keys that tokens see: the mask of padding, or pairs of tokens.
struct Seen {
    /// Shape in which attention compares them, before it is broadcast to all heads.
    shape: Vec<u64>,
    /// Pairs of tokens as booleans, [batch, seq, seq], for causal attention.
    _pairs: Option<Tensor>,
}

impl XlmStack {
    pub fn new(b: &Builder, c: &XlmConfig) -> Self {
        let t = b.tape();
        let position_embeddings = Embedding::new(b, "position_embeddings", c.positions, c.hidden);
        let languages = || Embedding::new(b, "lang_embeddings", c.languages, c.hidden);
        let languages = (c.languages > 0).then(languages);
        let embeddings = Embedding::new(b, "embeddings", c.vocab, c.hidden);
        let layer_norm_emb = LayerNorm::new(b, "layer_norm_emb", c.hidden);
        let blocks = (0..c.layers as usize).map(|i| Block::new(b, c, i)).collect();
        let position_ids = b.buffer("position_ids", [c.positions], DType::I64);
        // `_init_weights` makes it once more.
        drop(t.empty([c.positions], DType::I64, "position ids again"));
        Self {
            position_embeddings,
            _languages: languages,
            embeddings,
            layer_norm_emb,
            blocks,
            position_ids,
            dropout: c.dropout,
            causal: c.causal,
        }
    }

    /// The lengths of samples, [batch], whose greatest is checked.
    fn lengths(&self, t: &Tape, ids: &Tensor) -> Tensor {
        let tokens = t.compute(ids, DType::Bool, "tokens that are no padding");
        let lengths = t.count(&tokens, &[1]);
        drop(tokens);
        drop(t.empty([], DType::I64, "greatest length"));
        lengths
    }

    /// `get_masks`, beside a mask of padding.
    fn seen(&self, t: &Tape, [batch, seq]: [u64; 2]) -> Seen {
        let _places = t.empty([seq], DType::I64, "arange");
        let pairs = self.causal.then(|| {
            let _repeated = t.empty([batch, seq, seq], DType::I64, "repeat");
            t.empty([batch, seq, seq], DType::Bool, "comparison")
        });
        Seen {
            shape: if self.causal {
                vec![batch, 1, seq, seq]
            } else {
                vec![batch, 1, 1, seq]
            },
            _pairs: pairs,
        }
    }
}

/// `tensor *= mask.unsqueeze(-1).to(tensor.dtype)`.
fn masked(t: &Tape, x: Tensor) -> Tensor {
    let mask = t.empty([x.size(0), x.size(1), 1], x.dtype(), "mask");
    t.mul_(x, &mask)
}

impl Stack for XlmStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let [batch, seq] = [ids.size(0), ids.size(1)];
        // The model makes a cache whether it is asked for one or not.
        let cache = KvCache::default();
        let lengths = self.lengths(t, ids);
        let seen = self.seen(t, [batch, seq]);
        let embeds = self.embeddings.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let mut h = {
            let places = t.unsqueeze(&t.slice(&self.position_ids, 0, seq), 0);
            let positions = self.position_embeddings.call(t, &places);
            t.add(&embeds, &t.expand(&positions, *embeds.shape()))
        };
        h = self.layer_norm_emb.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        h = masked(t, h);
        // What attention made, before and after dropout, has variables that live until the next block's attention returns.
        let mut held = None;
        for block in &self.blocks {
            let attended = block.attention.call(t, &h, &seen, &cache);
            drop(held.take());
            let dropped = t.functional_dropout(&attended, self.dropout);
            h = t.add(&h, &dropped);
            held = Some((attended, dropped));
            h = block.layer_norm1.call(t, &h);
            h = {
                let fed = block.ffn.call(t, &h);
                t.add(&h, &fed)
            };
            h = block.layer_norm2.call(t, &h);
            h = masked(t, h);
        }
        drop((held, embeds, seen, lengths, cache));
        h
    }

    fn table(&self) -> &Tensor {
        self.embeddings.weight()
    }
}

impl Block {
    fn new(b: &Builder, c: &XlmConfig, index: usize) -> Self {
        let t = b.tape();
        let norm = |list| t.layer(list, index, || LayerNorm::of_list(b, c.hidden));
        Self {
            attention: t.layer("attentions", index, || {
                let map = |name| Linear::new(b, name, c.hidden, c.hidden, true);
                SelfAttention {
                    module: b.module(),
                    maps: ["q_lin", "k_lin", "v_lin"].map(map),
                    out_lin: map("out_lin"),
                    heads: c.heads,
                    dropout: c.attention_dropout,
                }
            }),
            layer_norm1: norm("layer_norm1"),
            ffn: t.layer("ffns", index, || FeedForward {
                module: b.module(),
                lin1: Linear::new(b, "lin1", c.hidden, 4 * c.hidden, true),
                lin2: Linear::new(b, "lin2", 4 * c.hidden, c.hidden, true),
                activation: if c.gelu { Activation::Gelu } else { Activation::Relu },
                dropout: c.dropout,
            }),
            layer_norm2: norm("layer_norm2"),
        }
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, x: &Tensor, seen: &Seen, cache: &KvCache) -> Tensor {
        self.module.call(t, || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let shape = [batch, seq, self.heads, hidden / self.heads];
            let [mut q, mut k, mut v] = [0, 1, 2].map(|i| t.transpose(&t.view(&self.maps[i].call(t, x), shape), 1, 2));
            (k, v) = cache.update(t, &k, &v);
            q = t.scale(&q);
            let mut scores = t.matmul(&q, &t.transpose(&k, 2, 3));
            let hidden_keys = t.expand(&t.empty(&seen.shape[..], DType::Bool, "comparison"), *scores.shape());
            scores = t.masked_fill_(scores, &hidden_keys);
            let mut weights = {
                let probabilities = {
                    let wide = t.to_dtype(&scores, DType::F32);
                    t.softmax(&wide, None)
                };
                t.to_dtype(&probabilities, scores.dtype())
            };
            weights = t.functional_dropout(&weights, self.dropout);
            let mut context = t.matmul(&weights, &v);
            context = t.contiguous(&t.transpose(&context, 1, 2));
            let out = self.out_lin.call(t, &t.view(&context, [batch, seq, hidden]));
            drop((context, weights, scores));
            out
        })
    }
}

impl FeedForward {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut h = self.lin1.call(t, x);
            h = nn::activate(t, self.activation, h);
            h = self.lin2.call(t, &h);
            t.functional_dropout(&h, self.dropout)
        })
    }
}

impl PredictionHead {
    pub fn new(b: &Builder, stack: &XlmStack, c: &XlmConfig) -> Self {
        let t = b.tape();
        t.component("pred_layer", Component::Head, || Self {
            module: b.module(),
            proj: match c.tie_word_embeddings {
                true => Linear::tied(b, "proj", stack.table()).with_bias(b, "proj", c.vocab),
                false => Linear::head(b, "proj", c.hidden, c.vocab, true),
            },
        })
    }
}

impl Head for PredictionHead {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        self.module.call(t, || self.proj.call(t, h))
    }
}
