//! Gemma 4 around its language model (`transformers/models/gemma4_unified/modeling_gemma4_unified.py`).

use super::config::{Gemma4Config, PatchEmbedding, SOFT_TOKENS};
use super::vision::{Embedder, PatchEmbedder};
use crate::dtype::DType;
use crate::model::decoder::head::{Logits, formed_last_logits, formed_logits_and_loss, head_for};
use crate::model::families::gemma4_text::forward::{Gemma4Text, Given};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Kind, Mask, Tape, Tensor};

/// `Gemma4ForConditionalGeneration` without towers, `Gemma4UnifiedForConditionalGeneration`.
pub struct Gemma4 {
    language_model: Gemma4Text,
    embed_vision: Option<PatchEmbedder>,
    /// Runs only for audio, which no setup has.
    _embed_audio: Option<Embedder>,
    lm_head: Linear,
    vision: Option<PatchEmbedding>,
    caps_logits: bool,
    /// True if the tokens of an image see each other both ways.
    joins_images: bool,
    unified: bool,
}

/// Tensors that the model's forward holds until it returns.
struct Locals {
    image_mask: Tensor,
    _others: Vec<Tensor>,
}

impl Gemma4 {
    pub fn new(b: &Builder, c: &Gemma4Config) -> Self {
        let t = b.tape();
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            Gemma4Text::new(b, &c.text)
        });
        let embed_vision = c.vision.map(|vision| {
            t.component("model.embed_vision", Component::Connector, || {
                PatchEmbedder::new(b, vision, c.text.hidden)
            })
        });
        let _embed_audio = c.audio.map(|width| {
            t.component("model.embed_audio", Component::Connector, || {
                Embedder::new(b, width, c.text.hidden)
            })
        });
        let lm_head = head_for(b, language_model.weight(), c.text.tie_word_embeddings);
        Self {
            language_model,
            embed_vision,
            _embed_audio,
            lm_head,
            vision: c.vision,
            caps_logits: c.text.caps_logits,
            joins_images: c.text.joins_images && c.unified,
            unified: c.unified,
        }
    }

    /// Masks of tokens that are no text, and the ids with padding in their place.
    fn text_ids(t: &Tape, ids: &Tensor) -> (Locals, Tensor) {
        let [image_mask, video_mask, audio_mask] =
            ["image tokens", "video tokens", "audio tokens"].map(|name| t.compute(ids, DType::Bool, name));
        let either = t.compute(ids, DType::Bool, "image or video tokens");
        let multimodal = t.compute(ids, DType::Bool, "tokens that are no text");
        drop(either);
        let known = {
            let copy = t.clone_of(ids);
            let padding = nn::ids(t, &[], "padding token");
            let known = t.compute(&copy, DType::I64, "ids of text");
            drop((padding, copy));
            known
        };
        let locals = Locals {
            image_mask,
            _others: vec![video_mask, audio_mask, multimodal],
        };
        (locals, known)
    }

    /// Writes the features of images over the embeddings of their tokens, `marked` in all.
    fn merge(t: &Tape, embeds: Tensor, mask: &Tensor, features: &Tensor, marked: u64) -> (Tensor, Tensor) {
        let count = t.empty([], DType::I64, "number of image tokens");
        drop(t.compute(mask, DType::I64, "mask as integers"));
        let mask = t.unsqueeze(mask, 2);
        let elements = marked * embeds.last();
        drop(t.in_masked_select(&embeds, &mask, elements, || {
            t.empty([elements], embeds.dtype(), "embeddings of image tokens")
        }));
        (t.place_features(&embeds, &mask, features), count)
    }

    /// `create_masks_for_generate`, in which the tokens of an image may see each other both ways.
    fn masks(&self, t: &Tape, run: &Run, embeds: &Tensor, batch: &Batch) -> ([Option<Mask>; 2], Option<Tensor>) {
        let blocks = self.joins_images.then(|| {
            let none = nn::ids(t, &[embeds.size(0), embeds.size(1)], "blocks of tokens");
            let blocks = match &batch.token_types {
                Some(token_types) => image_blocks(t, token_types),
                None => none.clone(),
            };
            drop(none);
            blocks
        });
        let [full, sliding] = self.language_model.patterns(blocks.as_ref());
        let mask = |pattern| nn::text_mask(t, run.attn, embeds, batch.positions.as_ref(), pattern);
        let full = mask(full);
        // Only the masks of kinds of layers that there are; a full layer is always there.
        let sliding = self.language_model.any_slides().then(|| mask(sliding)).flatten();
        ([full, sliding], blocks)
    }
}

