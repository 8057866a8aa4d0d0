//! Model around a vision tower, of Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5, GLM-4V and PaddleOCR-VL
//! (`transformers/models/qwen2_vl/modeling_qwen2_vl.py`, `transformers/vision_utils.py`).

use super::batch::batch_of_patches;
use super::layout::Layout;
use super::patches::QwenPatches;
use super::{merge, positions};
use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::nn::{self, AXES, Builder, Linear, MropeLayout};
use crate::tape::{Component, Tape, Tensor};

/// The vision tower of such a model.
pub trait VisionTower {
    /// Assignment of the language model's rotary frequencies to the axes.
    const MROPE: MropeLayout;

    /// True if the model's forward keeps the tower's output until it returns.
    const OUTPUT_IS_KEPT: bool;

    /// True if the model takes videos too, and marks their tokens beside those of images.
    const TAKES_VIDEOS: bool = true;

    /// True if a batch marks the tokens that experts of their own take: those of images, and those before and after each.
    const MARKS_EXPERTS: bool = false;

    /// When the language model passes positions to its layers.
    const LAYERS_GET: LayerPositions;

    /// Runs [`Self::forward`] as the component `model.visual`.
    fn forward_within(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        t.component("model.visual", Component::VisionTower, || {
            self.forward(t, run, pixels, layout, grid)
        })
    }

    /// Patches [patches, elements of a patch] → features of every merged patch.
    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput;
}

/// When a language model passes positions to its layers too, beside the rotary tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerPositions {
    /// Never.
    Never,
    /// When it counts them itself, since it then makes a fourth axis for the layers.
    Counted,
    /// Those of the first axis, always.
    Always,
}

/// Output of a vision tower.
pub struct VisionOutput {
    /// Hidden states of the last block, [patches, width].
    pub last: Tensor,
    /// Merged features, [tokens, text width].
    pub merged: Tensor,
    /// Features of inner blocks for the first layers of the language model, each of the shape of `merged`.
    pub deepstack: Vec<Tensor>,
}

/// Features of inner blocks of the tower, added to the outputs of the first layers: their number, and the function that
/// takes each layer's index and output.
pub type Deepstack<'a> = (usize, &'a dyn Fn(&Tape, usize, Tensor) -> Tensor);

/// Positions of the tokens of a batch.
#[derive(Clone, Copy)]
pub struct MropePositions<'a> {
    /// Of time, height and width, [3, batch, seq].
    pub axes: &'a Tensor,
    /// Assignment of the rotary frequencies to the axes.
    pub layout: MropeLayout,
    /// Positions that every layer gets beside the rotary tables, or a tensor that keeps their memory.
    pub of_layers: Option<&'a Tensor>,
}

/// A language model without its head.
pub trait LanguageModel {
    /// Token ids [batch, seq] → [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor;

    /// Embeddings [batch, seq, hidden] → last hidden states.
    /// `padding` is the padding mask, [batch, seq].
    fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: MropePositions<'_>,
        padding: &Tensor,
        deepstack: Deepstack<'_>,
    ) -> Tensor;

    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1]; `None` if generation is
    /// not simulated.
    fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Option<Tensor>;
}

impl LanguageModel for Decoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: MropePositions<'_>,
        _padding: &Tensor,
        deepstack: Deepstack<'_>,
    ) -> Tensor {
        self.forward_multimodal(t, run, embeds, positions, deepstack)
    }

    fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Option<Tensor> {
        Some(self.next_logits(t, run, lm_head, ids))
    }
}

/// `Qwen2VLForConditionalGeneration` and its variants.
pub struct QwenVl<V, L = Decoder> {
    visual: V,
    language_model: L,
    lm_head: Option<Linear>,
    patches: QwenPatches,
}

impl<V: VisionTower> QwenVl<V> {
    /// Makes the parameters: the tower by `visual`, the language model, the head.
    pub fn new(b: &Builder, parts: (QwenPatches, &DecoderConfig), visual: impl FnOnce() -> V) -> Self {
        let tower = || b.tape().component("model.visual", Component::VisionTower, visual);
        Self::beside(b, parts, tower)
    }

    /// Makes the parameters; `parts` makes the tower and whatever stands between it and the language model.
    pub fn beside(b: &Builder, (patches, text): (QwenPatches, &DecoderConfig), parts: impl FnOnce() -> V) -> Self {
        let head = |model: &Decoder| model.head(b, text);
        Self::around(b, patches, parts, (|| Decoder::new(b, text), head))
    }
}

impl<V: VisionTower, L: LanguageModel> QwenVl<V, L> {
    /// Makes the parameters: those of images by `visual`, then the language model and its head.
    pub fn around(
        b: &Builder,
        patches: QwenPatches,
        visual: impl FnOnce() -> V,
        (text, head): (impl FnOnce() -> L, impl FnOnce(&L) -> Option<Linear>),
    ) -> Self {
        let t = b.tape();
        let visual = visual();
        let language_model = t.component("model.language_model", Component::LanguageModel, text);
        let lm_head = head(&language_model);
        Self {
            visual,
            language_model,
            lm_head,
            patches,
        }
    }

