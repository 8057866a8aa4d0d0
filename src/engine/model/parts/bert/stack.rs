//! Embeddings and blocks.

use std::rc::Rc;

use super::block::{Block, BlockContext};
use super::config::{BertConfig, NormPlace};
use super::embeddings::Embeddings;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks, run_blocks_with_weights};
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// An encoder without its head.
pub(super) struct BertStack {
    embeddings: Embeddings,
    /// `embeddings_project`.
    project: Option<Linear>,
    layers: Vec<Rc<Block>>,
    /// Norm at the end.
    norm: Option<LayerNorm>,
    is_causal: bool,
    megatron: bool,
}

impl BertStack {
    /// Makes the encoder; its token embedding shares `table` if there is one.
    pub fn new(b: &Builder, c: &BertConfig, table: Option<Tensor>) -> Self {
        let t = b.tape();
        let norms = c.form.norms;
        let embeddings = t.scope("embeddings", || Embeddings::new(b, c, table));
        let project =
            (c.embedding != c.hidden).then(|| Linear::new(b, "embeddings_project", c.embedding, c.hidden, true));
        let (layers, within) = t.scope("encoder", || {
            let layers = (0..c.layers as usize)
                .map(|i| t.layer("layer", i, || Rc::new(Block::new(b, c))))
                .collect();
            let within = (norms == NormPlace::Megatron).then(|| LayerNorm::new(b, "ln", c.hidden));
            (layers, within)
        });
        let outside = (norms == NormPlace::Before).then(|| LayerNorm::new(b, "LayerNorm", c.hidden));
        embeddings.initialise(t);
        let megatron = norms == NormPlace::Megatron;
        Self {
            embeddings,
            project,
            layers,
            norm: within.or(outside),
            // Megatron-BERT's mask is the same for a decoder.
            is_causal: c.is_decoder && !megatron,
            megatron,
        }
    }

    /// The token embedding's weight, [vocab, width].
    pub fn words(&self) -> Tensor {
        self.embeddings.weight().clone()
    }
}

impl Stack for BertStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let attn = if self.megatron { Attention::Eager } else { run.attn };
        let types = self
            .megatron
            .then(|| t.empty([ids.size(0), ids.size(1)], DType::I64, "token_type_ids"));
        let mut embedded = t.scope("embeddings", || self.embeddings.forward(t, run, ids, types.as_ref()));
        if let Some(project) = &self.project {
            embedded = t.scope("embeddings_project", || project.forward(t, &embedded));
        }
        let mask = if self.is_causal {
            nn::causal_mask(t, attn, &embedded)
        } else {
            nn::bidirectional_mask(t, attn, &embedded)
        };
        let shared = Rc::new(BlockContext { attn, mask });
        let (last, held) = t.scope("encoder", || {
            let blocks = (&self.layers[..], &shared);
            if self.megatron {
                return run_blocks_with_weights(t, run, "layer", blocks, embedded.clone(), Block::forward);
            }
            let forward = |block: &Block, t: &Tape, shared: &BlockContext, x| block.forward(t, shared, x).0;
            (run_blocks(t, run, "layer", blocks, embedded.clone(), forward), None)
        });
        let out = match &self.norm {
            Some(norm) if self.megatron => t.scope("encoder.ln", || norm.forward(t, &last)),
            Some(norm) => t.scope("LayerNorm", || norm.forward(t, &last)),
            None => last.clone(),
        };
        drop((held, last, shared, embedded, types));
        out
    }

    fn table(&self) -> &Tensor {
        self.embeddings.weight()
    }
}
