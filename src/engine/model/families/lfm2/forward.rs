//! `Lfm2ForCausalLM` (`transformers/models/lfm2/modeling_lfm2.py`).

use crate::model::decoder::head::logits_and_loss;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::lfm2_decoder::{Lfm2Config, Lfm2Decoder};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape};

/// `Lfm2ForCausalLM`.
pub struct Lfm2Lm {
    model: Lfm2Decoder,
    lm_head: Linear,
}

impl Lfm2Lm {
    pub fn new(b: &Builder, c: &Lfm2Config) -> Self {
        let model = b
            .tape()
            .component("model", Component::LanguageModel, || Lfm2Decoder::new(b, c));
        let lm_head = model.head(b, c);
        Self { model, lm_head }
    }
}

impl Forward for Lfm2Lm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = self.model.embed(t, run, ids);
            let (packed, padding) = (batch.positions.as_ref(), batch.others.first());
            self.model.forward(t, run, embeds, packed, padding)
        });
        logits_and_loss(t, &self.lm_head, h, batch)
    }
}
