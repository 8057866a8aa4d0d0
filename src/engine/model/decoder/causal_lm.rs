//! `LlamaForCausalLM` and its variants: a decoder and its head (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use super::config::DecoderConfig;
use super::head::{Logits, formed_last_logits, formed_logits_and_loss, logits_and_loss};
use super::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{Builder, Embedding, Linear};
use crate::tape::{Component, Tape, Tensor};

/// A text model: a decoder and its head.
pub struct CausalLm {
    model: Decoder,
    /// Head; `None` before the last stage of a pipeline.
    lm_head: Option<Linear>,
    logits: Logits,
    /// True if the last hidden states are multiplied by a number before the head.
    scales_last: bool,
    /// True if generation is simulated.
    generates: bool,
}

impl CausalLm {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        // Tensor parallelism splits the head of a text model by its vocabulary, and with it a token embedding tied to
        // it. A separate embedding stays whole on each GPU. On one GPU, both constructors do the same.
        let embedding = if c.tie_word_embeddings {
            Embedding::rowwise
        } else {
            Embedding::new
        };
        let model = b.tape().component("model", Component::LanguageModel, || {
            Decoder::with_table(b, c, &|| embedding(b, "embed_tokens", c.vocab, c.hidden))
        });
        // `lm_head` is an attribute of the outermost module, so its component adds no name to the path.
        let lm_head = b.tape().stage().is_last().then(|| {
            b.tape().component("", Component::Head, || {
                let head = match model.table() {
                    // A tied model is refused as a pipeline, so its table is always here.
                    Some(table) if c.tie_word_embeddings => Linear::gathered_tied(b, "lm_head", table),
                    _ => Linear::gathered(b, "lm_head", c.hidden, c.vocab),
                };
                match c.head_bias {
                    true => head.with_bias(b, "lm_head", c.vocab),
                    false => head,
                }
            })
        });
        Self {
            model,
            lm_head,
            logits: match c.logit_softcap {
                Some(_) => Logits::Capped,
                None => Logits::scaled(c.family.block().scales_logits),
            },
            scales_last: c.family.block().scales_last,
            generates: !c.family.is_eager() && c.own.indexers().is_none(),
        }
    }
}

impl CausalLm {
    /// Last hidden states as the head gets them.
    fn scaled(&self, t: &Tape, h: Tensor) -> Tensor {
        match self.scales_last {
            true => t.scale(&h),
            false => h,
        }
    }
}

impl Forward for CausalLm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = match (&batch.received, &batch.ids) {
                // In a later stage of a pipeline: hidden states of the stage before.
                (Some(received), _) => received.clone(),
                (None, Some(ids)) => self.model.embed(t, run, ids),
                (None, None) => unreachable!("a text batch has ids"),
            };
            self.model.forward_packed(t, run, embeds, batch.positions.as_ref())
        });
        let last = self.scales_last.then(|| h.clone());
        let h = self.scaled(t, h);
        let output = match &self.lm_head {
            Some(lm_head) if self.logits != Logits::AsTheyAre => {
                formed_logits_and_loss(t, lm_head, h, batch, self.logits)
            }
            lm_head => logits_and_loss(t, lm_head.as_ref(), h, batch),
        };
        drop(last);
        output
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        if !self.generates {
            return None;
        }
        let embeds = self.model.embed(t, run, ids);
        let h = self.scaled(t, self.model.forward(t, run, embeds));
        Some(formed_last_logits(t, self.lm_head.as_ref()?, &h, self.logits))
    }
}
