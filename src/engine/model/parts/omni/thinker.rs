//! `Qwen2_5OmniThinkerForConditionalGeneration` and `Qwen3OmniMoeThinkerForConditionalGeneration`.

use super::audio::AudioConfig;
use super::positions::PositionIds;
use crate::dtype::DType;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::{check_count, count_tokens};
use crate::model::parts::qwen_vl::{
    Deepstack, Layout, MropePositions, QwenPatches, VisionOutput, VisionTower, add_at_images, batch_of_patches, joined,
    split_images,
};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// Configurations of a thinker's parts.
pub(crate) struct ThinkerParts<'a> {
    /// The audio encoder.
    pub audio: &'a AudioConfig,
    /// Patches of the vision tower.
    pub patches: QwenPatches,
    /// The language model.
    pub text: &'a DecoderConfig,
    /// Form of its positions.
    pub positions: PositionIds,
}

/// A model of text and images, with an audio encoder that is not run.
pub(crate) struct Thinker<V> {
    visual: V,
    model: Decoder,
    lm_head: Option<Linear>,
    patches: QwenPatches,
    positions: PositionIds,
    /// Table of positions of the audio encoder.
    _sound: Tensor,
}

impl<V: VisionTower> Thinker<V> {
    /// Makes the parameters, those of the vision tower by `visual`.
    pub fn new(b: &Builder, parts: &ThinkerParts<'_>, visual: impl FnOnce() -> V) -> Self {
        let t = b.tape();
        let _sound = t.component("audio_tower", Component::LanguageModel, || parts.audio.make(b));
        let visual = t.component("visual", Component::VisionTower, visual);
        let model = t.component("model", Component::LanguageModel, || Decoder::new(b, parts.text));
        let lm_head = model.head(b, parts.text);
        Self {
            visual,
            model,
            lm_head,
            patches: parts.patches,
            positions: parts.positions,
            _sound,
        }
    }

    /// `get_image_features`: features of all images in the type of `embeds`, and those of inner blocks.
    fn features(&self, t: &Tape, run: &Run, (pixels, grid): (&Tensor, &Tensor), layout: &Layout) -> VisionOutput {
        t.component("visual", Component::VisionTower, || {
            self.visual.forward(t, run, pixels, layout, grid)
        })
    }

    /// Token embeddings → last hidden states, for samples without images.
    fn hidden_of_text(&self, t: &Tape, run: &Run, batch: &Batch, ids: &Tensor) -> (Tensor, Vec<Tensor>) {
        let embeds = self.embeds(t, run, ids);
        let (positions, deltas) = self.positions.of_text(t, &batch.others[PADDING]);
        run.keep_rope_deltas(t, deltas);
        let h = self.hidden(t, run, embeds.clone(), &positions, (0, &|_, _, h| h));
        (h, vec![embeds, positions])
    }

    /// Token and image embeddings → last hidden states, and the locals of the forward, which live until it returns.
    fn hidden_of_images(
        &self,
        t: &Tape,
        run: &Run,
        (ids, pixels, grid): (&Tensor, &Tensor, &Tensor),
    ) -> (Tensor, Vec<Tensor>) {
        let layout = Layout::of(&run.setup, &self.patches);
        let mut embeds = self.embeds(t, run, ids);
        let VisionOutput {
            last,
            merged,
            deepstack,
        } = self.features(t, run, (pixels, grid), &layout);
        let parts = split_images(t, grid, merged, &layout);
        let outputs = V::OUTPUT_IS_KEPT.then(|| (last.clone(), parts.clone()));
        drop(last);
        let images = joined(t, parts, embeds.dtype());
        let (mask, sounds) = masks(t, ids);
        embeds = t.place_features(&embeds, &mask, &images);
        let (positions, deltas) = self.positions.of_images(t, &layout);
        run.keep_rope_deltas(t, deltas);
        let add_features = |t: &Tape, i: usize, h: Tensor| match deepstack.get(i) {
            Some(features) => add_at_images(t, h, &mask, features),
            None => h,
        };
        let h = self.hidden(t, run, embeds.clone(), &positions, (deepstack.len(), &add_features));
        let mut held = vec![embeds, positions, images, mask.clone(), sounds];
        if let Some((last, parts)) = outputs {
            held.push(last);
            held.extend(parts);
        }
        held.extend(deepstack.iter().cloned());
        (h, held)
    }

    fn embeds(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        t.component("model", Component::LanguageModel, || self.model.embed(t, run, ids))
    }

    fn hidden(&self, t: &Tape, run: &Run, embeds: Tensor, axes: &Tensor, features: Deepstack<'_>) -> Tensor {
        let positions = MropePositions {
            axes,
            layout: V::MROPE,
            of_layers: None,
        };
        t.component("model", Component::LanguageModel, || {
            self.model.forward_multimodal(t, run, embeds, positions, features)
        })
    }
}

/// `get_placeholder_mask`: masks of the image tokens, [batch, seq, 1], and of those of sounds.
fn masks(t: &Tape, ids: &Tensor) -> (Tensor, Tensor) {
    let mask = |name| t.compute(ids, DType::Bool, name);
    let (images, videos, sounds) = (
        mask("image token mask"),
        mask("video token mask"),
        mask("audio token mask"),
    );
    let image_count = count_tokens(t, &images);
    check_count(t);
    let video_count = count_tokens(t, &videos);
    drop((image_count, video_count, videos));
    (t.unsqueeze(&images, 2), sounds)
}

/// Checks that a configuration names the token before an image, which every forward reads.
pub(crate) fn check_tokens(s: &Section) -> Result<(), ModelError> {
    s.required(
        "vision_start_token_id",
        "a token id, without which transformers' forward stops; published models have 151652",
    )
}

/// Checks that the sections of multimodal rope, which follow each other, fill half a head.
pub(crate) fn sections(s: &Section, text: &DecoderConfig) -> Result<(), ModelError> {
    let sections = text.rope.mrope_section.clone().unwrap_or_else(|| vec![16, 24, 24]);
    s.equal(
        (
            "sum of text_config.rope_parameters.mrope_section",
            sections.iter().sum(),
        ),
        ("head_dim ÷ 2 of text_config", text.head_dim / 2),
    )
}

/// Indices in [`Batch::others`].
const PADDING: usize = 0;
const GRID: usize = 1;

impl<V: VisionTower> Forward for Thinker<V> {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        match run.setup.images {
            0 => Batch::of_text(t, run),
            _ => batch_of_patches(t, run, &self.patches, |_| None),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let (h, locals) = match &batch.pixels {
            None => self.hidden_of_text(t, run, batch, ids),
            Some(pixels) => self.hidden_of_images(t, run, (ids, pixels, &batch.others[GRID])),
        };
        let output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        drop(locals);
        output
    }
}
