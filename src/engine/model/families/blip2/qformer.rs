//! BLIP-2's querying transformer (`transformers/models/blip_2/modeling_blip_2.py`).

use std::rc::Rc;

use super::config::QFormerConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `Blip2QFormerModel`.
pub struct QFormer {
    module: Module,
    layernorm: LayerNorm,
    blocks: QFormerBlocks,
    dropout: f64,
}

/// `Blip2QFormerEncoder`, which InstructBLIP has too.
pub(crate) struct QFormerBlocks {
    layers: Vec<Numbered<Layer>>,
}

struct Layer {
    attention: QueryAttention,
    /// Attention to the image features, in every `cross_attention_frequency`-th block.
    crossattention: Option<QueryAttention>,
    /// For text positions.
    text_feed_forward: Option<FeedForward>,
    feed_forward: FeedForward,
}

/// `Blip2QFormerAttention`: attention and what follows it.
struct QueryAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Output,
    heads: u64,
    dropout: f64,
}

/// `BertIntermediate` and `BertOutput`.
pub(crate) struct FeedForward {
    intermediate: Module,
    dense: Linear,
    activation: Activation,
    output: Output,
}

/// A linear layer, dropout, and a norm of the sum with the residual (`BertSelfOutput`).
pub(crate) struct Output {
    module: Module,
    dense: Linear,
    layer_norm: LayerNorm,
    dropout: f64,
}

/// State that all blocks of one forward share.
struct BlockContext {
    attn: Attention,
    /// Queries, which come before the text.
    queries: u64,
}

impl QFormer {
    pub fn new(b: &Builder, c: &QFormerConfig) -> Self {
        Self {
            module: b.module(),
            layernorm: LayerNorm::new(b, "layernorm", c.shape.hidden),
            blocks: QFormerBlocks::new(b, c),
            dropout: c.hidden_dropout,
        }
    }

    /// Queries [images, queries, hidden] and image features [images, positions, width] → queries of that shape.
    /// `image_mask` marks the positions that count, all of them, if there is one.
    pub fn call(&self, t: &Tape, run: &Run, queries: &Tensor, image: &Tensor, image_mask: Option<&Tensor>) -> Tensor {
        self.module.call(t, move || {
            let mut embedding = self.layernorm.call(t, queries);
            embedding = t.dropout(&embedding, self.dropout);
            // Each mask is made in the type of the queries, which autocast's norm has left.
            drop(t.to_dtype(&embedding, queries.dtype()));
            let image = t.to_dtype(image, queries.dtype());
            if let Some(mask) = image_mask {
                let _like = t.to_dtype(&embedding, queries.dtype());
                nothing_padded(t, mask);
            }
            self.blocks.forward(t, run, (embedding, queries.size(1)), image)
        })
    }
}

impl QFormerBlocks {
    /// Makes the blocks of a querying transformer.
    pub fn new(b: &Builder, c: &QFormerConfig) -> Self {
        Self {
            layers: (0..c.shape.layers)
                .map(|i| Numbered::new(b, "encoder.layer", i as usize, || Rc::new(Layer::new(b, c, i))))
                .collect(),
        }
    }

    /// Queries and the text after them, [images, positions, hidden], and image features [images, positions, width] →
    /// hidden states of all.
    pub fn forward(&self, t: &Tape, run: &Run, (embedding, queries): (Tensor, u64), image: Tensor) -> Tensor {
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            queries,
        });
        let mut h = embedding.clone();
        for layer in &self.layers {
            let (block, shared) = (layer.clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor, image: &Tensor| block.forward(t, (&shared, image), x);
            h = run.block_with(t, layer, (h, image.clone()), forward);
        }
        drop(embedding);
        h
    }
}

/// `create_bidirectional_mask`: no mask if none of [images, positions] is padding.
pub(crate) fn nothing_padded(t: &Tape, mask: &Tensor) {
    let padding = t.compute(mask, DType::Bool, "padding mask");
    let all = t.empty([], DType::Bool, "all");
    drop((all, padding));
}

