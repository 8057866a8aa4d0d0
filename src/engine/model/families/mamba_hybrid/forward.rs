//! `BambaForCausalLM`, `GraniteMoeHybridForCausalLM`, `NemotronHForCausalLM`, `FalconH1ForCausalLM`,
//! `JambaForCausalLM` (`transformers/models/{bamba,granitemoehybrid,nemotron_h,falcon_h1,jamba}/modeling_*.py`).

use std::rc::Rc;

use super::config::{HybridKind, LayerKind, MambaHybridConfig};
use super::layer::Layer;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::head::{Logits, head_for};
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, MixedLm, Returned, run_layers};
use crate::nn::{self, Builder, Embedding, Numbered, Pattern, RmsNorm, Rotary};
use crate::tape::{Component, Tape, Tensor};

/// The model without its head.
pub struct MambaHybrid {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    /// For each layer, true if attention's mask is not for it.
    is_recurrent: Vec<bool>,
    norm: RmsNorm,
    rotary: Option<Rotary>,
    kind: HybridKind,
}

/// Makes the model.
pub fn model(b: &Builder, c: &MambaHybridConfig) -> MixedLm<MambaHybrid> {
    let model = b
        .tape()
        .component("model", Component::LanguageModel, || MambaHybrid::new(b, c));
    // Nemotron-H's class names no tied weights.
    let is_tied = c.text.tie_word_embeddings && c.kind != HybridKind::Nemotron;
    let lm_head = head_for(b, model.embed_tokens.weight(), is_tied);
    MixedLm {
        model,
        lm_head,
        logits: match c.kind {
            HybridKind::Bamba | HybridKind::Jamba => Logits::AsTheyAre,
            HybridKind::Granite | HybridKind::Falcon => Logits::Scaled,
            HybridKind::Nemotron => Logits::InF32,
        },
    }
}

impl MambaHybrid {
    fn new(b: &Builder, c: &MambaHybridConfig) -> Self {
        let text = &c.text;
        let (embeddings, norm) = match c.kind {
            HybridKind::Bamba | HybridKind::Falcon | HybridKind::Jamba => ("embed_tokens", "final_layernorm"),
            HybridKind::Granite => ("embed_tokens", "norm"),
            HybridKind::Nemotron => ("embeddings", "norm_f"),
        };
        let embed_tokens = Embedding::new(b, embeddings, text.vocab, text.hidden);
        let layer = |i| {
            Numbered::new(b, "layers", i, || {
                let layer = Layer::new(b, c, i);
                Rc::new(match c.kind {
                    HybridKind::Falcon => layer.with_multipliers(b),
                    _ => layer,
                })
            })
        };
        let layers = (0..c.layers.len()).map(layer).collect();
        let norm = RmsNorm::new(b, norm, text.hidden);
        let width = match c.kind {
            HybridKind::Bamba => text.rope.rotated(text.head_dim).next_multiple_of(2),
            _ => text.head_dim,
        };
        let rotary = || {
            Rotary::new(b, width)
                .dynamic(text.rope.is_dynamic())
                .initialised(b.tape())
        };
        Self {
            embed_tokens,
            layers,
            is_recurrent: c
                .layers
                .iter()
                .map(|kind| !matches!(kind, LayerKind::Attention | LayerKind::Both))
                .collect(),
            norm,
            rotary: c.has_positions.then(rotary),
            kind: c.kind,
        }
    }
}

impl MixedDecoder for MambaHybrid {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        match self.kind {
            HybridKind::Granite | HybridKind::Falcon => t.scale(&embeds),
            HybridKind::Bamba | HybridKind::Nemotron | HybridKind::Jamba => embeds,
        }
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let cache = run.cache(&[]);
        let position_ids = packed.cloned().unwrap_or_else(|| match self.kind {
            // Bamba adds no number of positions before.
            HybridKind::Bamba => t.unsqueeze(&nn::ids(t, &[embeds.size(1)], "position_ids"), 0),
            _ => run.position_ids(t, &embeds),
        });
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        let padding = padding.and_then(|padding| nn::recurrent_mask(t, padding));
        // Without positions no layer reads the tables: the embeddings, which live as long, stand in their place.
        let (cos, sin) = match &self.rotary {
            Some(rotary) => rotary.call(t, &embeds, &position_ids),
            None => (embeds.clone(), embeds.clone()),
        };
        let shared = LayerContext {
            block: BlockContext {
                attn: run.attn,
                mask,
                cos,
                sin,
                splits_last: false,
                cache,
                // Granite's layers do not get them.
                position_ids: (self.kind != HybridKind::Granite).then(|| position_ids.clone()),
            },
            padding,
            returned: Returned::default(),
        };
        let layers = (&*self.layers, &*self.is_recurrent);
        let out = run_layers(t, run, layers, &self.norm, shared, embeds);
        drop(position_ids);
        out
    }
}
