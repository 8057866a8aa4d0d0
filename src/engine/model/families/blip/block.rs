//! BERT's blocks as BLIP (`transformers/models/blip/modeling_blip_text.py`) and GIT
//! (`transformers/models/git/modeling_git.py`) have them: with eager attention, whatever implementation is asked for.

use std::rc::Rc;

use super::config::BlipTextConfig;
use crate::dtype::DType;
use crate::model::families::blip2::{FeedForward, Output, QFormerConfig};
use crate::model::forward::Run;
use crate::model::parts::text::run_blocks;
use crate::nn::{Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::tape::{Failure, Mask, Module, Tape, Tensor};

/// Differences between the blocks of BLIP and GIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlipTextForm {
    /// True if each block attends to an image too.
    pub crosses: bool,
    /// True if attention returns its weights before dropout.
    pub returns_undropped: bool,
}

/// `BlipTextEmbeddings`, `GitEmbeddings`.
pub(crate) struct BlipTextEmbeddings {
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    layer_norm: LayerNorm,
    dropout: f64,
    position_ids: Tensor,
    /// The model's name, for messages.
    model: &'static str,
}

/// `BlipTextEncoder`, `GitEncoder`.
pub(crate) struct BlipTextEncoder {
    layers: Vec<Numbered<Layer>>,
}

struct Layer {
    attention: BlipTextAttention,
    crossattention: Option<BlipTextAttention>,
    feed_forward: FeedForward,
}

/// `BlipTextAttention`, `GitAttention`: attention and what follows it.
struct BlipTextAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Output,
    heads: u64,
    dropout: f64,
    form: BlipTextForm,
}

/// State that all blocks of one forward share.
struct BlockContext {
    mask: Option<Mask>,
    image: Option<Tensor>,
}

impl BlipTextEmbeddings {
    /// Makes the tables and the norm of the model of this name.
    pub fn new(b: &Builder, c: &BlipTextConfig, model: &'static str) -> Self {
        let hidden = c.blocks.shape.hidden;
        b.tape().scope("embeddings", || Self {
            word_embeddings: Embedding::new(b, "word_embeddings", c.vocab, hidden),
            position_embeddings: Embedding::new(b, "position_embeddings", c.positions, hidden),
            layer_norm: LayerNorm::new(b, "LayerNorm", hidden),
            dropout: c.blocks.hidden_dropout,
            position_ids: b.buffer("position_ids", [1, c.positions], DType::I64),
            model,
        })
    }

    /// Weight of the token embedding, [vocab, hidden].
    pub fn table(&self) -> &Tensor {
        self.word_embeddings.weight()
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        t.scope("embeddings", || {
            let words = self.word_embeddings.forward(t, ids);
            let leaf = run.embedded(t, words.clone());
            if leaf.requires_grad() && !words.requires_grad() {
                t.fail(|| Failure::LeafChangedInPlace {
                    model: self.model.to_owned(),
                });
            }
            drop(words);
            let position_ids = t.slice(&self.position_ids, 1, ids.size(1));
            let positions = self.position_embeddings.call(t, &position_ids);
            let summed = t.add_(leaf, &positions);
            let mut embeddings = self.layer_norm.call(t, &summed);
            embeddings = t.dropout(&embeddings, self.dropout);
            drop((summed, positions));
            embeddings
        })
    }
}

impl BlipTextEncoder {
    /// Makes the blocks.
    pub fn new(b: &Builder, c: &QFormerConfig, form: BlipTextForm) -> Self {
        Self {
            layers: (0..c.shape.layers as usize)
                .map(|i| Numbered::new(b, "encoder.layer", i, || Rc::new(Layer::new(b, c, form))))
                .collect(),
        }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden], with image features [batch, positions, width] to attend to.
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        (mask, image): (Option<Mask>, Option<Tensor>),
    ) -> Tensor {
        let shared = Rc::new(BlockContext { mask, image });
        let h = run_blocks(t, run, (&self.layers, &shared), embeds.clone(), Layer::forward);
        drop(embeds);
        h
    }
}

impl Layer {
    fn new(b: &Builder, c: &QFormerConfig, form: BlipTextForm) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        Self {
            attention: t.scope("attention", || BlipTextAttention::new(b, c, form, hidden)),
            crossattention: form.crosses.then(|| {
                t.scope("crossattention", || {
                    BlipTextAttention::new(b, c, form, c.encoder_hidden)
                })
            }),
            feed_forward: FeedForward::new(b, c, ["intermediate", "output"]),
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let mask = shared.mask.as_ref();
        let (mut attended, mut weights) = self.attention.call(t, &x, &x, mask);
        if let (Some(cross), Some(image)) = (&self.crossattention, &shared.image) {
            (attended, weights) = cross.call(t, &attended, image, None);
        }
        let out = self.feed_forward.forward(t, &attended);
        drop((attended, weights));
        out
    }
}

impl BlipTextAttention {
    /// Makes an attention whose keys and values come from states of width `source`.
    fn new(b: &Builder, c: &QFormerConfig, form: BlipTextForm, source: u64) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let [query, key, value] = t.scope("self", || {
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
            form,
        }
    }

    /// States [batch, seq, hidden] after attention and its output projection, and the weights that the block holds until it
    /// returns; GIT's are gone by then.
    fn call(&self, t: &Tape, x: &Tensor, source: &Tensor, mask: Option<&Mask>) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let (attended, weights) = t.scope("self", || self.attend(t, x, source, mask));
            let out = self.output.call(t, &attended, x);
            (out, self.form.returns_undropped.then_some(weights))
        })
    }

    fn attend(&self, t: &Tape, x: &Tensor, source: &Tensor, mask: Option<&Mask>) -> (Tensor, Tensor) {
        let heads = |x: Tensor| {
            let split = [x.size(0), x.size(1), self.heads, x.size(2) / self.heads];
            t.transpose(&t.view(&x, split), 1, 2)
        };
        let q = heads(self.query.call(t, x));
        let k = heads(self.key.call(t, source));
        let v = heads(self.value.call(t, source));
        let mut scores = t.matmul(&q, &t.transpose(&k, 2, 3));
        scores = t.scale(&scores);
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            scores = t.add(&scores, bias);
        }
        let mut weights = t.softmax(&scores, None);
        let dropped = t.dropout(&weights, self.dropout);
        if !self.form.returns_undropped {
            weights = dropped.clone();
        }
        let mut out = t.permute(&t.matmul(&dropped, &v), &[0, 2, 1, 3]);
        out = t.contiguous(&out);
        out = t.view(&out, *x.shape());
        drop((scores, dropped));
        (out, weights)
    }
}
