//! Gemma 3 with vision (`transformers/models/gemma3/modeling_gemma3.py`).

use super::config::Gemma3Config;
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::decoder::gemma::{GemmaText, Given, Masks};
use crate::model::decoder::head::{head_for, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::{ids_without_images, placeholder_mask};
use crate::model::parts::siglip_vision::SiglipVision;
use crate::nn::{self, Builder, Linear, Pattern, RmsNorm, RmsScale};
use crate::tape::{Component, Tape, Tensor};

/// `Gemma3ForConditionalGeneration`.
pub struct Gemma3 {
    vision_tower: SiglipVision,
    projector: Projector,
    language_model: GemmaText,
    lm_head: Linear,
    grid: PatchGrid,
    /// Tokens that the processor writes per image.
    image_tokens: u64,
    /// True if the image token has no row in the token embedding.
    token_outside_vocab: bool,
}

/// `Gemma3MultiModalProjector`: patches are averaged over squares, normalised and projected.
struct Projector {
    weight: Tensor,
    norm: RmsNorm,
    patches_per_side: u64,
    tokens_per_side: u64,
}

impl Gemma3 {
    pub fn new(b: &Builder, c: &Gemma3Config) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            SiglipVision::new(b, &c.vision)
        });
        let width = c.vision.shape.hidden;
        let projector = t.component("model.multi_modal_projector", Component::Connector, || Projector {
            weight: b.weight("mm_input_projection_weight", [width, c.text.hidden]),
            norm: RmsNorm::scaled(b, "mm_soft_emb_norm", width, RmsScale::OnePlusWeight),
            patches_per_side: c.vision.grid.side(),
            tokens_per_side: c.image_tokens.isqrt(),
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
            grid: c.vision.grid,
            image_tokens: c.image_tokens,
            token_outside_vocab: c.image_token >= c.text.vocab,
        }
    }

    /// Pixels → image features [images, tokens, width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (last, _pooled) = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels)
        });
        t.component("model.multi_modal_projector", Component::Connector, || {
            self.projector.forward(t, &last)
        })
    }

    /// Writes features over the embeddings of image tokens; returns them in the embeddings' type, and the tokens' mask.
    fn placed(&self, t: &Tape, ids: &Tensor, embeds: &mut Tensor, features: Tensor) -> (Tensor, Tensor) {
        t.component("model", Component::Connector, || {
            let narrowed = t.to_dtype(&features, embeds.dtype());
            drop(features);
            // `get_placeholder_mask` compares the features with the image tokens.
            if narrowed.size(1) != self.image_tokens {
                t.misfit(
                    "masked_scatter of image tokens",
                    &[narrowed.shape(), &[self.image_tokens]],
                );
            }
            let mask = placeholder_mask(t, ids);
            *embeds = t.place_features(embeds, &mask, &narrowed);
            (narrowed, mask)
        })
    }

    /// `create_masks_for_vision_model`.
    fn masks(&self, t: &Tape, run: &Run, embeds: &Tensor, blocks: &Tensor) -> Masks {
        let mask = |pattern| nn::pattern_mask(t, run.attn, embeds, pattern);
        let full = mask(Pattern::Blocks(blocks));
        drop(nn::padding_mask(t, embeds.size(0), embeds.size(1)));
        let sliding = self
            .language_model
            .window()
            .and_then(|_| mask(Pattern::BlocksWithinWindow(blocks)));
        Masks { full, sliding }
    }
}

impl Forward for Gemma3 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let images = run.images();
        let batch = Batch::of_text(t, run).with_token_types(t, run);
        match images {
            0 => batch,
            _ => batch.with_pixels(t, run, &[images, channels, image, image]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(token_types)) = (&batch.ids, &batch.token_types) else {
            unreachable!("a batch has ids and token types")
        };
        let known_ids = ids_without_images(t, ids, self.token_outside_vocab);
        let mut embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, &known_ids)
        });
        let placed = batch.pixels.as_ref().map(|pixels| {
            let features = self.image_features(t, run, pixels);
            self.placed(t, ids, &mut embeds, features)
        });
        let h = t.component("model.language_model", Component::LanguageModel, || {
            let blocks = image_blocks(t, token_types);
            let given = Given {
                masks: Some(self.masks(t, run, &embeds, &blocks)),
                ..Given::default()
            };
            let h = self.language_model.forward(t, run, embeds, given);
            drop(blocks);
            h
        });
        let (features, image_mask) = placed.unzip();
        drop((image_mask, known_ids));
        let mut output = logits_and_loss(t, &self.lm_head, h, batch);
        output.held.extend(features);
        output
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, (&self.lm_head, false), ids))
    }
}

/// `get_block_sequence_ids_for_mask`: the index of the image that a token belongs to, or -1.
fn image_blocks(t: &Tape, token_types: &Tensor) -> Tensor {
    let [batch, seq] = [token_types.size(0), token_types.size(1)];
    let is_image = t.compute(token_types, DType::Bool, "image tokens");
    let was_image = t.empty([batch, seq + 1], DType::Bool, "image tokens, one later");
    let starts = {
        let negated = t.compute(token_types, DType::Bool, "no image token before");
        let starts = t.compute(token_types, DType::Bool, "first tokens of images");
        drop(negated);
        starts
    };
    let groups = {
        let narrow = t.compute(token_types, DType::I32, "first tokens as integers");
        let counted = t.running_sum(&narrow);
        drop(narrow);
        t.compute(&counted, DType::I64, "numbers of images")
    };
    let minus_one = nn::ids(t, &[], "-1");
    let blocks = t.compute(token_types, DType::I64, "blocks of tokens");
    drop((minus_one, is_image, was_image, starts, groups));
    blocks
}

impl Projector {
    fn forward(&self, t: &Tape, vision: &Tensor) -> Tensor {
        let [images, width, side] = [vision.size(0), vision.last(), self.patches_per_side];
        let planes = {
            let transposed = t.transpose(vision, 1, 2);
            t.contiguous(&t.reshape(&transposed, [images, width, side, side]))
        };
        let pooled = {
            let pooled = t.avg_pool2d(&planes, side / self.tokens_per_side);
            let flat = t.view(&pooled, [images, width, pooled.size(2) * pooled.size(3)]);
            t.transpose(&flat, 1, 2)
        };
        let normed = self.norm.call(t, &pooled);
        let projected = t.matmul(&normed, &self.weight);
        t.to_dtype(&projected, vision.dtype())
    }
}
