//! Embeddings of all streams, and the blocks.

use std::rc::Rc;

use super::ProphetNetConfig;
use super::attention::Shared;
use super::block::Block;
use super::inputs::{masks, relative_buckets};
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// `ProphetNetDecoder`.
pub(super) struct Decoder {
    words: Embedding,
    positions: Embedding,
    streams: Embedding,
    layers: Vec<Numbered<Block>>,
    norm: LayerNorm,
    /// The table of the module around it, where a class ties no weights: nothing reads it.
    _spare: Option<Embedding>,
    config: ProphetNetConfig,
}

impl Decoder {
    /// Makes it.
    pub fn new(b: &Builder, c: &ProphetNetConfig) -> Self {
        let spare = || Embedding::new(b, "spare_word_embeddings", c.vocab, c.hidden);
        let spare = (!c.tie_word_embeddings).then(spare);
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c)));
        Self {
            words: Embedding::new(b, "word_embeddings", c.vocab, c.hidden),
            positions: Embedding::new(b, "position_embeddings", c.positions, c.hidden),
            streams: Embedding::new(b, "ngram_embeddings", c.streams, c.hidden),
            layers: (0..c.layers as usize).map(block).collect(),
            norm: LayerNorm::new(b, "embeddings_layer_norm", c.hidden),
            _spare: spare,
            config: c.clone(),
        }
    }

    /// Positions that count from the token that pads, [batch, seq], in the scope of their embedding.
    fn position_ids(&self, t: &Tape, shape: [u64; 2]) -> (Tensor, Tensor) {
        let made = |name| t.empty(shape, DType::I64, name);
        t.scope("position_embeddings", || {
            let ones = made("ones");
            let mut ids = t.running_sum(&ones);
            for name in ["times the mask", "plus the padding", "clamp"] {
                ids = t.compute(&ids, DType::I64, name);
            }
            (self.positions.forward(t, &ids), ids)
        })
    }
}

impl Stack for Decoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let c = &self.config;
        let [batch, seq] = [ids.size(0), ids.size(1)];
        let words = self.words.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let (of_positions, position_ids) = self.position_ids(t, [batch, seq]);
        let buckets = relative_buckets(t, c, [batch, seq]);
        let of_next = {
            let next = t.compute(&position_ids, DType::I64, "next position");
            self.positions.forward(t, &next)
        };
        let own = t.add(&words, &of_positions);
        let others: Vec<Tensor> = (0..c.streams)
            .map(|_| t.add(&t.select(self.streams.weight(), 0), &of_next))
            .collect();
        let masks = masks(t, c, &own);
        let mut h = {
            let all: Vec<&Tensor> = std::iter::once(&own).chain(&others).collect();
            t.cat(&all, 1)
        };
        drop(own);
        h = self.norm.call(t, &h);
        h = t.functional_dropout(&h, c.dropout);
        let shared = Rc::new(Shared { masks, buckets, cache });
        let last = run_blocks(t, run, (&self.layers, &shared), h, Block::forward);
        let predicted = t.narrow(&last, 1, c.streams * seq);
        drop((last, shared, others, of_next, position_ids, of_positions, words));
        t.view(&predicted, [batch, c.streams, seq, c.hidden])
    }

    fn table(&self) -> &Tensor {
        self.words.weight()
    }
}