impl Forward for Gemma4 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let batch = Batch::of_text(t, run);
        let Some(vision) = self.vision else {
            return batch;
        };
        let images = run.setup.batch * run.setup.images;
        let mut batch = batch.with_token_types(t, run);
        let places = t.as_kind(Kind::Input, || {
            nn::ids(t, &[images, SOFT_TOKENS, 2], "image_position_ids")
        });
        batch.arrangements = Some(places);
        batch.with_pixels(t, run, &[images, SOFT_TOKENS, vision.elements()])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let (locals, known) = t.component("model", Component::Connector, || Self::text_ids(t, ids));
        let (mut embeds, looked_up, unused) = t.component("model.language_model", Component::LanguageModel, || {
            let embeds = self.language_model.embed(t, run, &known);
            // Embeddings with padding in place of images, which are looked at only without ids.
            let unused = (!self.unified && self.language_model.has_inputs())
                .then(|| t.compute(&embeds, embeds.dtype(), "embeddings of text"));
            (embeds, self.language_model.look_up_inputs(t, &known), unused)
        });
        let mut held = Vec::new();
        if let (Some(embedder), Some(vision), Some(pixels), Some(places)) =
            (&self.embed_vision, self.vision, &batch.pixels, &batch.arrangements)
        {
            let tokens = super::tokens(vision, &run.setup);
            let parts = t.component("model.embed_vision", Component::Connector, || {
                embedder.image_features(t, pixels, places, run.setup.batch * tokens)
            });
            t.component("model", Component::Connector, || {
                let all = t.cat(&parts.iter().collect::<Vec<_>>(), 0);
                let features = t.to_dtype(&all, embeds.dtype());
                drop((all, parts));
                let marked = run.setup.batch * tokens;
                let (merged, count) = Self::merge(t, embeds.clone(), &locals.image_mask, &features, marked);
                embeds = merged;
                held.extend([features, count]);
            });
        }
        let h = t.component("model.language_model", Component::LanguageModel, || {
            let position_ids = match &batch.positions {
                Some(packed) => packed.clone(),
                None => nn::position_ids(t, &embeds),
            };
            let (masks, blocks) = self.masks(t, run, &embeds, batch);
            let given = Given {
                looked_up: looked_up.clone(),
                packed: None,
                position_ids: Some(position_ids),
                masks: Some(masks),
            };
            let h = self.language_model.forward(t, run, embeds.clone(), given);
            drop(blocks);
            h
        });
        drop((unused, looked_up, known, locals, embeds));
        held.truncate(1);
        let mut output = formed_logits_and_loss(t, &self.lm_head, h, batch, Logits::capped(self.caps_logits));
        output.held.extend(held);
        output
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = self.language_model.forward_ids(t, run, ids, None);
        Some(formed_last_logits(
            t,
            &self.lm_head,
            &h,
            Logits::capped(self.caps_logits),
        ))
    }
}

/// `get_block_sequence_ids_for_mask`: the index of the image that a token belongs to, or -1.
fn image_blocks(t: &Tape, token_types: &Tensor) -> Tensor {
    let marks = |name| t.compute(token_types, DType::Bool, name);
    let is_vision = {
        let kinds = [marks("image tokens"), marks("video tokens")];
        let is_vision = marks("image or video tokens");
        drop(kinds);
        is_vision
    };
    let was_vision = marks("image tokens, one later");
    let starts = {
        let negated = marks("no image token before");
        let starts = marks("first tokens of images");
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
    drop((minus_one, groups, starts, was_vision, is_vision));
    blocks
}