impl Layer {
    fn new(b: &Builder, c: &QFormerConfig, index: u64) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let attention = t.scope("attention", || QueryAttention::new(b, c, hidden));
        let crossattention = index
            .is_multiple_of(c.cross_attention_frequency)
            .then(|| t.scope("crossattention", || QueryAttention::new(b, c, c.encoder_hidden)));
        let text_feed_forward = c.text_input.then(|| FeedForward::new(b, c, ["intermediate", "output"]));
        Self {
            attention,
            crossattention,
            text_feed_forward,
            feed_forward: FeedForward::new(b, c, ["intermediate_query", "output_query"]),
        }
    }

    fn forward(&self, t: &Tape, (shared, image): (&BlockContext, &Tensor), x: Tensor) -> Tensor {
        let attended = self.attention.call(t, shared.attn, &x, &x);
        let given = t.slice(&attended, 1, shared.queries);
        let queries = match &self.crossattention {
            Some(cross) => cross.call(t, shared.attn, &given, image),
            None => given.clone(),
        };
        drop(given);
        let mut h = self.feed_forward.forward(t, &queries);
        let text = attended.size(1) - shared.queries;
        if let Some(feed_forward) = self.text_feed_forward.as_ref().filter(|_| text > 0) {
            let of_text = feed_forward.forward(t, &t.slice(&attended, 1, text));
            h = t.cat(&[&h, &of_text], 1);
        }
        h
    }
}

impl QueryAttention {
    /// Makes an attention whose keys and values come from states of width `source`.
    fn new(b: &Builder, c: &QFormerConfig, source: u64) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let [query, key, value] = t.scope("attention", || {
            [("query", hidden), ("key", source), ("value", source)]
                .map(|(name, input)| Linear::new(b, name, input, hidden, true))
        });
        Self {
            module: b.module(),
            query,
            key,
            value,
            output: t.scope("output", || Output::new(b, c, hidden)),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, attn: Attention, x: &Tensor, source: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let (attended, _weights) = t.scope("attention", || self.attend(t, attn, x, source));
            self.output.call(t, &attended, x)
        })
    }

    fn attend(&self, t: &Tape, attn: Attention, x: &Tensor, source: &Tensor) -> (Tensor, Option<Tensor>) {
        let heads = |x: Tensor| {
            let split = [x.size(0), x.size(1), self.heads, x.size(2) / self.heads];
            t.transpose(&t.view(&x, split), 1, 2)
        };
        let q = heads(self.query.call(t, x));
        let k = heads(self.key.call(t, source));
        let v = heads(self.value.call(t, source));
        let call = AttentionCall {
            q: &q,
            k: &k,
            v: &v,
            mask: None,
            dropout: self.dropout,
            softmax: None,
        };
        let (out, weights) = nn::attention(t, attn, &call);
        (t.reshape(&out, *x.shape()), weights)
    }
}

impl FeedForward {
    /// Makes the modules of these names.
    pub fn new(b: &Builder, c: &QFormerConfig, names: [&'static str; 2]) -> Self {
        let t = b.tape();
        let [first, second] = names;
        let (hidden, intermediate) = (c.shape.hidden, c.shape.intermediate);
        let inner = || (b.module(), Linear::new(b, "dense", hidden, intermediate, true));
        let (intermediate_module, dense) = t.scope(first, inner);
        Self {
            intermediate: intermediate_module,
            dense,
            activation: c.activation,
            output: t.scope(second, || Output::new(b, c, intermediate)),
        }
    }

    /// [.., hidden] → [.., hidden].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let h = self.intermediate.call(t, || {
            let h = self.dense.call(t, x);
            nn::activate(t, self.activation, h)
        });
        self.output.call(t, &h, x)
    }
}

impl Output {
    /// Makes a linear layer of `input` elements.
    pub fn new(b: &Builder, c: &QFormerConfig, input: u64) -> Self {
        Self {
            module: b.module(),
            dense: Linear::new(b, "dense", input, c.shape.hidden, true),
            layer_norm: LayerNorm::new(b, "LayerNorm", c.shape.hidden),
            dropout: c.hidden_dropout,
        }
    }

    /// [.., input] and the residual [.., hidden] → [.., hidden].
    pub fn call(&self, t: &Tape, x: &Tensor, residual: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.dense.call(t, x);
            h = t.dropout(&h, self.dropout);
            let normed = {
                let sum = t.add(&h, residual);
                self.layer_norm.call(t, &sum)
            };
            h = normed;
            h
        })
    }
}
