//! Muse Glimmer (`transformers/models/muse_glimmer/modeling_muse_glimmer.py`).

use super::config::MuseGlimmerConfig;
use super::text::block;
use super::vision::{Projector, Vision};
use crate::model::decoder::head::{Logits, head_for};
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::image_tokens::{ids_of_text, placeholder_masks};
use crate::model::parts::qwen_vl::{Layout, QwenPatches, batch_of_patches, split_images};
use crate::nn::Builder;
use crate::tape::{Component, Tape, Tensor};

/// `MuseGlimmerForConditionalGeneration`.
pub struct MuseGlimmer {
    vision_tower: Vision,
    text: ImageText<Decoder>,
    projector: Projector,
    patches: QwenPatches,
}

/// Index of the grids of images in [`Batch::others`].
const GRID: usize = 1;

impl MuseGlimmer {
    pub fn new(b: &Builder, c: &MuseGlimmerConfig) -> Self {
        let vision_tower = b.tape().component("model.vision_tower", Component::VisionTower, || {
            Vision::new(b, &c.vision)
        });
        let mut projector = None;
        let text = ImageText::around(
            b,
            || Decoder::with_blocks(b, &c.text, &|index| block(b, &c.text, index)),
            |decoder| {
                projector = Some(Projector::new(b, c));
                let table = decoder.table().expect("pipelines are refused");
                head_for(b, table, c.text.tie_word_embeddings)
            },
        );
        Self {
            vision_tower,
            text: text.forming(Logits::ScaledAndCapped),
            projector: projector.expect("it is made before the head"),
            patches: c.vision.patches,
        }
    }

    /// `get_image_features`: patches [patches, elements of a patch] → the tokens of each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, grid: &Tensor) -> Vec<Tensor> {
        let layout = Layout::of(&run.setup, &self.patches);
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels, &layout, grid)
        });
        let features = self.projector.forward(t, &last);
        let parts = split_images(t, grid, features, &layout);
        drop(last);
        parts
    }
}

impl Forward for MuseGlimmer {
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
