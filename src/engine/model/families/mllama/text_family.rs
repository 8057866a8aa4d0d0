//! Llama-3.2-Vision's language model alone, which runs none of its cross-attention layers.

use serde_json::json;

use super::config::MllamaTextConfig;
use super::text::MllamaText;
use crate::dtype::DType;
use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::{Forward, Run};
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{Head, Stack, TextFamily, TextLm, TextSupport};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("mllama_text_model", &["MllamaForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl TextFamily for MllamaTextConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let Some(text) = s.optional_nested("text_config", "Llama-3.2-Vision language")? else {
            return Self::read(s);
        };
        if let Some(tower) = s.optional_nested("vision_config", "Llama-3.2-Vision tower")? {
            tiles_fit(&tower)?;
        }
        Self::read(&text)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let t = b.tape();
        let stack = t.component("model", Component::LanguageModel, || MllamaText::new(b, self).alone());
        let head = t.component("", Component::Head, || {
            Linear::new(b, "lm_head", self.decoder.hidden, self.decoder.vocab, false)
        });
        Box::new(TextLm::of("model", stack, Box::new(Fp32Head(head))))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.decoder.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.decoder)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::Usual,
            liger: Liger::NotSimulated,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}

impl Stack for MllamaText {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        self.forward(t, run, ids, None)
    }

    fn table(&self) -> &Tensor {
        self.weight()
    }
}

/// `MllamaVisionConfig.validate_architecture`: the default arrangements are those of four tiles.
fn tiles_fit(tower: &Section) -> Result<(), ModelError> {
    let default = json!([[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]);
    if tower
        .value("supported_aspect_ratios")
        .is_none_or(|given| *given == default)
    {
        tower.only("max_num_tiles", "4 beside the default `supported_aspect_ratios`", |v| {
            v == 4
        })?;
    }
    Ok(())
}

/// A head whose logits are cast to fp32.
struct Fp32Head(Linear);

impl Head for Fp32Head {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        let product = self.0.call(t, h);
        t.to_dtype(&product, DType::F32)
    }
}
