//! `BartForCausalLM` and its kin (`transformers/models/{bart,mbart,pegasus,…}/modeling_*.py`).

use std::rc::Rc;

use super::config::BartConfig;
use super::forms::{EmbeddingNorm, Form, PositionTable, Scale};
use crate::model::forward::Run;
use crate::model::parts::bart::{BlockContext, Layer};
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// `BartDecoder`: embeddings, blocks, norms.
pub(super) struct Decoder {
    form: &'static Form,
    embed_tokens: Embedding,
    embed_positions: Embedding,
    layers: Vec<Numbered<Layer>>,
    embedding_norm: Option<LayerNorm>,
    final_norm: Option<LayerNorm>,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &BartConfig) -> Self {
        let form = c.form;
        let table = match form.positions {
            PositionTable::Frozen => Embedding::frozen,
            _ => Embedding::new,
        };
        let norm = |name| LayerNorm::new(b, name, c.block.hidden);
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.block.hidden);
        let embed_positions = table(b, "embed_positions", c.position_entries(), c.block.hidden);
        let embedding_norm = || c.norms_embeddings.then(|| norm("layernorm_embedding"));
        let first = form.norm_made_first.then(embedding_norm);
        let layers = (0..c.layers as usize).map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, &c.block))));
        Self {
            form,
            embed_tokens,
            embed_positions,
            layers: layers.collect(),
            embedding_norm: first.unwrap_or_else(embedding_norm),
            final_norm: form.final_norm.map(norm),
            dropout: c.block.dropout,
        }
    }

    /// Token ids [batch, seq] → embeddings times their factor, [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let looked_up = |scales: bool| {
            t.scope("embed_tokens", || {
                let embeds = self.embed_tokens.forward(t, ids);
                run.embedded(t, if scales { t.scale(&embeds) } else { embeds })
            })
        };
        match self.form.scale {
            Scale::InModule => looked_up(true),
            Scale::After => t.scale(&looked_up(false)),
            Scale::Never => looked_up(false),
        }
    }

    /// Position ids that the decoder itself makes: [seq], or [batch, seq] where each sample has its own.
    fn position_ids(&self, t: &Tape, embeds: &Tensor) -> Option<Tensor> {
        let ids = || nn::position_ids(t, embeds);
        match self.form.positions {
            PositionTable::ShiftedEach => None,
            PositionTable::Indexed => Some(t.repeat(&ids(), embeds.size(0))),
            _ => Some(t.view(&ids(), [embeds.size(1)])),
        }
    }

    /// Embeddings of positions, [batch, seq, hidden], [1, seq, hidden] or [seq, hidden].
    fn embed_positions(&self, t: &Tape, embeds: &Tensor, ids: Option<&Tensor>) -> Tensor {
        let table = &self.embed_positions;
        t.scope("embed_positions", || match (self.form.positions, ids) {
            (PositionTable::Shifted, Some(ids)) => {
                let shifted = t.compute(&t.unsqueeze(ids, 0), ids.dtype(), "position ids + 2");
                table.forward(t, &shifted)
            }
            (PositionTable::Indexed, Some(ids)) => t.index_broadcast(table.weight(), std::slice::from_ref(ids)),
            (PositionTable::Frozen, Some(ids)) => t.no_grad(|| table.forward(t, ids)),
            (_, Some(ids)) => table.forward(t, ids),
            (_, None) => {
                let [batch, seq] = [embeds.size(0), embeds.size(1)];
                let _ids = nn::ids(t, &[seq], "arange");
                table.forward(t, &nn::ids(t, &[batch, seq], "position ids + 2"))
            }
        })
    }

    /// The norm of embeddings, if it is in this place.
    fn normed(&self, t: &Tape, place: EmbeddingNorm, x: Tensor) -> Tensor {
        match &self.embedding_norm {
            Some(norm) if self.form.embedding_norm == place => norm.call(t, &x),
            _ => x,
        }
    }
}

impl Stack for Decoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let mut embeds = self.embed(t, run, ids);
        let cache = run.cache(&[]);
        let position_ids = self.position_ids(t, &embeds);
        let attn = if self.form.eager_only {
            Attention::Eager
        } else {
            run.attn
        };
        let mask = |embeds: &Tensor| nn::causal_mask(t, attn, embeds);
        let early = (!self.form.mask_last).then(|| mask(&embeds));
        let positions = self.embed_positions(t, &embeds, position_ids.as_ref());
        let kept = position_ids.filter(|_| self.form.keeps_ids);
        embeds = self.normed(t, EmbeddingNorm::OfTokens, embeds);
        let mut h = t.add(&embeds, &positions);
        h = self.normed(t, EmbeddingNorm::OfSum, h);
        h = t.functional_dropout(&h, self.dropout);
        let mask = early.unwrap_or_else(|| mask(&embeds));
        let shared = Rc::new(BlockContext {
            attn,
            mask,
            mask_across: None,
            cache,
            _position_ids: None,
        });
        h = run_blocks(t, run, (&self.layers, &shared), h, Layer::forward);
        if let Some(norm) = &self.final_norm {
            h = norm.call(t, &h);
        }
        drop((shared, positions, kept, embeds));
        h
    }
    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}
