//! Fuyu (`transformers/models/fuyu/modeling_fuyu.py`).

use super::config::FuyuConfig;
use crate::model::config::PatchGrid;
use crate::model::decoder::head::{head_for, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::model::parts::rotary_decoder::RotaryDecoder;
use crate::model::parts::text::Stack;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

const LANGUAGE_MODEL: &str = "model.language_model";
const VISION: &str = "vision_embed_tokens";

/// `FuyuForCausalLM`.
pub struct Fuyu {
    language_model: RotaryDecoder,
    vision_embed_tokens: Linear,
    lm_head: Linear,
    config: FuyuConfig,
}

impl Fuyu {
    pub fn new(b: &Builder, c: &FuyuConfig) -> Self {
        let t = b.tape();
        let language_model = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            RotaryDecoder::new(b, &c.text)
        });
        let PatchGrid { patch, channels, .. } = c.grid;
        let vision_embed_tokens = t.component("model", Component::Connector, || {
            Linear::new(b, VISION, patch * patch * channels, c.text.hidden, true)
        });
        Self {
            lm_head: head_for(b, language_model.table(), c.text.tie_word_embeddings),
            language_model,
            vision_embed_tokens,
            config: c.clone(),
        }
    }

    /// Positions 0, 1, … of every sample, [1, seq].
    fn position_ids(t: &Tape, embeds: &Tensor) -> Tensor {
        t.component("model", Component::LanguageModel, || {
            t.unsqueeze(&nn::ids(t, &[embeds.size(1)], "position_ids"), 0)
        })
    }
}

impl Forward for Fuyu {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { patch, channels, .. } = self.config.grid;
        let patches = self.config.patches_a_side(&run.setup).pow(2);
        let shape = [run.setup.batch, patches, patch * patch * channels];
        Batch::of_text(t, run).with_pixels(t, run, &shape)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(patches)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and patches")
        };
        let mut embeds = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let position_ids = Self::position_ids(t, &embeds);
        let held = t.component("model", Component::Connector, || {
            let embedded = self.vision_embed_tokens.call(t, patches);
            let features = t.to_dtype(&embedded, embeds.dtype());
            drop(embedded);
            let mask = placeholder_mask(t, ids);
            embeds = t.place_features(&embeds, &mask, &features);
            (mask, features)
        });
        let h = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds, position_ids, false)
        });
        drop(held);
        logits_and_loss(t, &self.lm_head, h, batch)
    }
}
