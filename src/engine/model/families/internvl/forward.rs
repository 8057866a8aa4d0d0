//! InternVL 2.5 and 3 (`transformers/models/internvl/modeling_internvl.py`).

use super::config::InternVlConfig;
use super::vision::InternVlVision;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::ImageText;
use crate::model::parts::pixel_shuffle::pixel_shuffle;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `InternVLForConditionalGeneration`.
pub struct InternVl {
    vision_tower: InternVlVision,
    projector: Projector,
    text: ImageText<Decoder>,
    grid: PatchGrid,
    shuffle: u64,
}

struct Projector {
    layer_norm: LayerNorm,
    linear_1: Linear,
    linear_2: Linear,
    activation: Activation,
}

impl InternVl {
    pub fn new(b: &Builder, c: &InternVlConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            InternVlVision::new(b, &c.vision)
        });
        let features = c.vision.shape.hidden * c.shuffle * c.shuffle;
        let projector = t.component("model.multi_modal_projector", Component::Connector, || Projector {
            layer_norm: LayerNorm::new(b, "layer_norm", features),
            linear_1: Linear::new(b, "linear_1", features, c.text.hidden, true),
            linear_2: Linear::new(b, "linear_2", c.text.hidden, c.text.hidden, true),
            activation: c.projector_activation,
        });
        Self {
            vision_tower,
            projector,
            text: ImageText::new(b, &c.text),
            grid: c.vision.grid,
            shuffle: c.shuffle,
        }
    }

    /// `get_image_features`: pixels [tiles, channels, side, side] → [tiles, tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let pixels = run.pixels_in_type_of_weights(t, pixels);
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, &pixels)
        });
        t.component("model.multi_modal_projector", Component::Connector, || {
            let [tiles, positions, hidden] = [last.size(0), last.size(1), last.last()];
            let mut features = t.slice(&last, 1, positions - 1);
            let side = (positions - 1).isqrt();
            features = t.reshape(&features, [tiles, side, side, hidden]);
            features = pixel_shuffle(t, &features, self.shuffle);
            features = t.reshape(&features, [tiles, features.size(1) * features.size(2), features.last()]);
            self.projector.forward(t, &features)
        })
    }
}

impl Forward for InternVl {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let tiles = run.images();
        Batch::of_text(t, run).with_pixels(t, run, &[tiles, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text
            .loss(t, run, batch, |pixels| self.image_features(t, run, pixels).into())
    }
}

impl Projector {
    fn forward(&self, t: &Tape, features: &Tensor) -> Tensor {
        let mut h = self.layer_norm.call(t, features);
        h = self.linear_1.call(t, &h);
        h = nn::activate(t, self.activation, h);
        self.linear_2.call(t, &h)
    }
}
