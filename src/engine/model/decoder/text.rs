//! Interface between LLaVA's models and their language model, of any family.

use super::config::DecoderConfig;
use super::gemma::{GemmaText, Given};
use super::head::head_for;
use super::stack::Decoder;
use crate::model::forward::Run;
use crate::nn::{Builder, Linear};
use crate::tape::{Tape, Tensor};

/// A language model without its head.
pub trait Text: Sized {
    /// Makes the parameters.
    fn new(b: &Builder, c: &DecoderConfig) -> Self;

    /// Makes the output projection, tied to the token embedding or separate; `None` before the last stage of a
    /// pipeline.
    fn head(&self, b: &Builder, c: &DecoderConfig) -> Option<Linear>;

    /// Token ids [batch, seq] → [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor;

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor;

    /// Returns the logits [batch, 1, vocab] after one new token of each sample, ids [batch, 1].
    fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Tensor;
}

impl Text for Decoder {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::new(b, c)
    }

    fn head(&self, b: &Builder, c: &DecoderConfig) -> Option<Linear> {
        self.head(b, c)
    }

    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
        self.forward(t, run, embeds)
    }

    fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Tensor {
        self.next_logits(t, run, lm_head, ids)
    }
}

/// LLaVA soft-caps no logits, not even those of Gemma 2.
impl Text for GemmaText {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::new(b, c)
    }

    fn head(&self, b: &Builder, c: &DecoderConfig) -> Option<Linear> {
        Some(head_for(b, self.weight(), c.tie_word_embeddings))
    }

    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed(t, run, ids)
    }

    fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
        self.forward(t, run, embeds, Given::default())
    }

    fn next_logits(&self, t: &Tape, run: &Run, lm_head: &Linear, ids: &Tensor) -> Tensor {
        self.next_logits(t, run, (lm_head, false), ids)
    }
}
