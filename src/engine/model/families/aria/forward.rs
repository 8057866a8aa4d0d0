//! Aria (`transformers/models/aria/modeling_aria.py`).

use super::config::AriaConfig;
use super::projector::Projector;
use crate::model::config::PatchGrid;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::idefics_vision::IdeficsVision;
use crate::model::parts::image_tokens::placeholder_mask;
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Failure, Tape, Tensor};

const LANGUAGE_MODEL: &str = "model.language_model";

/// `AriaForConditionalGeneration`.
pub struct Aria {
    vision_tower: IdeficsVision,
    multi_modal_projector: Projector,
    language_model: Decoder,
    lm_head: Option<Linear>,
    grid: PatchGrid,
    feature_layer: usize,
    /// Queries of an image, if there are some for its patches.
    queries: Option<u64>,
}

impl Aria {
    pub fn new(b: &Builder, c: &AriaConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            IdeficsVision::new(b, &c.vision)
        });
        let multi_modal_projector = t.component("model.multi_modal_projector", Component::Connector, || {
            Projector::new(b, c)
        });
        let language_model = t.component(LANGUAGE_MODEL, Component::LanguageModel, || Decoder::new(b, &c.text));
        let lm_head = language_model.head(b, &c.text);
        Self {
            vision_tower,
            multi_modal_projector,
            language_model,
            lm_head,
            grid: c.vision.grid,
            feature_layer: c.feature_layer as usize,
            queries: c.image_tokens(),
        }
    }

    /// `get_image_features`: pixels [images, channels, side, side] → [images, queries, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let Some(queries) = self.queries else {
            let patches = self.grid.patches();
            t.fail(|| Failure::NoQueries { patches });
            return t.empty([0], pixels.dtype(), "no features");
        };
        let (states, last) = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.states(t, run, pixels)
        });
        let features = t.component("model.multi_modal_projector", Component::Connector, || {
            self.multi_modal_projector.call(t, &states[self.feature_layer], queries)
        });
        drop((states, last));
        features
    }
}

impl Forward for Aria {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let batch = Batch::of_text(t, run);
        match run.images() {
            0 => batch,
            images => batch.with_pixels(t, run, &[images, channels, image, image]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let mut embeds = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let mut shown = None;
        let mut mask = None;
        if let Some(pixels) = &batch.pixels {
            let features = t.to_dtype(&self.image_features(t, run, pixels), embeds.dtype());
            t.component("model", Component::Connector, || {
                let marked = placeholder_mask(t, ids);
                embeds = t.place_features(&embeds, &marked, &features);
                mask = Some(marked);
            });
            shown = Some(features);
        }
        let h = t.component(LANGUAGE_MODEL, Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds)
        });
        drop(mask);
        let output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        // The output of the inner model has them, not that of the whole.
        drop(shown);
        output
    }
}