    /// Token embeddings → last hidden states, for samples without images: `compute_3d_position_ids` returns no positions,
    /// and the language model counts them.
    fn hidden_of_text(&self, t: &Tape, run: &Run, batch: &Batch, ids: &Tensor) -> Tensor {
        t.component("model.language_model", Component::LanguageModel, || {
            let embeds = self.language_model.embed(t, run, ids);
            let counted = nn::position_ids(t, &embeds);
            let shape = [AXES, embeds.size(0), embeds.size(1)];
            let features: Deepstack<'_> = (0, &|_, _, h| h);
            let positions = MropePositions {
                axes: &t.expand(&t.unsqueeze(&counted, 0), shape),
                layout: V::MROPE,
                of_layers: (V::LAYERS_GET != LayerPositions::Never).then_some(&counted),
            };
            self.language_model
                .forward(t, run, embeds, positions, &batch.others[PADDING], features)
        })
    }

    /// Token and image embeddings → last hidden states.
    fn hidden(&self, t: &Tape, run: &Run, batch: &Batch) -> Tensor {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let Some(pixels) = &batch.pixels else {
            return self.hidden_of_text(t, run, batch, ids);
        };
        let layout = Layout::of(&run.setup, &self.patches);
        let [grid, _types] = [&batch.others[GRID], &batch.others[TYPES]];
        let (mut embeds, cast, seen) = run.encoded(t, || {
            let embeds = t.component("model.language_model", Component::LanguageModel, || {
                self.language_model.embed(t, run, ids)
            });
            let cast = run.pixels_in_type_of_weights(t, pixels);
            let seen = self.visual.forward_within(t, run, &cast, &layout, grid);
            (embeds, cast, seen)
        });
        let VisionOutput {
            last,
            merged,
            deepstack,
        } = seen;
        let parts = merge::split_images(t, grid, merged, &layout);
        drop(cast);
        let kept = V::OUTPUT_IS_KEPT.then(|| (last.clone(), parts.clone()));
        drop(last);
        let images = merge::joined(t, parts, embeds.dtype());
        let (image_mask, _video_mask) = match V::TAKES_VIDEOS {
            true => {
                let [image, video] = merge::placeholder_masks(t, ids);
                (image, Some(video))
            }
            false => (placeholder_mask(t, ids), None),
        };
        embeds = t.place_features(&embeds, &image_mask, &images);
        let argument = run.encodes_first().then(|| embeds.clone());
        let position_ids = match run.encodes_first() {
            // The template has made them for the batch.
            true => nn::ids(t, &[AXES, layout.batch, layout.seq], "position ids"),
            false => {
                let (position_ids, deltas) = positions::rope_index(t, &layout);
                run.keep_rope_deltas(t, deltas);
                position_ids
            }
        };
        let add_features = |t: &Tape, i: usize, h: Tensor| match deepstack.get(i) {
            Some(features) => merge::add_at_images(t, h, &image_mask, features),
            None => h,
        };
        let h = t.component("model.language_model", Component::LanguageModel, || {
            let positions = MropePositions {
                axes: &position_ids,
                layout: V::MROPE,
                of_layers: (V::LAYERS_GET == LayerPositions::Always).then_some(&position_ids),
            };
            let features: Deepstack<'_> = (deepstack.len(), &add_features);
            self.language_model
                .forward(t, run, embeds, positions, &batch.others[PADDING], features)
        });
        drop((kept, argument));
        h
    }
}

/// Indices in [`Batch::others`].
const PADDING: usize = 0;
const GRID: usize = 1;
const TYPES: usize = 2;

impl<V: VisionTower, L: LanguageModel> Forward for QwenVl<V, L> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        if run.setup.images == 0 {
            return Batch::of_text(t, run);
        }
        batch_of_patches(t, run, &self.patches, |layout| {
            let types = |name| {
                let shape = [layout.batch, layout.seq];
                // A trainer's batch comes from the host.
                if run.setup.trainer.is_derived() {
                    return t.empty(shape, DType::I32, name);
                }
                let marked = t.empty(shape, DType::Bool, "image tokens");
                t.compute(&marked, DType::I32, name)
            };
            let of_tokens = types("mm_token_type_ids");
            let of_experts = V::MARKS_EXPERTS.then(|| types("moe_mm_token_type_ids"));
            std::iter::once(of_tokens).chain(of_experts)
        })
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let h = self.hidden(t, run, batch);
        logits_and_loss(t, self.lm_head.as_ref(), h, batch)
    }
}
