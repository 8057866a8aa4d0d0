//! InternVL 2.5 and 3 (`transformers/models/internvl/modeling_internvl.py`).

use super::config::InternVlConfig;
use super::vision::InternVlVision;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `InternVLForConditionalGeneration`.
pub struct InternVl {
    vision_tower: InternVlVision,
    projector: Projector,
    language_model: Decoder,
    lm_head: Option<Linear>,
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
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            Decoder::new(b, &c.text)
        });
        let lm_head = language_model.head(b, &c.text);
        Self {
            vision_tower,
            projector,
            language_model,
            lm_head,
            grid: c.vision.grid,
            shuffle: c.shuffle,
        }
    }

    /// `get_image_features`: pixels [tiles, channels, side, side] → [tiles, tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels)
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

/// `pixel_shuffle`: each square of `n` × `n` patches becomes one position of `n`² times the width.
fn pixel_shuffle(t: &Tape, x: &Tensor, n: u64) -> Tensor {
    let [tiles, width, height, channels] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    let mut h = t.view(x, [tiles, width, height / n, channels * n]);
    h = t.contiguous(&t.permute(&h, &[0, 2, 1, 3]));
    h = t.view(&h, [tiles, height / n, width / n, channels * n * n]);
    t.contiguous(&t.permute(&h, &[0, 2, 1, 3]))
}

impl Forward for InternVl {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let tiles = run.setup.batch * run.setup.images;
        Batch::of_text(t, run).with_pixels(t, run, &[tiles, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let mut embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let mut features = self.image_features(t, run, pixels);
        let mask = t.component("model", Component::Connector, || {
            features = t.to_dtype(&features, embeds.dtype());
            let mask = placeholder_mask(t, ids);
            embeds = t.place_features(&embeds, &mask, &features);
            mask
        });
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds)
        });
        drop(mask);
        let mut output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        output.held.push(features);
        output
    }
}

impl Projector {
    fn forward(&self, t: &Tape, features: &Tensor) -> Tensor {
        let mut h = t.scope("layer_norm", || self.layer_norm.forward(t, features));
        h = t.scope("linear_1", || self.linear_1.forward(t, &h));
        h = nn::activate(t, self.activation, h);
        t.scope("linear_2", || self.linear_2.forward(t, &h))
    }
}
