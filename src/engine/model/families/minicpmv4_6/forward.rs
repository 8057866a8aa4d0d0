//! MiniCPM-V 4.6 (`transformers/models/minicpmv4_6/modeling_minicpmv4_6.py`).

use super::config::MiniCpmV46Config;
use super::merger::Merger;
use super::vision::Vision;
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::delta_decoder::DeltaDecoder;
use crate::model::parts::image_text::{ImageText, Placed};
use crate::model::parts::image_tokens::expanded_placeholder_mask;
use crate::model::parts::qwen_vl::{Layout, QwenPatches};
use crate::nn::Builder;
use crate::tape::{Component, Kind, Tape, Tensor};

/// `MiniCPMV4_6ForConditionalGeneration`.
pub struct MiniCpmV46 {
    vision_tower: Vision,
    text: ImageText<DeltaDecoder>,
    merger: Merger,
    patches: QwenPatches,
    /// True if the tower halves the sides of images.
    halves: bool,
    has_images: bool,
}

impl MiniCpmV46 {
    pub fn new(b: &Builder, c: &MiniCpmV46Config) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            Vision::new(b, &c.vision)
        });
        let mut merger = None;
        let text = ImageText::around(
            b,
            || DeltaDecoder::new(b, &c.text),
            |model| {
                merger = Some(t.component("model.merger", Component::Connector, || Merger::new(b, c)));
                model.head(b, &c.text)
            },
        );
        Self {
            vision_tower,
            text,
            merger: merger.expect("it is made before the head"),
            patches: c.vision.tower.patches,
            halves: c.vision.merges,
            has_images: c.has_images,
        }
    }

    /// `get_image_features`: the tower's output, and the tokens of each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, sizes: &Tensor) -> (Tensor, Vec<Tensor>) {
        let mut layout = Layout::of(&run.setup, &self.patches);
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels, &layout, sizes)
        });
        let halved = self.halves.then(|| t.compute(sizes, sizes.dtype(), "floor_divide"));
        if self.halves {
            layout = layout.reduced(2);
        }
        let tokens = t.component("model.merger", Component::Connector, || {
            self.merger.forward(t, &last, &layout, sizes)
        });
        drop(halved);
        (last, tokens)
    }

    /// Writes the tokens of images over the embeddings.
    fn place(&self, t: &Tape, run: &Run, batch: &Batch, ids: &Tensor, embeds: Tensor) -> Placed {
        let (Some(pixels), Some(sizes), true) = (&batch.pixels, batch.others.last(), self.has_images) else {
            return Placed {
                embeds,
                held: Vec::new(),
                shown: None,
            };
        };
        let (last, tokens) = self.image_features(t, run, pixels, sizes);
        t.component("model", Component::Connector, || {
            let all = {
                let mut joined = t.cat(&tokens.iter().collect::<Vec<_>>(), 0);
                joined = t.to_dtype(&joined, embeds.dtype());
                // `repeat` for the beams of a generation, of which there is one.
                t.contiguous_copy(&joined)
            };
            let mask = expanded_placeholder_mask(t, ids, &embeds, &all);
            let embeds = t.place_features(&embeds, &mask, &all);
            let mut held = tokens;
            held.extend([last, all, mask]);
            Placed {
                embeds,
                held,
                shown: None,
            }
        })
    }
}

impl Forward for MiniCpmV46 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let layout = Layout::of(&run.setup, &self.patches);
        let mut batch = Batch::of_text(t, run);
        let sizes = t.as_kind(Kind::Input, || {
            t.empty([layout.images().len() as u64, 2], DType::I32, "target_sizes")
        });
        batch.others.push(sizes);
        let QwenPatches { channels, patch, .. } = self.patches;
        batch.with_pixels(t, run, &[1, channels, patch, patch * layout.patches()])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text
            .loss_around(t, run, batch, |ids, embeds| self.place(t, run, batch, ids, embeds))
    }
}
