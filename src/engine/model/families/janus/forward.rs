//! Janus with images that it reads (`transformers/models/janus/modeling_janus.py`).

use super::config::JanusConfig;
use super::vision::JanusVision;
use super::vq;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `JanusForConditionalGeneration`.
pub struct Janus<T> {
    vision_model: JanusVision,
    /// Linear layers of the aligner, with an activation before each but the first.
    aligner: Vec<Linear>,
    activation: Activation,
    text: ImageText<T>,
    grid: PatchGrid,
    text_hidden: u64,
}

impl<T: Text> Janus<T> {
    pub fn new(b: &Builder, c: &JanusConfig) -> Self {
        let (t, vision) = (b.tape(), &c.vision);
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            JanusVision::new(b, vision)
        });
        let aligner = t.component("model.aligner", Component::Connector, || {
            let first = Linear::new(b, "fc1", vision.shape.hidden, vision.projection, true);
            let width = vision.projection;
            let others = (1..vision.depth as usize)
                .map(|i| t.layer("hidden_layers", i - 1, || Linear::unnamed(b, width, width)));
            [first].into_iter().chain(others).collect()
        });
        t.component("model", Component::LanguageModel, || vq::make(b, &c.vq));
        Self {
            vision_model,
            aligner,
            activation: vision.activation,
            text: ImageText::new(b, &c.text).looking_up(c.image_token, c.text.vocab),
            grid: vision.grid,
            text_hidden: c.text.hidden,
        }
    }

    /// `get_image_features`: pixels [images, channels, side, side] → [images, patches, width of the aligner].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (last, _pooled) = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        t.component("model.aligner", Component::Connector, || {
            let mut maps = self.aligner.iter();
            let mut x = last.clone();
            if let Some(fc1) = maps.next() {
                x = fc1.call(t, &x);
            }
            for map in maps {
                x = nn::activate(t, self.activation, x);
                x = map.call(t, &x);
            }
            x
        })
    }
}

impl<T: Text> Forward for Janus<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let batch = Batch::of_text(t, run);
        match run.images() {
            0 => batch,
            images => batch.with_pixels(t, run, &[images, channels, image, image]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss(t, run, batch, |pixels| {
            let embeds = self.image_features(t, run, pixels);
            let all = t.reshape(&embeds, [embeds.numel() / self.text_hidden, self.text_hidden]);
            Features::Shown(all, embeds)
        })
    }
}
