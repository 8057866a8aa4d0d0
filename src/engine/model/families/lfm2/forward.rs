//! `Lfm2ForCausalLM` (`transformers/models/lfm2/modeling_lfm2.py`).

use crate::model::decoder::head::Logits;
use crate::model::parts::lfm2_decoder::{Lfm2Config, Lfm2Decoder};
use crate::model::parts::mixed_layers::MixedLm;
use crate::nn::Builder;
use crate::tape::Component;

/// `Lfm2ForCausalLM`.
pub fn model(b: &Builder, c: &Lfm2Config) -> MixedLm<Lfm2Decoder> {
    let t = b.tape();
    let model = t.component("model", Component::LanguageModel, || Lfm2Decoder::new(b, c));
    let lm_head = model.head(b, c);
    MixedLm {
        model,
        lm_head,
        logits: Logits::AsTheyAre,
    }
}
