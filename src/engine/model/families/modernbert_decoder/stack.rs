//! Embeddings, blocks and last norm.

use std::rc::Rc;

use super::block::{Block, norm};
use super::config::ModernBertDecoderConfig;
use crate::model::decoder::block::BlockContext;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_each_block};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered, Pattern, Rotary};
use crate::tape::{Module, Tape, Tensor};

/// `ModernBertDecoderModel`.
pub(super) struct Decoder {
    embeddings: Embeddings,
    layers: Vec<Numbered<Block>>,
    final_norm: LayerNorm,
    /// Of full, then of sliding blocks.
    rotary: [Option<Rotary>; 2],
    slides: Vec<bool>,
    window: u64,
}

/// `ModernBertDecoderEmbeddings`.
struct Embeddings {
    module: Module,
    tokens: Embedding,
    norm: LayerNorm,
    dropout: f64,
}

impl Embeddings {
    fn new(b: &Builder, c: &ModernBertDecoderConfig) -> Self {
        Self {
            module: b.module(),
            tokens: Embedding::new(b, "tok_embeddings", c.vocab, c.hidden),
            norm: norm(b, c, "norm"),
            dropout: c.embedding_dropout,
        }
    }

    fn call(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.module.call(t, || {
            let tokens = self.tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
            let normed = self.norm.call(t, &tokens);
            drop(tokens);
            t.dropout(&normed, self.dropout)
        })
    }
}

impl Decoder {
    /// Makes it.
    pub fn new(b: &Builder, c: &ModernBertDecoderConfig) -> Self {
        let t = b.tape();
        let embeddings = t.scope("embeddings", || Embeddings::new(b, c));
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c, i == 0)));
        let layers = (0..c.slides.len()).map(block).collect();
        let final_norm = norm(b, c, "final_norm");
        let rotary = [false, true].map(|slides| {
            let used = c.slides.contains(&slides);
            used.then(|| Rotary::new(b, c.hidden / c.heads))
        });
        Self {
            embeddings,
            layers,
            final_norm,
            rotary: rotary.map(|rotary| rotary.map(|rotary| rotary.initialised(t))),
            slides: c.slides.clone(),
            window: c.window,
        }
    }
}

impl Stack for Decoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embeddings.call(t, run, ids);
        let windows: Vec<Option<u64>> = self
            .slides
            .iter()
            .map(|&slides| slides.then_some(self.window))
            .collect();
        let cache = run.cache(&windows);
        let position_ids = {
            let one = run.position_ids(t, &embeds);
            t.expand(&one, [embeds.size(0), one.size(1)])
        };
        // Masks of both kinds are made, whatever the blocks are.
        let masks = [Pattern::Causal, Pattern::Sliding(self.window)]
            .map(|pattern| nn::pattern_mask(t, run.attn, &embeds, pattern));
        let waves = self.rotary.each_ref().map(|rotary| {
            let rotary = rotary.as_ref()?;
            Some(rotary.call(t, &embeds, &position_ids))
        });
        let [full, sliding] = [0, 1].map(|kind| {
            let (cos, sin) = waves[kind].clone()?;
            Some(Rc::new(BlockContext {
                attn: run.attn,
                mask: masks[kind].clone(),
                cos,
                sin,
                splits_last: false,
                position_ids: Some(position_ids.clone()),
                cache: cache.clone(),
            }))
        });
        let kinds = self.slides.iter().map(|&slides| if slides { &sliding } else { &full });
        let blocks = self.layers.iter().zip(kinds);
        let blocks = blocks.filter_map(|(block, shared)| Some((block.clone(), shared.clone()?)));
        let h = run_each_block(t, run, blocks, embeds.clone(), (Block::forward, |_: &Tensor| {}));
        let out = self.final_norm.call(t, &h);
        drop((h, full, sliding, waves, masks, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embeddings.tokens.weight()
    }
}
