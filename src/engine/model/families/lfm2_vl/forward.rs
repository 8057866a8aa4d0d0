//! LFM2-VL (`transformers/models/lfm2_vl/modeling_lfm2_vl.py`).

use super::config::Lfm2VlConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::lfm2_decoder::Lfm2Decoder;
use crate::model::parts::pixel_shuffle::pixel_shuffle_by_reshapes;
use crate::model::parts::siglip2_vision::Siglip2Vision;
use crate::nn::{self, Builder, LayerNorm, Linear, ids};
use crate::tape::{Component, Kind, Tape, Tensor};

/// `Lfm2VlForConditionalGeneration`.
pub struct Lfm2Vl {
    vision_tower: Siglip2Vision,
    multi_modal_projector: Projector,
    text: ImageText<Lfm2Decoder>,
    /// Patches along each side of an image.
    side: u64,
    /// Elements of one patch.
    elements: u64,
}

/// `Lfm2VlMultiModalProjector`.
struct Projector {
    layer_norm: Option<LayerNorm>,
    linear_1: Linear,
    linear_2: Linear,
    activation: Activation,
    factor: u64,
}

impl Lfm2Vl {
    pub fn new(b: &Builder, c: &Lfm2VlConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            Siglip2Vision::new(b, &c.vision)
        });
        let multi_modal_projector = t.component("model.multi_modal_projector", Component::Connector, || {
            Projector::new(b, c)
        });
        Self {
            vision_tower,
            multi_modal_projector,
            text: ImageText::around(b, || Lfm2Decoder::new(b, &c.text), |model| model.head(b, &c.text)),
            side: c.side,
            elements: c.vision.patch_elements(),
        }
    }

    /// `get_image_features`: patches [images, patches, elements] and their mask → the tokens of each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, mask: &Tensor) -> Vec<Tensor> {
        let (last, pooled) = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels, [self.side; 2])
        });
        let lengths = t.count(mask, &[1]);
        let mut _feature = None;
        let tokens = (0..pixels.size(0)).map(|_| {
            let image = t.view(&t.select(&last, 0), [1, self.side, self.side, last.last()]);
            _feature = Some(image.clone());
            let embedding = t.component("model.multi_modal_projector", Component::Connector, || {
                self.multi_modal_projector.forward(t, image)
            });
            t.reshape(&embedding, [embedding.size(1) * embedding.size(2), embedding.last()])
        });
        let tokens = tokens.collect();
        drop((lengths, pooled));
        tokens
    }
}

impl Projector {
    fn new(b: &Builder, c: &Lfm2VlConfig) -> Self {
        let width = c.vision.shape.hidden * c.factor * c.factor;
        let p = c.projector;
        Self {
            layer_norm: p.norm.then(|| LayerNorm::new(b, "layer_norm", width)),
            linear_1: Linear::new(b, "linear_1", width, p.hidden, p.bias),
            linear_2: Linear::new(b, "linear_2", p.hidden, c.text.hidden, p.bias),
            activation: p.activation,
            factor: c.factor,
        }
    }

    /// [1, rows, columns, width] → [1, rows of tokens, columns of tokens, text width].
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let mut x = pixel_shuffle_by_reshapes(t, &x, self.factor);
        if let Some(norm) = &self.layer_norm {
            x = norm.call(t, &x);
        }
        let mut h = self.linear_1.call(t, &x);
        h = nn::activate(t, self.activation, h);
        let out = self.linear_2.call(t, &h);
        drop(x);
        out
    }
}

impl Forward for Lfm2Vl {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let (images, patches) = (run.images(), self.side * self.side);
        let mut batch = Batch::of_text(t, run);
        t.as_kind(Kind::Input, || {
            batch.others.push(ids(t, &[images, 2], "spatial_shapes"));
            let mask = t.empty([images, patches], DType::I32, "pixel_attention_mask");
            batch.others.push(mask);
        });
        batch.with_pixels(t, run, &[images, patches, self.elements])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss(t, run, batch, |pixels| {
            let Some(mask) = batch.others.last() else {
                unreachable!("a batch has a mask of patches")
            };
            Features::Parts(self.image_features(t, run, pixels, mask))
        })
    }
}
