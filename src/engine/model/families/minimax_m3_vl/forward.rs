//! MiniMax-M3 (`transformers/models/minimax_m3_vl/modeling_minimax_m3_vl.py`).

use super::config::MiniMaxM3VlConfig;
use super::vision::{M3Vision, Projector};
use crate::dtype::DType;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{ImageText, Placed};
use crate::model::parts::qwen_vl::{Layout, QwenPatches, batch_of_patches};
use crate::nn::{Builder, ids};
use crate::tape::{Component, Tape, Tensor};

/// `MiniMaxM3SparseForConditionalGeneration`.
pub struct MiniMaxM3Vl {
    vision_tower: M3Vision,
    projector: Projector,
    text: ImageText<Decoder>,
    patches: QwenPatches,
}

impl MiniMaxM3Vl {
    pub fn new(b: &Builder, c: &MiniMaxM3VlConfig) -> Self {
        let t = b.tape();
        Self {
            vision_tower: t.component("model.vision_tower", Component::VisionTower, || {
                M3Vision::new(b, &c.vision)
            }),
            projector: t.component("model.multi_modal_projector", Component::Connector, || {
                Projector::new(b, c)
            }),
            text: ImageText::new(b, &c.text),
            patches: c.vision.patches,
        }
    }

    /// `get_image_features`: patches [patches, elements of a patch] → [tokens, text width].
    fn features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let layout = Layout::of(&run.setup, &self.patches);
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels, &layout)
        });
        t.component("model.multi_modal_projector", Component::Connector, || {
            self.projector.forward(t, &t.squeeze(&last, 0))
        })
    }
}

/// `get_placeholder_mask`: masks of image and video tokens, [batch, seq, hidden].
fn placeholder_masks(t: &Tape, token_ids: &Tensor, embeds: &Tensor, features: Option<&Tensor>) -> [Tensor; 2] {
    let masks = ["image token mask", "video token mask"].map(|name| t.compute(token_ids, DType::Bool, name));
    let count = |mask: &Tensor| {
        let sum = ids(t, &[], "number of tokens");
        drop(t.compute(mask, DType::I64, "mask as integers"));
        sum
    };
    let expanded = |mask: &Tensor| t.expand(&t.unsqueeze(mask, 2), *embeds.shape());
    let _images = count(&masks[0]);
    let of_images = expanded(&masks[0]);
    if let Some(features) = features {
        t.in_masked_select(embeds, &of_images, features.numel(), || {
            drop(t.empty([features.numel()], embeds.dtype(), "index"));
        });
    }
    let _videos = count(&masks[1]);
    [of_images, expanded(&masks[1])]
}

impl Forward for MiniMaxM3Vl {
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
        self.text.loss_around(t, run, batch, |token_ids, mut embeds| {
            let features = batch.pixels.as_ref().map(|pixels| {
                let features = self.features(t, run, pixels);
                t.to_dtype(&features, embeds.dtype())
            });
            t.component("model", Component::Connector, || {
                let masks = placeholder_masks(t, token_ids, &embeds, features.as_ref());
                if let Some(features) = &features {
                    embeds = t.place_features(&embeds, &masks[0], features);
                }
                Placed {
                    embeds,
                    held: masks.into(),
                    shown: features,
                }
            })
        })
    }
}
