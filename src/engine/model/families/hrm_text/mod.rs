//! HRM-Text (`transformers/models/hrm_text`).

mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules,
};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::{Builder, NormKind};

static FACTS: Facts = Facts {
    model_types: &[ROW.model_type],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Blocks, as differences to Llama's.
static ROW: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("hrm_text", &["HrmTextForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 151_808,
        hidden: 1536,
        intermediate: 4096,
        layers: 16,
        heads: 12,
        head_dim: Some(128),
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::WideRms,
            gates: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// HRM-Text: two stacks of blocks, of which the low one runs a few times for each time of the high one.
#[derive(Debug, Clone, PartialEq)]
pub struct HrmTextConfig {
    /// Blocks of either stack, and what is around them.
    pub text: DecoderConfig,
    /// Runs of the low stack before each of the high one.
    pub low_cycles: u64,
    /// For each run of the high stack, how many of the low one before it are trained: the last ones.
    pub trained: Vec<u64>,
}

impl TextFamily for HrmTextConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let mut text = DecoderConfig::read(s, &ROW)?;
        text.kv_heads = text.heads;
        // A file that transformers wrote has all runs of all blocks in place of the blocks of a stack.
        text.layers = s.size_or("num_layers_per_stack", text.layers, limits::LAYERS)?;
        text.windows = vec![None; text.layers as usize];
        let cycles = s.size_or("H_cycles", 2, limits::LAYERS)?;
        let given = s.optional_indices("L_bp_cycles", limits::LAYERS)?.unwrap_or(vec![2]);
        let first = (cycles as usize).saturating_sub(given.len());
        let trained = std::iter::repeat_n(1, first).chain(given).take(cycles as usize);
        Ok(Self {
            text,
            low_cycles: s.size_or("L_cycles", 3, limits::LAYERS)?,
            trained: trained.collect(),
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let form = HeadForm::plain(self.text.tie_word_embeddings);
        Box::new(TextLm::new(b, "model", form, || stack::HrmTextStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::Usual,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
