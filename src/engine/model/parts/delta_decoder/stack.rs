//! Decoders with gated DeltaNet without their head (`Qwen3_5TextModel`, `Qwen3NextModel`).

use std::rc::Rc;

use super::config::DeltaDecoderConfig;
use super::layer::{Layer, norm};
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::head::head_for;
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, Returned, run_layers};
use crate::model::parts::qwen_vl::{Deepstack, LanguageModel, MropePositions};
use crate::nn::{self, AXES, Builder, Embedding, Linear, MropeLayout, Numbered, Pattern, RmsNorm, Rotary};
use crate::tape::{Tape, Tensor};

/// `Qwen3_5TextModel`: embeddings, layers, last norm.
pub struct DeltaDecoder {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    /// For each layer, true if it is gated DeltaNet.
    is_linear: Vec<bool>,
    norm: RmsNorm,
    rotary: Rotary,
    /// True if positions are those of time, height and width.
    multimodal: bool,
}

impl LanguageModel for DeltaDecoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: MropePositions<'_>,
        padding: &Tensor,
        _: Deepstack<'_>,
    ) -> Tensor {
        self.forward(t, run, embeds, PositionIds::Axes(positions), Some(padding))
    }

    fn next_logits(&self, _: &Tape, _: &Run, _: &Linear, _: &Tensor) -> Option<Tensor> {
        None
    }
}

/// Positions of tokens.
#[derive(Clone, Copy)]
enum PositionIds<'a> {
    /// Each sample begins at 0.
    Text,
    /// Of samples packed into one row, [1, seq].
    Packed(&'a Tensor),
    /// Of time, height and width.
    Axes(MropePositions<'a>),
}

impl DeltaDecoder {
    pub fn new(b: &Builder, c: &DeltaDecoderConfig) -> Self {
        let t = b.tape();
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layer = |i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers: Vec<Numbered<Layer>> = (0..c.is_linear.len()).map(layer).collect();
        let norm = norm(b, "norm", c.hidden);
        let rotary = Rotary::new(b, c.rope.rotated(c.head_dim)).dynamic(c.rope.is_dynamic());
        layers.iter().for_each(|layer| layer.initialise(t));
        Self {
            embed_tokens,
            layers,
            is_linear: c.is_linear.clone(),
            norm,
            rotary: rotary.initialised(t),
            multimodal: c.form.multimodal,
        }
    }

    /// Makes the output projection, tied to the token embedding or separate.
    pub fn head(&self, b: &Builder, c: &DeltaDecoderConfig) -> Linear {
        head_for(b, self.embed_tokens.weight(), c.tie_word_embeddings)
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape. `padding` is the padding mask,
    /// [batch, seq], of samples that are not packed.
    fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: PositionIds<'_>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let cache = run.cache(&[]);
        let [batch, seq] = [embeds.size(0), embeds.size(1)];
        let (text_ids, packed) = match positions {
            PositionIds::Text => (Some(nn::position_ids(t, &embeds)), None),
            PositionIds::Packed(ids) => (Some(ids.clone()), Some(ids)),
            PositionIds::Axes(axes) => (axes.of_layers.cloned(), None),
        };
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        let padding = padding.and_then(|padding| nn::recurrent_mask(t, padding));
        let by_axes = |axes: &Tensor| self.rotary.call_multimodal(t, &embeds, axes, MropeLayout::Interleaved);
        let (cos, sin) = match (positions, &text_ids) {
            (PositionIds::Axes(given), _) => by_axes(given.axes),
            (_, Some(ids)) if !self.multimodal => self.rotary.call(t, &embeds, ids),
            (_, Some(ids)) => by_axes(&t.expand(&t.unsqueeze(ids, 0), [AXES, batch, seq])),
            (_, None) => unreachable!("text has positions"),
        };
        let shared = LayerContext {
            block: BlockContext {
                attn: run.attn,
                mask,
                cos,
                sin,
                splits_last: false,
                cache,
                position_ids: text_ids,
            },
            padding,
            returned: Returned::default(),
        };
        let layers = (&*self.layers, &*self.is_linear);
        run_layers(t, run, layers, &self.norm, shared, embeds)
    }
}

impl MixedDecoder for DeltaDecoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let positions = packed.map_or(PositionIds::Text, PositionIds::Packed);
        self.forward(t, run, embeds, positions, padding)
    }
}
