//! GOT-OCR 2 (`transformers/models/got_ocr2/modeling_got_ocr2.py`).

use super::config::GotOcr2Config;
use crate::model::config::PatchGrid;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::ImageText;
use crate::model::parts::sam_vision::SamVision;
use crate::nn::{Builder, Linear};
use crate::setup::Attention;
use crate::tape::{Component, Tape, Tensor};

const VISION_TOWER: &str = "model.vision_tower";
const PROJECTOR: &str = "model.multi_modal_projector";

/// `GotOcr2ForConditionalGeneration`.
pub struct GotOcr2<T> {
    vision_tower: SamVision,
    projector: Projector,
    text: ImageText<T>,
    grid: PatchGrid,
}

/// `GotOcr2MultiModalProjector`.
struct Projector {
    conv_upsampler1: Tensor,
    conv_upsampler2: Tensor,
    multimodal_projector: Linear,
}

impl<T: Text> GotOcr2<T> {
    pub fn new(b: &Builder, c: &GotOcr2Config) -> Self {
        let t = b.tape();
        Self {
            vision_tower: t.component(VISION_TOWER, Component::VisionTower, || SamVision::new(b, &c.vision)),
            projector: t.component(PROJECTOR, Component::Connector, || {
                Projector::new(b, c.vision.output_channels, c.text.hidden)
            }),
            text: ImageText::new(b, &c.text),
            grid: c.vision.grid,
        }
    }

    /// `get_image_features`: pixels [images, channels, side, side] → [images, tokens, text width]. The tower has eager
    /// attention only.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let last = t.component(VISION_TOWER, Component::VisionTower, || {
            self.vision_tower.forward(t, run, Attention::Eager, pixels, |_| {})
        });
        t.component(PROJECTOR, Component::Connector, || self.projector.forward(t, &last))
    }
}

impl<T: Text> Forward for GotOcr2<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let images = run.images();
        Batch::of_text(t, run).with_pixels(t, run, &[images, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text
            .loss(t, run, batch, |pixels| self.image_features(t, run, pixels).into())
    }
}

impl Projector {
    fn new(b: &Builder, channels: u64, hidden: u64) -> Self {
        Self {
            conv_upsampler1: b.weight("conv_upsampler1.weight", [2 * channels, channels, 3, 3]),
            conv_upsampler2: b.weight("conv_upsampler2.weight", [hidden, 2 * channels, 3, 3]),
            multimodal_projector: Linear::new(b, "multimodal_projector", hidden, hidden, true),
        }
    }

    /// [images, channels, rows, columns] → [images, tokens, width].
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("conv_upsampler1", || t.conv2d(x, &self.conv_upsampler1, [2, 1]));
        h = t.scope("conv_upsampler2", || t.conv2d(&h, &self.conv_upsampler2, [2, 1]));
        h = t.view(&h, [h.size(0), h.size(1), h.size(2) * h.size(3)]);
        h = t.permute(&h, &[0, 2, 1]);
        self.multimodal_projector.call(t, &h)
    }
}
