//! KOSMOS's decoder (`transformers/models/{kosmos2,kosmos2_5}/modeling_*.py`).

use std::rc::Rc;

use super::config::KosmosTextConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::sinusoids::sinusoids;
use crate::model::parts::text::run_blocks;
use crate::nn::{self, AttentionCall, Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Failure, Mask, Module, Tape, Tensor};

/// Entries of the table of positions before the first position.
const OFFSET: u64 = 2;

/// `Kosmos2TextTransformer` and `Kosmos2_5TextTransformer`.
pub struct Decoder {
    embed_tokens: Embedding,
    /// Sines and cosines, [entries, hidden].
    embed_positions: Tensor,
    /// Embedding of text and image positions (KOSMOS-2.5).
    segment_emb: Option<Embedding>,
    layers: Vec<Numbered<Block>>,
    layer_norm: LayerNorm,
    dropout: f64,
}

/// State that all blocks of one forward share.
struct Shared {
    attn: Attention,
    mask: Option<Mask>,
}

struct Block {
    self_attn: KosmosAttention,
    self_attn_layer_norm: LayerNorm,
    ffn: FeedForward,
    final_layer_norm: LayerNorm,
    dropout: f64,
}

/// `KosmosTextAttention` and `Kosmos2_5TextAttention`.
pub struct KosmosAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    inner_attn_ln: Option<LayerNorm>,
    is_kosmos2_5: bool,
    heads: u64,
    dropout: f64,
}

/// `Kosmos2TextFFN`.
struct FeedForward {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    ffn_layernorm: LayerNorm,
    activation: Activation,
    dropout: f64,
    activation_dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &KosmosTextConfig) -> Self {
        let t = b.tape();
        let shape = [c.positions + OFFSET, c.hidden];
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let embed_positions = t.scope("embed_positions", || {
            sinusoids(t, b.dtype(), shape, || b.buffer("weights", shape, b.dtype()))
        });
        let segment_emb = c.is_kosmos2_5.then(|| Embedding::new(b, "segment_emb", 2, c.hidden));
        let layers = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c))))
            .collect();
        let layer_norm = LayerNorm::new(b, "layer_norm", c.hidden);
        // `_init_weights` makes the table once more and copies it.
        drop(sinusoids(t, b.dtype(), shape, || {
            t.empty(shape, b.dtype(), "weights again")
        }));
        Self {
            embed_tokens,
            embed_positions,
            segment_emb,
            layers,
            layer_norm,
            dropout: c.dropout,
        }
    }

    /// Weight of the token embedding, [vocab, hidden].
    pub fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }

    /// Token ids [batch, seq] and image features [batch, latents, hidden] → last hidden states [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, ids: &Tensor, features: &Tensor) -> Tensor {
        if let Some(segment_emb) = &self.segment_emb {
            return self.forward_newer(t, run, ids, features, segment_emb);
        }
        let h = self.embed(t, run, ids, features);
        let mask = Mask::Bias(causal_bias(t, &h));
        self.blocks(t, run, Some(mask), h)
    }

    /// `Kosmos2_5TextTransformer.forward`.
    fn forward_newer(&self, t: &Tape, run: &Run, ids: &Tensor, features: &Tensor, segment_emb: &Embedding) -> Tensor {
        let mut embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        embeds = t.clone_of(&embeds);
        embeds = placed(t, embeds, ids, features);
        embeds = t.scale(&embeds);
        let mut positions = t.scope("embed_positions", || self.positions(t, ids, &embeds));
        let segments = {
            let _marked = t.compute(ids, DType::Bool, "image positions");
            t.compute(ids, DType::I64, "segments")
        };
        let of_segments = segment_emb.call(t, &segments);
        positions = t.add_(positions, &of_segments);
        let mut h = t.add(&embeds, &positions);
        h = t.functional_dropout(&h, self.dropout);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let out = self.blocks(t, run, mask, h);
        drop((of_segments, segments, positions, embeds));
        out
    }

    /// Dropout, all blocks, and the last norm.
    fn blocks(&self, t: &Tape, run: &Run, mask: Option<Mask>, mut h: Tensor) -> Tensor {
        h = t.functional_dropout(&h, self.dropout);
        let shared = Rc::new(Shared { attn: run.attn, mask });
        h = run_blocks(t, run, (&self.layers, &shared), h, Block::forward);
        let out = self.layer_norm.call(t, &h);
        drop((h, shared));
        out
    }

    /// `forward_embedding`.
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor, features: &Tensor) -> Tensor {
        let mut embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        if embeds.is_leaf_with_gradient() {
            t.fail(|| Failure::LeafChangedInPlace {
                model: "KOSMOS-2".to_owned(),
            });
        }
        embeds = placed(t, embeds, ids, features);
        embeds = t.scale(&embeds);
        let positions = t.scope("embed_positions", || self.positions(t, ids, &embeds));
        let h = t.add(&embeds, &positions);
        t.functional_dropout(&h, self.dropout)
    }

    /// Rows of the table of positions, in the shape of the embeddings.
    fn positions(&self, t: &Tape, ids: &Tensor, embeds: &Tensor) -> Tensor {
        let position_ids = nn::counted_positions(t, ids);
        let table = &self.embed_positions;
        let rows = t.empty([position_ids.numel(), table.size(1)], table.dtype(), "index_select");
        t.view(&rows, *embeds.shape())
    }
}

