//! Embeddings and blocks.

use std::rc::Rc;

use super::block::{Block, BlockContext};
use super::config::{AttentionForm, BertConfig, HeadModule, NormPlace, PositionForm, Projection, TypeForm};
use super::embeddings::Embeddings;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// An encoder without its head.
pub(super) struct BertStack {
    embeddings: Embeddings,
    /// `embeddings_project`.
    project: Option<Linear>,
    layers: Vec<Numbered<Block>>,
    /// Norm at the end.
    norm: Option<LayerNorm>,
    /// `encoder.embed_positions`.
    sinusoids: Option<Embedding>,
    pooler: Option<Linear>,
    is_causal: bool,
    attention: AttentionForm,
    makes_types: bool,
    caches: bool,
    has_languages: bool,
    projection: Projection,
    norms: NormPlace,
}

impl BertStack {
    /// Makes the encoder.
    pub fn new(b: &Builder, c: &BertConfig) -> Self {
        let t = b.tape();
        let norms = c.form.norms;
        let embeddings = t.scope("embeddings", || Embeddings::new(b, c));
        let map = |name| Linear::new(b, name, c.embedding, c.hidden, true);
        let first = c.form.projection == Projection::IfNeeded && c.embedding != c.hidden;
        let before = first.then(|| map("embeddings_project"));
        let in_encoder = c.form.projection == Projection::InEncoder;
        let rotary = c.form.positions == PositionForm::Rotary;
        let (inside, sinusoids, layers, within) = t.scope("encoder", || {
            let sinusoids = rotary.then(|| Embedding::frozen(b, "embed_positions", c.positions, c.hidden / c.heads));
            let inside = in_encoder.then(|| map("embedding_hidden_mapping_in"));
            let layers = (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layer", i, || Rc::new(Block::new(b, c))))
                .collect();
            let ends = norms.is_last_of_encoder();
            let within = ends.then(|| LayerNorm::new(b, norms.before_mlp(), c.hidden));
            (inside, sinusoids, layers, within)
        });
        let outside = (norms == NormPlace::Before).then(|| LayerNorm::new(b, "LayerNorm", c.hidden));
        let pooler = c.form.pools.then(|| Linear::new(b, "pooler", c.hidden, c.hidden, true));
        embeddings.initialise(t);
        Self {
            embeddings,
            project: before.or(inside),
            layers,
            norm: within.or(outside),
            sinusoids,
            pooler,
            is_causal: c.is_decoder && c.form.attention == AttentionForm::Chosen,
            attention: c.form.attention,
            makes_types: c.form.types == Some(TypeForm::Zeros),
            caches: c.is_decoder && c.form.head == HeadModule::Widened,
            has_languages: c.adapters.is_some(),
            projection: c.form.projection,
            norms,
        }
    }

    /// Sines and cosines of the positions of a text, [1, 1, seq, head].
    fn waves(&self, t: &Tape, seq: u64) -> Option<Tensor> {
        let sinusoids = self.sinusoids.as_ref()?;
        t.scope("encoder", || {
            let waves = sinusoids.call(t, &nn::ids(t, &[seq], "arange"));
            Some(t.unsqueeze(&t.unsqueeze(&waves, 0), 0))
        })
    }

    /// The token embedding's weight, [vocab, width].
    pub fn words(&self) -> Tensor {
        self.embeddings.weight().clone()
    }
}

impl Stack for BertStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor {
        self.hidden_and_beside(t, run, ids, packed).0
    }

    fn hidden_and_beside(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> (Tensor, Option<Tensor>) {
        let attn = match self.attention {
            AttentionForm::Chosen => run.attn,
            AttentionForm::Eager | AttentionForm::EagerWithWeights => Attention::Eager,
        };
        // Others don't cache if they get labels.
        let cache = if self.caches { run.cache(&[]) } else { None };
        let types = self
            .makes_types
            .then(|| t.empty([ids.size(0), ids.size(1)], DType::I64, "token_type_ids"));
        let languages = self.has_languages.then(|| {
            let ones = t.empty([ids.size(0)], DType::F32, "ones");
            t.compute(&ones, DType::F32, "lang_ids")
        });
        let embeddings = self.embeddings.call(t, run, ids, types.as_ref());
        let mut embedded = embeddings.clone();
        let first = self.projection == Projection::IfNeeded;
        if let Some(project) = self.project.as_ref().filter(|_| first) {
            embedded = project.call(t, &embedded);
        }
        // Python's variable for the embeddings is the same.
        let embeddings = (!first).then_some(embeddings);
        let mask = if self.is_causal {
            nn::causal_mask(t, attn, &embedded)
        } else {
            nn::bidirectional_mask(t, attn, &embedded)
        };
        if let Some(project) = self.project.as_ref().filter(|_| !first) {
            let inside = || project.forward(t, &embedded);
            embedded = t.scope("encoder.embedding_hidden_mapping_in", inside);
        }
        let waves = self.waves(t, embedded.size(1));
        let shared = Rc::new(BlockContext {
            attn,
            mask,
            cache,
            languages,
            waves,
        });
        let (last, held) = t.scope("encoder", || {
            let blocks = (&self.layers[..], &shared);
            if self.attention == AttentionForm::EagerWithWeights {
                return run_blocks_with_weights(t, run, blocks, embedded.clone(), Block::forward);
            }
            let forward = |block: &Block, t: &Tape, shared: &BlockContext, x| block.forward(t, shared, x).0;
            (run_blocks(t, run, blocks, embedded.clone(), forward), None)
        });
        let out = match &self.norm {
            Some(norm) => {
                let within = self.norms.is_last_of_encoder();
                let norm = || norm.call(t, &last);
                if within { t.scope("encoder", norm) } else { norm() }
            }
            None => last.clone(),
        };
        drop((held, last));
        let pooled = self
            .pooler
            .as_ref()
            .map(|pooler| t.tanh(&pooler.call(t, &t.select(&out, 1))));
        drop((shared, embedded, embeddings, types));
        (out, pooled)
    }

    fn table(&self) -> &Tensor {
        self.embeddings.weight()
    }
}
