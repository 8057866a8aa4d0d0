//! EXAONE 4.5 (`transformers/models/exaone4_5/modeling_exaone4_5.py`).

use super::config::Exaone45Config;
use crate::model::decoder::stack::Decoder;
use crate::model::families::qwen2_5_vl::Qwen25Vision;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{ImageText, Placed};
use crate::model::parts::image_tokens::placeholder_masks;
use crate::model::parts::qwen_vl::{
    Layout, QwenPatches, VisionOutput, VisionTower, batch_of_patches, joined, split_images,
};
use crate::nn::Builder;
use crate::tape::{Component, Tape, Tensor};

/// `Exaone4_5_ForConditionalGeneration`.
pub struct Exaone45 {
    visual: Qwen25Vision,
    text: ImageText<Decoder>,
    patches: QwenPatches,
}

impl Exaone45 {
    pub fn new(b: &Builder, c: &Exaone45Config) -> Self {
        let visual = b.tape().component("model.visual", Component::VisionTower, || {
            Qwen25Vision::new(b, &c.vision)
        });
        Self {
            visual,
            text: ImageText::new(b, &c.text),
            patches: c.vision.patches,
        }
    }

    /// Writes the tokens of images over the embeddings.
    fn place(&self, t: &Tape, run: &Run, batch: &Batch, ids: &Tensor, embeds: &Tensor) -> Placed {
        let (Some(pixels), Some(grid)) = (&batch.pixels, batch.others.last()) else {
            unreachable!("a batch has pixels and the grids of images")
        };
        let layout = Layout::of(&run.setup, &self.patches);
        let VisionOutput { last, merged, .. } = t.component("model.visual", Component::VisionTower, || {
            self.visual.forward(t, run, pixels, &layout, grid)
        });
        let parts = split_images(t, grid, merged, &layout);
        drop(last);
        let all = joined(t, parts, embeds.dtype());
        let (mask, video_mask) = placeholder_masks(t, ids);
        Placed {
            embeds: t.place_features(embeds, &mask, &all),
            held: [Some(mask), video_mask, Some(all)].into_iter().flatten().collect(),
            shown: None,
        }
    }
}

impl Forward for Exaone45 {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        batch_of_patches(t, run, &self.patches, |_| None)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text
            .loss_around(t, run, batch, |ids, embeds| self.place(t, run, batch, ids, &embeds))
    }
}
