//! Kimi-K2.5 (`transformers/models/kimi_k25/modeling_kimi_k25.py`).

use super::config::KimiK25Config;
use super::vision::Vision;
use crate::model::config::Activation;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::image_tokens::{ids_of_text, placeholder_masks};
use crate::model::parts::qwen_vl::{Layout, QwenPatches, batch_of_patches, split_images};
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Kimi_K25ForConditionalGeneration`.
pub struct KimiK25<T> {
    vision_tower: Vision,
    text: ImageText<T>,
    projector: Projector,
    patches: QwenPatches,
}

/// `Kimi_K25MultimodalProjection`.
struct Projector {
    pre_norm: LayerNorm,
    in_proj: Linear,
    out_proj: Linear,
}

/// Index of the grids of images in [`Batch::others`].
const GRID: usize = 1;

impl Projector {
    fn new(b: &Builder, c: &KimiK25Config) -> Self {
        let width = c.vision.width * c.vision.patches.merged();
        b.tape().component("model.mm_projector", Component::Connector, || Self {
            pre_norm: LayerNorm::new(b, "pre_norm", c.vision.width),
            in_proj: Linear::new(b, "in_proj", width, width, true),
            out_proj: Linear::new(b, "out_proj", width, c.text.hidden, true),
        })
    }

    /// Patches of each token, [tokens, patches of a token, width] → [tokens, 1, text width].
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = self.pre_norm.call(t, x);
        h = t.view(&h, [x.size(0), 1, x.size(1) * x.size(2)]);
        h = self.in_proj.call(t, &h);
        h = nn::activate(t, Activation::Gelu, h);
        self.out_proj.call(t, &h)
    }
}

impl<T: Text> KimiK25<T> {
    pub fn new(b: &Builder, c: &KimiK25Config) -> Self {
        let vision_tower = b.tape().component("model.vision_tower", Component::VisionTower, || {
            Vision::new(b, &c.vision)
        });
        let mut projector = None;
        let text = ImageText::new_before_head(b, &c.text, || projector = Some(Projector::new(b, c)));
        Self {
            vision_tower,
            text,
            projector: projector.expect("it is made before the head"),
            patches: c.vision.patches,
        }
    }

    /// `get_image_features`: patches [patches, elements of a patch] → the tokens of each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, grid: &Tensor) -> Vec<Tensor> {
        let layout = Layout::of(&run.setup, &self.patches);
        let [last, merged] = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels, &layout, grid)
        });
        let features = t.component("model.mm_projector", Component::Connector, || {
            self.projector.forward(t, &merged)
        });
        let parts = split_images(t, grid, t.squeeze(&features, 1), &layout);
        drop((merged, last));
        parts
    }
}

impl<T: Text> Forward for KimiK25<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        match run.setup.images {
            0 => Batch::of_text(t, run),
            _ => batch_of_patches(t, run, &self.patches, |_| None),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let features = |pixels: &Tensor| Features::Parts(self.image_features(t, run, pixels, &batch.others[GRID]));
        self.text
            .loss_of_known_ids(t, run, batch, (ids_of_text, placeholder_masks), features)
    }
}
