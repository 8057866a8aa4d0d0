//! `Qwen3_5ForCausalLM` (`transformers/models/qwen3_5/modeling_qwen3_5.py`).

use crate::model::decoder::head::logits_and_loss;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::delta_decoder::{DeltaDecoder, DeltaDecoderConfig, PositionIds};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape};

/// `Qwen3_5ForCausalLM`.
pub struct DeltaLm {
    model: DeltaDecoder,
    lm_head: Linear,
}

impl DeltaLm {
    pub fn new(b: &Builder, c: &DeltaDecoderConfig) -> Self {
        let model = b
            .tape()
            .component("model", Component::LanguageModel, || DeltaDecoder::new(b, c));
        let lm_head = model.head(b, c);
        Self { model, lm_head }
    }
}

impl Forward for DeltaLm {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = self.model.embed(t, run, ids);
            let positions = batch.positions.as_ref().map_or(PositionIds::Text, PositionIds::Packed);
            self.model.forward(t, run, embeds, positions, batch.others.first())
        });
        logits_and_loss(t, &self.lm_head, h, batch)
    }
}
