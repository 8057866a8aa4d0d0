//! Aya Vision and Cohere 2 Vision (`transformers/models/{aya_vision,cohere2_vision}/modeling_*.py`).

use super::config::AyaVisionConfig;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::ImageText;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, FeatureTower};
use crate::model::parts::pixel_shuffle::pixel_shuffle_by_reshapes;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `AyaVisionForConditionalGeneration` and `Cohere2VisionForConditionalGeneration`.
pub struct AyaVision<T> {
    vision_tower: FeatureTower,
    takes_output: bool,
    projector: Projector,
    text: ImageText<T>,
    grid: PatchGrid,
}

/// `AyaVisionMultiModalProjector`.
struct Projector {
    layernorm: Option<LayerNorm>,
    linear_1: Linear,
    linear_2: Linear,
    shuffle: u64,
}

impl<T: Text> AyaVision<T> {
    pub fn new(b: &Builder, c: &AyaVisionConfig) -> Self {
        let last = (FeatureLayers::single(c.vision.shape().layers, 1), FeatureSelect::Full);
        let selection = c.selection.clone().unwrap_or(last);
        let vision_tower = FeatureTower::new(b, "model.vision_tower", &c.vision, selection);
        let features = c.vision.shape().hidden * c.shuffle * c.shuffle;
        let projector = b
            .tape()
            .component("model.multi_modal_projector", Component::Connector, || Projector {
                layernorm: c.selection.is_some().then(|| LayerNorm::new(b, "layernorm", features)),
                linear_1: Linear::new(b, "linear_1", features, c.projector_width, true),
                linear_2: Linear::new(b, "linear_2", c.projector_width / 2, c.text.hidden, true),
                shuffle: c.shuffle,
            });
        Self {
            vision_tower,
            takes_output: c.is_cohere2(),
            projector,
            text: ImageText::new(b, &c.text),
            grid: c.vision.grid(),
        }
    }

    /// `get_image_features`: pixels [tiles, channels, side, side] → [tiles, tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (selected, held) = if self.takes_output {
            let output = self.vision_tower.output(t, run, pixels);
            (output[0].clone(), output)
        } else {
            self.vision_tower.features(t, run, pixels)
        };
        let features = t.component("model.multi_modal_projector", Component::Connector, || {
            let x = self.projector.forward(t, &selected);
            t.reshape(&x, [x.size(0), x.size(1) * x.size(2), x.last()])
        });
        drop((selected, held));
        features
    }
}

impl<T: Text> Forward for AyaVision<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
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
        let [tiles, positions, width] = [features.size(0), features.size(1), features.size(2)];
        let side = positions.isqrt();
        let square = t.reshape(features, [tiles, side, side, width]);
        let mut x = pixel_shuffle_by_reshapes(t, &square, self.shuffle);
        drop(square);
        if let Some(norm) = &self.layernorm {
            x = norm.call(t, &x);
        }
        let h = self.linear_1.call(t, &x);
        let halves = t.split(&h, 2 + 1, &[h.last() / 2, h.last() / 2]);
        let gate = nn::activate(t, Activation::Silu, halves[1].clone());
        let gated = t.mul(&gate, &halves[0]);
        drop((gate, h));
        let out = self.linear_2.call(t, &gated);
        drop((halves, x));
        out
    }
}
