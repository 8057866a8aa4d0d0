//! VideoLLaMA 3 (`transformers/models/video_llama_3/modeling_video_llama_3.py`).

use super::config::VideoLlama3Config;
use super::vision::Vision;
use crate::model::config::Activation;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::image_tokens::placeholder_masks;
use crate::model::parts::qwen_vl::{Layout, QwenPatches, batch_of_patches};
use crate::nn::{self, Builder, Linear, ids};
use crate::tape::{Component, Tape, Tensor};

/// `VideoLlama3ForConditionalGeneration`.
pub struct VideoLlama3<T> {
    vision_model: Vision,
    /// `projector.readout`.
    readout: [Linear; 2],
    text: ImageText<T>,
    patches: QwenPatches,
}

/// Index of the grids of images in [`Batch::others`].
const GRID: usize = 1;

impl<T: Text> VideoLlama3<T> {
    pub fn new(b: &Builder, c: &VideoLlama3Config) -> Self {
        let t = b.tape();
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            Vision::new(b, &c.vision)
        });
        let (hidden, out) = (c.vision.shape.hidden, c.text.hidden);
        let readout = t.component("model.projector.readout", Component::Connector, || {
            [
                Linear::new(b, "0", hidden, out, true),
                Linear::new(b, "2", out, out, true),
            ]
        });
        Self {
            vision_model,
            readout,
            text: ImageText::new(b, &c.text),
            patches: c.vision.patches,
        }
    }

    /// `get_image_features`: patches [patches, elements of a patch] → the tokens of each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, grid: &Tensor) -> Vec<Tensor> {
        let layout = Layout::of(&run.setup, &self.patches);
        let last = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels, &layout, grid)
        });
        let embeds = t.component("model.projector.readout", Component::Connector, || {
            let [first, second] = &self.readout;
            let mut x = first.call(t, &last);
            x = nn::activate(t, Activation::Gelu, x);
            second.call(t, &x)
        });
        let _split_sizes = {
            let of_images = |name| ids(t, &[layout.images().len() as u64], name);
            let (_patches, _merged) = (of_images("prod"), of_images("pow"));
            of_images("floor_divide")
        };
        let lengths: Vec<u64> = layout.images().iter().map(|image| layout.tokens_of(image)).collect();
        t.split(&embeds, 0, &lengths)
    }
}

impl<T: Text> Forward for VideoLlama3<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        batch_of_patches(t, run, &self.patches, |layout| {
            Some(ids(t, &[layout.images().len() as u64], "image_merge_sizes"))
        })
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss_with_mask(t, run, batch, placeholder_masks, |pixels| {
            Features::Parts(self.image_features(t, run, pixels, &batch.others[GRID]))
        })
    }
}
