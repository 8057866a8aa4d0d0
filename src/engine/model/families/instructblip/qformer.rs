//! InstructBLIP's querying transformer (`transformers/models/instructblip/modeling_instructblip.py`).

use super::config::InstructBlipConfig;
use crate::dtype::DType;
use crate::model::families::blip2::{QFormerBlocks, nothing_padded};
use crate::model::forward::Run;
use crate::nn::{self, Builder, Embedding, LayerNorm};
use crate::tape::{Module, Tape, Tensor};

/// `InstructBlipQFormerModel`.
pub struct QFormer {
    module: Module,
    word_embeddings: Embedding,
    position_embeddings: Embedding,
    layernorm: LayerNorm,
    dropout: f64,
    _position_ids: Tensor,
    blocks: QFormerBlocks,
}

/// Inputs of the querying transformer beside its queries.
pub struct Given<'a> {
    /// Token ids, [images, length].
    pub ids: &'a Tensor,
    /// Marks the queries and tokens that count: all of them.
    pub mask: &'a Tensor,
    /// Image features [images, positions, width].
    pub image: &'a Tensor,
    /// Marks the positions of an image that count: all of them.
    pub image_mask: &'a Tensor,
}

impl QFormer {
    pub fn new(b: &Builder, c: &InstructBlipConfig) -> Self {
        let hidden = c.qformer.shape.hidden;
        let (word_embeddings, position_embeddings, layernorm, position_ids) = b.tape().scope("embeddings", || {
            (
                Embedding::new(b, "word_embeddings", c.qformer_vocab, hidden),
                Embedding::new(b, "position_embeddings", c.qformer_positions, hidden),
                LayerNorm::new(b, "layernorm", hidden),
                b.buffer("position_ids", [1, c.qformer_positions], DType::I64),
            )
        });
        Self {
            module: b.module(),
            word_embeddings,
            position_embeddings,
            layernorm,
            dropout: c.qformer.hidden_dropout,
            _position_ids: position_ids,
            blocks: QFormerBlocks::new(b, &c.qformer),
        }
    }

    /// Queries [images, queries, hidden] → hidden states of queries and text.
    pub fn call(&self, t: &Tape, run: &Run, queries: &Tensor, given: &Given<'_>) -> Tensor {
        self.module.call(t, move || {
            let embedding = t.scope("embeddings", || self.embed(t, run, queries, given.ids));
            nothing_padded(t, given.mask);
            nothing_padded(t, given.image_mask);
            self.blocks
                .forward(t, run, (embedding, queries.size(1)), given.image.clone())
        })
    }

    fn embed(&self, t: &Tape, run: &Run, queries: &Tensor, ids: &Tensor) -> Tensor {
        let position_ids = nn::ids(t, &[1, ids.size(1)], "position_ids");
        let words = self
            .word_embeddings
            .call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let positions = self.position_embeddings.call(t, &position_ids);
        let mut embeddings = t.add(&words, &positions);
        drop(words);
        embeddings = t.cat(&[queries, &embeddings], 1);
        embeddings = self.layernorm.call(t, &embeddings);
        embeddings = t.dropout(&embeddings, self.dropout);
        drop((position_ids, positions));
        embeddings
    }
}
