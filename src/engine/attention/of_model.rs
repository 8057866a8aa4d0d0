//! Default attention call for a model.

use super::call::{Call, Pass};
use crate::dtype::DType;
use crate::model::config::{DecoderConfig, EncoderShape};
use crate::model::{Model, ModelConfig};
use crate::setup::{Precision, Setup};

/// Query heads, key and value heads, elements of one head.
type Heads = [u64; 3];

impl Call {
    /// Attention call of a model's language model, or of its tower if it has no text; window 512, top 10%, chunks of
    /// 64.
    pub fn of(model: &Model, setup: &Setup) -> Self {
        let [heads, kv_heads, width] = heads(&model.config);
        Self {
            batch: setup.batch,
            heads,
            kv_heads,
            width,
            dtype: match setup.precision {
                Precision::Fp32 => DType::F32,
                Precision::Bf16 | Precision::AmpBf16 => DType::Bf16,
                Precision::AmpFp16 => DType::F16,
            },
            causal: model.takes().text,
            window: 512,
            kept_percent: 10,
            chunk: 64,
            pass: Pass::Training,
        }
    }
}

fn heads(config: &ModelConfig) -> Heads {
    use ModelConfig as M;
    match config {
        M::Gpt2(c) => [c.heads, c.heads, c.hidden / c.heads],
        M::Opt(c) => [c.heads, c.heads, c.hidden / c.heads],
        M::Phi(c) => [c.heads, c.kv_heads, c.hidden / c.heads],
        M::Blip2(c) => [c.text.heads, c.text.heads, c.text.hidden / c.text.heads],
        M::Decoder(c) => of_decoder(c),
        M::Llava(c) => of_decoder(&c.text),
        M::LlavaNext(c) => of_decoder(&c.text),
        M::Qwen2Vl(c) => of_decoder(&c.text),
        M::Qwen25Vl(c) => of_decoder(&c.text),
        M::Qwen3Vl(c) => of_decoder(&c.text),
        M::InternVl(c) => of_decoder(&c.text),
        M::PaliGemma(c) => of_decoder(&c.text),
        M::Idefics3(c) => of_decoder(&c.text),
        M::Gemma3(c) => of_decoder(&c.text),
        M::Mllama(c) => of_decoder(&c.text),
        M::Clip(c) => [c.vision.heads, c.vision.heads, c.vision.hidden / c.vision.heads],
        M::Siglip(c) => of_encoder(&c.vision.shape),
        M::Vit(c) => of_encoder(&c.shape),
        M::VideoMae(c) => of_encoder(&c.shape),
    }
}

const fn of_decoder(c: &DecoderConfig) -> Heads {
    [c.heads, c.kv_heads, c.head_dim]
}

const fn of_encoder(c: &EncoderShape) -> Heads {
    [c.heads, c.heads, c.hidden / c.heads]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_heads_come_from_the_language_model() {
        let call = |name: &str| {
            let model = Model::from_catalogue(name).expect("it is in the catalogue");
            Call::of(&model, &Setup::default())
        };
        let of = |call: Call| [call.heads, call.kv_heads, call.width];
        assert_eq!(of(call("qwen2.5-7b")), [28, 4, 128]);
        assert_eq!(of(call("gpt2")), [12, 12, 64]);
        assert!(call("llava-1.5-7b").causal && !call("vit-large").causal);
    }
}