/// Writes image features over the image tokens' embeddings, in place.
fn placed(t: &Tape, embeds: Tensor, ids: &Tensor, features: &Tensor) -> Tensor {
    let features = t.to_dtype(features, embeds.dtype());
    let rows = t.view(&features, [features.size(0) * features.size(1), features.last()]);
    let mask = t.compute(ids, DType::Bool, "image token mask");
    t.index_put_rows(embeds, &mask, &rows)
}

/// `_prepare_decoder_attention_mask`: a bias of [batch, 1, seq, seq] in the type of the embeddings.
fn causal_bias(t: &Tape, embeds: &Tensor) -> Tensor {
    let ([batch, seq], dtype) = ([embeds.size(0), embeds.size(1)], embeds.dtype());
    let causal = (seq > 1).then(|| {
        let mut mask = t.empty([seq, seq], DType::F32, "mask");
        let positions = nn::ids(t, &[seq], "arange");
        let earlier = {
            let _next = nn::ids(t, &[seq], "position + 1");
            t.empty([seq, seq], DType::Bool, "key ≤ query")
        };
        drop(earlier);
        mask = t.to_dtype(&mask, dtype);
        drop(positions);
        mask
    });
    let shape = [batch, 1, seq, seq];
    let of_padding = {
        let expanded = t.empty(shape, dtype, "expanded mask");
        let inverted = t.empty(shape, dtype, "inverted mask");
        let _marked = t.empty(shape, DType::Bool, "padding of keys");
        let out = t.empty(shape, dtype, "masked_fill");
        drop((inverted, expanded));
        out
    };
    match causal {
        Some(_causal) => t.empty(shape, dtype, "mask"),
        None => of_padding,
    }
}

impl Block {
    fn new(b: &Builder, c: &KosmosTextConfig) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || match c.is_kosmos2_5 {
            true => KosmosAttention::new(b, c),
            false => KosmosAttention::new(b, c).with_norm(b, c.hidden),
        });
        let self_attn_layer_norm = LayerNorm::new(b, "self_attn_layer_norm", c.hidden);
        let ffn = t.scope("ffn", || FeedForward::new(b, c));
        Self {
            self_attn,
            self_attn_layer_norm,
            ffn,
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", c.hidden),
            dropout: c.dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.self_attn_layer_norm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared.attn, [&h, &h], shared.mask.as_ref());
        h = out;
        h = t.functional_dropout(&h, self.dropout);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.final_layer_norm.call(t, &h);
        h = self.ffn.call(t, &h);
        t.add(&residual, &h)
    }
}

impl KosmosAttention {
    /// Makes attention without a norm inside.
    pub fn new(b: &Builder, c: &KosmosTextConfig) -> Self {
        let linear = |name| Linear::new(b, name, c.hidden, c.hidden, true);
        Self {
            module: b.module(),
            k_proj: linear("k_proj"),
            v_proj: linear("v_proj"),
            q_proj: linear("q_proj"),
            out_proj: linear("out_proj"),
            inner_attn_ln: None,
            is_kosmos2_5: c.is_kosmos2_5,
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    fn with_norm(self, b: &Builder, hidden: u64) -> Self {
        Self {
            inner_attn_ln: Some(LayerNorm::new(b, "inner_attn_ln", hidden)),
            ..self
        }
    }

    /// Queries from `x`, [batch, queries, hidden], and keys and values from `source`, [batch, keys, hidden] → [batch,
    /// queries, hidden], and the weights.
    pub fn call(
        &self,
        t: &Tape,
        attn: Attention,
        [x, source]: [&Tensor; 2],
        mask: Option<&Mask>,
    ) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let heads = |x: Tensor| {
                let split = t.view(&x, [x.size(0), x.size(1), self.heads, x.last() / self.heads]);
                t.transpose(&split, 1, 2)
            };
            let of_queries = || heads(self.q_proj.call(t, x));
            let first = (!self.is_kosmos2_5).then(of_queries);
            let k = heads(self.k_proj.call(t, source));
            let v = heads(self.v_proj.call(t, source));
            let q = first.unwrap_or_else(|| t.scale(&of_queries()));
            // SDPA drops keys after the last query, since attention without a mask is causal here (`is_causal`).
            let drops = !self.is_kosmos2_5 && attn == Attention::Sdpa && mask.is_none() && q.size(2) > 1;
            let [seen, values] = [&k, &v].map(|x| if drops { t.slice(x, 2, q.size(2)) } else { x.clone() });
            let call = AttentionCall {
                q: &q,
                k: &seen,
                v: &values,
                mask,
                dropout: self.dropout,
                softmax: self.is_kosmos2_5.then_some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, *x.shape());
            if let Some(norm) = &self.inner_attn_ln {
                out = norm.call(t, &out);
            }
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }
}

impl FeedForward {
    fn new(b: &Builder, c: &KosmosTextConfig) -> Self {
        Self {
            module: b.module(),
            fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, true),
            fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, true),
            ffn_layernorm: LayerNorm::new(b, "ffn_layernorm", c.intermediate),
            activation: c.activation,
            dropout: c.dropout,
            activation_dropout: c.activation_dropout,
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            h = t.functional_dropout(&h, self.activation_dropout);
            h = self.ffn_layernorm.call(t, &h);
            h = self.fc2.call(t, &h);
            t.functional_dropout(&h, self.dropout)
        })
    }
}
