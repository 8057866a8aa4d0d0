//! PaliGemma 1 and 2 (`transformers/models/paligemma/modeling_paligemma.py`).

use super::config::PaliGemmaConfig;
use crate::dtype::DType;
use crate::model::decoder::gemma::{GemmaText, Given, Masks};
use crate::model::decoder::head::{head_for, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::{ids_without_images, placeholder_mask};
use crate::model::parts::siglip_vision::SiglipVision;
use crate::nn::{self, Builder, Linear, Pattern};
use crate::tape::{Component, Tape, Tensor};

/// `PaliGemmaForConditionalGeneration`.
pub struct PaliGemma {
    vision_tower: SiglipVision,
    projector: Linear,
    language_model: GemmaText,
    lm_head: Linear,
    pixels: [u64; 3],
    /// True if the image token has no row in the token embedding.
    token_outside_vocab: bool,
}

impl PaliGemma {
    pub fn new(b: &Builder, c: &PaliGemmaConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            SiglipVision::new(b, &c.vision)
        });
        let projector = t.component("model.multi_modal_projector", Component::Connector, || {
            Linear::new(b, "linear", c.vision.shape.hidden, c.projection, true)
        });
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            GemmaText::new(b, &c.text)
        });
        let lm_head = head_for(b, language_model.weight(), c.text.tie_word_embeddings);
        Self {
            vision_tower,
            projector,
            language_model,
            lm_head,
            pixels: [c.vision.grid.channels, c.vision.grid.image, c.vision.grid.image],
            token_outside_vocab: c.image_token >= c.text.vocab,
        }
    }

    /// Pixels → image features [images, patches, width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (last, _pooled) = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels)
        });
        t.component("model.multi_modal_projector", Component::Connector, || {
            self.projector.call(t, &last)
        })
    }

    /// Makes the masks. The positions of the prefix of image and prompt see each other both ways; a training example
    /// without a marked suffix is all prefix.
    fn masks(&self, t: &Tape, run: &Run, embeds: &Tensor, token_types: &Tensor) -> (Tensor, Masks) {
        let blocks = prefix_blocks(t, token_types);
        let mask = |pattern| nn::pattern_mask(t, run.attn, embeds, pattern);
        let masks = Masks {
            full: mask(Pattern::Blocks(&blocks)),
            sliding: self
                .language_model
                .window()
                .and_then(|_| mask(Pattern::SlidingOrBlocks(&blocks))),
        };
        (blocks, masks)
    }
}

/// `torch.where(token_type_ids == 0, 0, -1)`.
fn prefix_blocks(t: &Tape, token_types: &Tensor) -> Tensor {
    let prefix = t.compute(token_types, DType::Bool, "prefix mask");
    let numbers = [nn::ids(t, &[], "0"), nn::ids(t, &[], "-1")];
    let blocks = t.compute(token_types, DType::I64, "blocks of tokens");
    drop((numbers, prefix));
    blocks
}

impl Forward for PaliGemma {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, height, width] = self.pixels;
        Batch::of_text(t, run)
            .with_token_types(t, run)
            .with_pixels(t, run, &[run.images(), channels, height, width])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels), Some(token_types)) = (&batch.ids, &batch.pixels, &batch.token_types) else {
            unreachable!("a batch has ids, token types and pixels")
        };
        let known_ids = ids_without_images(t, ids, self.token_outside_vocab);
        let mut embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, &known_ids)
        });
        let position_ids = {
            let from_zero = nn::position_ids(t, &embeds);
            t.compute(&from_zero, DType::I64, "position_ids from one")
        };
        let mut features = self.image_features(t, run, pixels);
        let image_mask = t.component("model", Component::Connector, || {
            features = t.to_dtype(&features, embeds.dtype());
            let mask = placeholder_mask(t, ids);
            embeds = t.place_features(&embeds, &mask, &features);
            mask
        });
        let h = t.component("model.language_model", Component::LanguageModel, || {
            let (blocks, masks) = self.masks(t, run, &embeds, token_types);
            let given = Given {
                position_ids: Some(position_ids),
                masks: Some(masks),
                packed: None,
            };
            let h = self.language_model.forward(t, run, embeds, given);
            drop(blocks);
            h
        });
        drop((image_mask, known_ids));
        let mut output = logits_and_loss(t, &self.lm_head, h, batch);
        output.held.push(features);
        output
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, (&self.lm_head, false), ids))
    }
}
