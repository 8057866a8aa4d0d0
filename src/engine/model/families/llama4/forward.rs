//! Llama 4 with images (`transformers/models/llama4/modeling_llama4.py`).

use super::config::Llama4Config;
use super::text::Decoder;
use super::vision::Vision;
use crate::model::config::PatchGrid;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::model::parts::text::Stack;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape};

const LANGUAGE_MODEL: &str = "language_model.model";

/// `Llama4ForConditionalGeneration`.
pub struct Llama4 {
    vision_model: Vision,
    multi_modal_projector: Linear,
    language_model: Decoder,
    lm_head: Linear,
    grid: PatchGrid,
}

impl Llama4 {
    pub fn new(b: &Builder, c: &Llama4Config) -> Self {
        let t = b.tape();
        let vision_model = t.component("vision_model", Component::VisionTower, || Vision::new(b, &c.vision));
        let multi_modal_projector = t.component("multi_modal_projector", Component::Connector, || {
            Linear::new(b, "linear_1", c.vision.output, c.text.hidden, false)
        });
        let language_model = t.component(LANGUAGE_MODEL, Component::LanguageModel, || Decoder::new(b, &c.text));
        let lm_head = t.component("language_model", Component::Head, || match c.text.tie_word_embeddings {
            true => Linear::tied(b, "lm_head", language_model.table()),
            false => Linear::new(b, "lm_head", c.text.hidden, c.text.vocab, false),
        });
        Self {
            vision_model,
            multi_modal_projector,
            language_model,
            lm_head,
            grid: c.vision.grid,
        }
    }
}

impl Forward for Llama4 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let tiles = run.images();
        Batch::of_text(t, run).with_pixels(t, run, &[tiles, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let mut embeds = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let features = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        let projected = t.component("multi_modal_projector", Component::Connector, || {
            let flat = t.view(&features, [features.size(0) * features.size(1), features.last()]);
            let projected = self.multi_modal_projector.call(t, &flat);
            t.to_dtype(&projected, embeds.dtype())
        });
        let mask = t.component("", Component::Connector, || {
            let mask = placeholder_mask(t, ids);
            embeds = t.place_features(&embeds, &mask, &projected);
            mask
        });
        let h = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.forward(t, run, &embeds)
        });
        t.component("language_model", Component::Head, || {
            let Some(labels) = &batch.labels else {
                return Output {
                    loss: self.lm_head.call(t, &t.slice(&h, 1, 1)),
                    held: Vec::new(),
                };
            };
            let logits = self.lm_head.call(t, &h);
            drop(h);
            let loss = t.scope("loss", || nn::causal_lm_loss(t, &logits, labels));
            drop((embeds, mask, projected));
            Output {
                loss,
                held: vec![logits, features],
            }
        })
    }
}
