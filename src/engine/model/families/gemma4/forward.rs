//! Gemma 4 around its language model (`transformers/models/{gemma4,gemma4_unified}/modeling_*.py`).

use super::audio::AudioTower;
use super::config::{Audio, Gemma4Config, SOFT_TOKENS, Vision};
use super::patches::{Embedder, PatchEmbedder};
use super::tower::VisionTower;
use crate::dtype::DType;
use crate::model::decoder::head::{Logits, formed_last_logits, formed_logits_and_loss, head_for};
use crate::model::families::gemma4_text::forward::{Gemma4Text, Given};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear, Pattern};
use crate::tape::{Component, Kind, Mask, Tape, Tensor};

/// `Gemma4ForConditionalGeneration`, `Gemma4UnifiedForConditionalGeneration`.
pub struct Gemma4 {
    language_model: Gemma4Text,
    embed_vision: Option<EmbedVision>,
    /// Run only for audio, which no setup has.
    _audio: (Option<AudioTower>, Option<Embedder>),
    lm_head: Linear,
    vision: Option<Vision>,
    caps_logits: bool,
    /// True if the tokens of an image see each other both ways.
    joins_images: bool,
    unified: bool,
}

/// Modules that make features of images.
enum EmbedVision {
    Patches(PatchEmbedder),
    Tower(VisionTower, Embedder),
}

/// Tensors that the model's forward holds until it returns.
struct Locals {
    image_mask: Tensor,
    _others: Vec<Tensor>,
}

impl Gemma4 {
    pub fn new(b: &Builder, c: &Gemma4Config) -> Self {
        let t = b.tape();
        let connector =
            |name, width| t.component(name, Component::Connector, || Embedder::new(b, width, c.text.hidden));
        let tower = match &c.vision {
            Some(Vision::Tower(tower)) => Some(t.component("model.vision_tower", Component::VisionTower, || {
                (VisionTower::new(b, tower), tower.hidden)
            })),
            _ => None,
        };
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            Gemma4Text::new(b, &c.text)
        });
        let (audio_tower, audio_width) = match c.audio {
            None => (None, None),
            Some(Audio::Frames(width)) => (None, Some(width)),
            Some(Audio::Tower(tower)) => {
                let made = t.component("model.audio_tower", Component::VisionTower, || {
                    AudioTower::new(b, &tower)
                });
                (Some(made), Some(tower.output))
            }
        };
        let embed_vision = match (&c.vision, tower) {
            (Some(Vision::Patches(patches)), _) => {
                Some(t.component("model.embed_vision", Component::Connector, || {
                    EmbedVision::Patches(PatchEmbedder::new(b, *patches, c.text.hidden))
                }))
            }
            (_, Some((tower, width))) => Some(EmbedVision::Tower(tower, connector("model.embed_vision", width))),
            _ => None,
        };
        let embed_audio = audio_width.map(|width| connector("model.embed_audio", width));
        let lm_head = head_for(b, language_model.weight(), c.text.tie_word_embeddings);
        Self {
            language_model,
            embed_vision,
            _audio: (audio_tower, embed_audio),
            lm_head,
            vision: c.vision.clone(),
            caps_logits: c.text.caps_logits,
            joins_images: c.text.joins_images,
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
        let blocks = match &batch.token_types {
            _ if !self.joins_images => None,
            Some(token_types) if !self.unified => Some(image_blocks(t, token_types)),
            None if !self.unified => None,
            token_types => {
                let none = nn::ids(t, &[embeds.size(0), embeds.size(1)], "blocks of tokens");
                Some(
                    token_types
                        .as_ref()
                        .map_or(none, |token_types| image_blocks(t, token_types)),
                )
            }
        };
        let [full, sliding] = match &blocks {
            Some(blocks) if !self.unified => [Pattern::Causal, Pattern::BlocksWithinWindow(blocks)],
            _ => self.language_model.patterns(blocks.as_ref()),
        };
        let mask = |pattern| nn::text_mask(t, run.attn, embeds, batch.positions.as_ref(), pattern);
        let full = mask(full);
        let joins = blocks.is_some() && !self.unified;
        if joins {
            // Only the length of keys is asked for (`_preprocess_mask_arguments`).
            drop(nn::padding_mask(t, embeds.size(0), embeds.size(1)));
        }
        // Only the masks of kinds of layers that there are, but where images are joined; a full layer is always there.
        let is_made = joins || self.language_model.any_slides();
        let sliding = is_made.then(|| mask(sliding)).flatten();
        ([full, sliding], blocks)
    }
}

impl EmbedVision {
    /// `get_image_features`: patches [images, patches, elements] and their places [images, patches, 2] → the features of
    /// each image, [tokens, hidden], of `valid` tokens in all.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, places: &Tensor, valid: u64) -> Vec<Tensor> {
        let (tower, embedder) = match self {
            Self::Patches(embedder) => {
                return t.component("model.embed_vision", Component::Connector, || {
                    embedder.image_features(t, pixels, places, valid)
                });
            }
            Self::Tower(tower, embedder) => (tower, embedder),
        };
        let images = pixels.size(0);
        let full = valid == images * SOFT_TOKENS;
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            tower.call(t, run, pixels, places, (valid, full))
        });
        let pooled = t.component("model.embed_vision", Component::Connector, || embedder.call(t, &last));
        t.component("model", Component::Connector, || {
            let mask = {
                let axes = t.compute(places, DType::Bool, "axes of valid patches");
                let mask = t.all_of(&axes, 2);
                drop(axes);
                mask
            };
            {
                let counts = t.empty([images], DType::I64, "valid patches of each image");
                drop(t.compute(&mask, DType::I64, "mask as integers"));
                drop(t.compute(&counts, DType::I64, "tokens of each image"));
            }
            let sizes: Vec<u64> = (0..images).map(|_| valid / images).collect();
            t.split(&pooled, 0, &sizes)
        })
    }
}

impl Forward for Gemma4 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let batch = Batch::of_text(t, run);
        let Some(vision) = self.vision.as_ref().filter(|_| run.setup.images > 0) else {
            return batch;
        };
        let images = run.images();
        let [patches, elements] = vision.patches();
        let mut batch = batch.with_token_types(t, run);
        let places = t.as_kind(Kind::Input, || nn::ids(t, &[images, patches, 2], "image_position_ids"));
        batch.arrangements = Some(places);
        batch.with_pixels(t, run, &[images, patches, elements])
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
            (&self.embed_vision, &self.vision, &batch.pixels, &batch.arrangements)
        {
            let tokens = super::tokens(vision, &run.setup);
            let parts = embedder.image_features(t, run, pixels, places, run.setup.batch * tokens);
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
