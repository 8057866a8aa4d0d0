//! `Qwen3_5ForCausalLM` (`transformers/models/qwen3_5/modeling_qwen3_5.py`).

use crate::model::decoder::head::Logits;
use crate::model::parts::delta_decoder::{DeltaDecoder, DeltaDecoderConfig};
use crate::model::parts::mixed_layers::MixedLm;
use crate::nn::Builder;
use crate::tape::Component;

/// `Qwen3_5ForCausalLM`.
pub fn model(b: &Builder, c: &DeltaDecoderConfig) -> MixedLm<DeltaDecoder> {
    let t = b.tape();
    let model = t.component("model", Component::LanguageModel, || DeltaDecoder::new(b, c));
    let lm_head = model.head(b, c);
    MixedLm {
        model,
        lm_head,
        logits: Logits::AsTheyAre,
    }
}
