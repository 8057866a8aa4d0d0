//! Mistral 3 and LightOnOCR (`transformers/models/{mistral3,lighton_ocr}/modeling_*.py`).

use super::config::{Mistral3Config, Mistral3Kind};
use super::projector::Projector;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::pixtral_vision::PixtralVision;
use crate::nn::{self, Builder};
use crate::tape::{Component, Kind, Tape, Tensor};

/// `Mistral3ForConditionalGeneration`, `LightOnOcrForConditionalGeneration`.
pub struct Mistral3<T> {
    vision_tower: PixtralVision,
    projector: Projector,
    text: ImageText<T>,
    config: Mistral3Config,
    /// Names of the tower and of the projector.
    names: [&'static str; 2],
}

impl<T: Text> Mistral3<T> {
    pub fn new(b: &Builder, c: &Mistral3Config) -> Self {
        let t = b.tape();
        let names = match c.kind {
            Mistral3Kind::Mistral3 => ["model.vision_tower", "model.multi_modal_projector"],
            Mistral3Kind::LightOnOcr => ["model.vision_encoder", "model.vision_projection"],
        };
        Self {
            vision_tower: t.component(names[0], Component::VisionTower, || PixtralVision::new(b, &c.vision)),
            projector: t.component(names[1], Component::Connector, || Projector::new(b, c)),
            text: ImageText::new(b, &c.text),
            config: c.clone(),
            names,
        }
    }

    /// Pixels of the images of a run.
    fn sizes(&self, run: &Run) -> Vec<[u64; 2]> {
        run.setup.of_all_samples(self.config.sizes(&run.setup))
    }

    /// `get_image_features`: pixels [images, channels, height, width] → features of each image, [tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Vec<Tensor> {
        let (c, sizes) = (&self.config, self.sizes(run));
        let mut hidden_states = Vec::new();
        let last = t.component(self.names[0], Component::VisionTower, || {
            let see = |h: &Tensor| {
                if c.kind == Mistral3Kind::Mistral3 {
                    hidden_states.push(h.clone());
                }
            };
            self.vision_tower.forward(t, run, pixels, &sizes, see)
        });
        let selected = match (
            hidden_states.get(c.feature_layers.indices[0] as usize),
            c.feature_layers.is_list,
        ) {
            (Some(state), true) => t.cat(&[state], 2),
            (Some(state), false) => state.clone(),
            (None, _) => last.clone(),
        };
        let patches: Vec<[u64; 2]> = sizes.iter().map(|size| size.map(|n| n / c.vision.grid.patch)).collect();
        let features = t.component(self.names[1], Component::Connector, || {
            self.projector.forward(t, t.squeeze(&selected, 0), &patches)
        });
        let tokens: Vec<u64> = patches.iter().map(|[h, w]| (h / c.merge) * (w / c.merge)).collect();
        let (parts, _counts) = t.component("model", Component::Connector, || self.split(t, &features, &tokens));
        drop((features, selected, last, hidden_states));
        parts
    }

    /// Features of each image, and the numbers of their tokens if the function that makes them holds these.
    fn split(&self, t: &Tape, features: &Tensor, tokens: &[u64]) -> (Vec<Tensor>, Vec<Tensor>) {
        let images = tokens.len() as u64;
        let counts = match self.config.kind {
            Mistral3Kind::Mistral3 => {
                let sides = nn::ids(t, &[images, 2], "sides in tokens");
                drop((nn::ids(t, &[images], "tokens of each image"), sides));
                Vec::new()
            }
            Mistral3Kind::LightOnOcr => tokens
                .iter()
                .map(|_| {
                    let _sides = [0, 1].map(|_| nn::ids(t, &[], "side in tokens"));
                    nn::ids(t, &[], "tokens of an image")
                })
                .collect(),
        };
        (t.split(features, 0, tokens), counts)
    }
}

impl<T: Text> Forward for Mistral3<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let sizes = self.sizes(run);
        let longest = |side: usize| sizes.iter().map(|size| size[side]).max().unwrap_or(1);
        let images = sizes.len() as u64;
        let pixels = [images, self.config.vision.grid.channels, longest(0), longest(1)];
        let mut batch = Batch::of_text(t, run).with_pixels(t, run, &pixels);
        batch
            .others
            .push(t.as_kind(Kind::Input, || nn::ids(t, &[images, 2], "image_sizes")));
        batch
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss(t, run, batch, |pixels| {
            Features::Parts(self.image_features(t, run, pixels))
        })
    }
}
