//! GIT (`transformers/models/git/modeling_git.py`).

use super::config::GitConfig;
use crate::dtype::DType;
use crate::model::families::blip::{BlipTextEmbeddings, BlipTextEncoder, BlipTextForm};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::clip_vision::{BLOCKS, ClipVision};
use crate::model::parts::encoder::BlockForm;
use crate::nn::{self, Builder, LayerNorm, Linear, Pattern};
use crate::setup::Attention;
use crate::tape::{Component, Tape, Tensor};

/// Form of the tower's blocks: CLIP's, but heads are split after each projection.
const TOWER: BlockForm = BlockForm {
    splits_late: false,
    ..BLOCKS
};

/// `GitForCausalLM`.
pub struct Git {
    embeddings: BlipTextEmbeddings,
    image_encoder: ClipVision,
    blocks: BlipTextEncoder,
    projection: Linear,
    projection_norm: LayerNorm,
    output: Linear,
    /// Pixel values of one image.
    image: [u64; 3],
}

impl Git {
    pub fn new(b: &Builder, c: &GitConfig) -> Self {
        let t = b.tape();
        let embeddings = t.component("git", Component::LanguageModel, || {
            BlipTextEmbeddings::new(b, &c.text, "GIT")
        });
        let image_encoder = t.component("git.image_encoder.vision_model", Component::VisionTower, || {
            ClipVision::with_blocks(b, &c.vision, &TOWER)
        });
        let blocks = t.component("git", Component::LanguageModel, || {
            let form = BlipTextForm {
                crosses: false,
                returns_undropped: false,
            };
            BlipTextEncoder::new(b, &c.text.blocks, form)
        });
        let hidden = c.text.blocks.shape.hidden;
        let (projection, projection_norm) = t.component(PROJECTION, Component::Connector, || {
            (
                Linear::new(b, "0", c.vision.hidden, hidden, true),
                LayerNorm::new(b, "1", hidden),
            )
        });
        let output = t.component("", Component::Head, || match c.tie_word_embeddings {
            true => Linear::tied(b, "output", embeddings.table()).with_bias(b, "output", c.text.vocab),
            false => Linear::new(b, "output", hidden, c.text.vocab, true),
        });
        Self {
            embeddings,
            image_encoder,
            blocks,
            projection,
            projection_norm,
            output,
            image: [c.vision.channels, c.vision.image, c.vision.image],
        }
    }

    /// Pixels → image features, [samples, positions, hidden], and the tower's output, which the model holds too.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Tensor) {
        let mut run = run.clone();
        run.attn = Attention::Eager;
        let seen = t.component("git.image_encoder.vision_model", Component::VisionTower, || {
            self.image_encoder.all_normed(t, &run, pixels)
        });
        let features = t.component(PROJECTION, Component::Connector, || {
            let projected = self.projection.call(t, &seen);
            let normed = self.projection_norm.call(t, &projected);
            drop(projected);
            // `repeat(1, 1, 1)`
            t.contiguous_copy(&normed)
        });
        (features, seen)
    }

    /// `GitModel`: the hidden states of image and text.
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, pixels: &Tensor) -> Tensor {
        let (text, text_types) = t.component("git", Component::LanguageModel, || {
            let embeds = self.embeddings.forward(t, run, ids);
            let types = t.compute(&embeds, DType::I32, "token types of each element");
            (embeds, types)
        });
        let (features, seen) = self.image_features(t, run, pixels);
        t.component("git", Component::LanguageModel, || {
            let embeds = t.cat(&[&features, &text], 1);
            drop(text);
            let [batch, seq] = [embeds.size(0), embeds.size(1)];
            let image_types = t.compute(&features, DType::I32, "image token types of each element");
            let types = t.empty([batch, seq], DType::I32, "token types");
            drop(text_types);
            let padding = {
                let ones = nn::ids(t, &[batch, features.size(1)], "mask of the image");
                let padding = nn::ids(t, &[batch, seq], "mask of image and text");
                drop(ones);
                padding
            };
            let groups = image_groups(t, &types);
            let mask = nn::pattern_mask(t, Attention::Eager, &embeds, Pattern::Blocks(&groups));
            let h = self.blocks.forward(t, run, embeds, (mask, None));
            drop((groups, padding, types, image_types, features, seen));
            h
        })
    }
}

/// Module of the projection.
const PROJECTION: &str = "git.visual_projection.visual_projection";

/// `group_ids`: 0 for positions of the image, -1 for text.
fn image_groups(t: &Tape, types: &Tensor) -> Tensor {
    let initial = t.compute(types, DType::I64, "group ids of text");
    let is_image = t.compute(types, DType::Bool, "image tokens");
    let (zero, minus_one) = (nn::ids(t, &[], "0"), nn::ids(t, &[], "-1"));
    let groups = t.compute(types, DType::I64, "group ids");
    drop((zero, minus_one, is_image, initial));
    groups
}

impl Forward for Git {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, height, width] = self.image;
        Batch::of_text(t, run).with_pixels(t, run, &[run.setup.batch, channels, height, width])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let h = self.hidden(t, run, ids, pixels);
        t.component("", Component::Head, || {
            let output = |h: &Tensor| self.output.call(t, h);
            let Some(labels) = &batch.labels else {
                return Output {
                    loss: output(&t.slice(&h, 1, 1)),
                    held: Vec::new(),
                };
            };
            let logits = output(&h);
            let loss = t.scope("loss", || nn::shifted_lm_loss(t, &logits, labels, DType::F32));
            drop(h);
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}
