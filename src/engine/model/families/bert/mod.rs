//! BERT and its kin as language models (`transformers/models/bert`, `roberta`, `electra` …).

mod adapters;
mod block;
mod characters;
mod config;
mod embeddings;
mod forms;
mod head;
mod rotary;
mod stack;

pub use config::BertConfig;

use config::{AdaptersConfig, BertForm, CharactersConfig, HeadModule, PositionForm};

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{TextFamily, TextLm, TextSupport};
use crate::nn::Builder;
use crate::tape::Component;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("bert", &["BertLMHeadModel"]),
        ModelType::new("roberta", &["RobertaForCausalLM"]),
        ModelType::new("camembert", &["CamembertForCausalLM"]),
        ModelType::new("xlm-roberta", &["XLMRobertaForCausalLM"]),
        ModelType::new("data2vec-text", &["Data2VecTextForCausalLM"]),
        ModelType::new("electra", &["ElectraForCausalLM"]),
        ModelType::new("ernie", &["ErnieForCausalLM"]),
        ModelType::new("megatron-bert", &["MegatronBertForCausalLM"]),
        ModelType::new("bert-generation", &["BertGenerationDecoder"]),
        ModelType::new("roberta-prelayernorm", &["RobertaPreLayerNormForCausalLM"]),
        ModelType::new("rembert", &["RemBertForCausalLM"]),
        ModelType::new("xlm-roberta-xl", &["XLMRobertaXLForCausalLM"]),
        ModelType::new("roc_bert", &["RoCBertForCausalLM"]),
        ModelType::new("roformer", &["RoFormerForCausalLM"]),
        ModelType::new("big_bird", &["BigBirdForCausalLM"]),
        ModelType::new("xmod", &["XmodForCausalLM"]),
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Refuses what is not simulated.
fn supported(s: &Section) -> Result<(), ModelError> {
    s.only(
        "add_cross_attention",
        "false: attention to an encoder is not simulated",
        |v| v == false,
    )?;
    s.only(
        "chunk_size_feed_forward",
        "0: chunks of the MLP are not simulated",
        |v| v == 0,
    )
}

/// Reads the entries of the position embedding, and the position of the first token.
fn positions(s: &Section, form: &BertForm, default: u64) -> Result<(u64, u64), ModelError> {
    let counted = form.positions == PositionForm::Counted;
    if s.has("pad_token_id") && counted {
        s.required("pad_token_id", "a token, from which positions are counted")?;
    }
    let padding = s.optional_count("pad_token_id", limits::VOCAB)?.unwrap_or(1);
    let positions = s.size("max_position_embeddings", default, limits::POSITIONS)?;
    let first_position = if counted { padding + 1 } else { 0 };
    if first_position >= positions {
        let allowed = "a token before `max_position_embeddings`, from which positions are counted";
        return Err(s.wrong("pad_token_id", &padding.into(), allowed));
    }
    Ok((positions, first_position))
}

/// Reads the tables of sounds and looks of characters.
fn characters(model_type: &str, s: &Section) -> Result<Option<CharactersConfig>, ModelError> {
    if model_type != "roc_bert" {
        return Ok(None);
    }
    let table = |[entries, width]: [(&str, u64); 2]| {
        let entries = s.size_or(entries.0, entries.1, limits::VOCAB)?;
        Ok::<_, ModelError>([entries, s.size_or(width.0, width.1, limits::WIDTH)?])
    };
    Ok(Some(CharactersConfig {
        sounds: table([("pronunciation_vocab_size", 910), ("pronunciation_embed_dim", 768)])?,
        looks: table([("shape_vocab_size", 24_858), ("shape_embed_dim", 512)])?,
        reads_sounds: s.flag("enable_pronunciation", true)?,
        reads_looks: s.flag("enable_shape", true)?,
        joined: s.flag("concat_input", true)?,
    }))
}

/// Reads the most tokens that all see each other: longer texts are split into blocks that see a few others.
fn blocks_beyond(s: &Section) -> Result<Option<u64>, ModelError> {
    let attention = s.optional_text("attention_type")?.unwrap_or("block_sparse");
    let block = s.size_or("block_size", 64, limits::POSITIONS)?;
    let random = s.optional_count("num_random_blocks", limits::POSITIONS)?.unwrap_or(3);
    match attention {
        "original_full" => Ok(None),
        "block_sparse" => Ok(Some((5 + 2 * random) * block)),
        other => Err(s.wrong("attention_type", &other.into(), "original_full or block_sparse")),
    }
}

/// Reads the adapters of languages. Without a default language the model refuses a batch until it is told one
/// (`set_default_language`): any makes the same tensors.
fn adapters(model_type: &str, s: &Section, hidden: u64) -> Result<Option<AdaptersConfig>, ModelError> {
    if model_type != "xmod" {
        return Ok(None);
    }
    let listed = s.value("languages").and_then(|languages| languages.as_array());
    let of_samples = match (listed, s.optional_text("default_language")?) {
        (_, None) => 0,
        (None, Some("en_XX")) => 0,
        (listed, Some(language)) => {
            let at = listed.and_then(|list| list.iter().position(|known| known == language));
            at.ok_or_else(|| s.wrong("default_language", &language.into(), "one of `languages`"))? as u64
        }
    };
    Ok(Some(AdaptersConfig {
        languages: listed.map_or(1, |list| list.len() as u64),
        of_samples,
        width: hidden / s.size_or("adapter_reduction_factor", 2, hidden)?,
        normed: s.flag("adapter_layer_norm", false)?,
        reuses_norm: s.flag("adapter_reuse_layer_norm", true)?,
        passes_normed: s.flag("ln_before_adapter", true)?,
    }))
}

impl TextFamily for BertConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let defaults = forms::defaults(model_type);
        let form = match model_type == "xmod" && s.flag("pre_norm", false)? {
            true => &forms::XMOD_BEFORE,
            false => defaults.form,
        };
        let hidden = s.size("hidden_size", defaults.hidden, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", defaults.heads, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let vocab = s.size("vocab_size", defaults.vocab, limits::VOCAB)?;
        s.padding(vocab)?;
        supported(s)?;
        let (positions, first_position) = positions(s, form, defaults.positions)?;
        let widened = form.head == HeadModule::Widened;
        let width_key = if widened {
            "input_embedding_size"
        } else {
            "embedding_size"
        };
        let embedding = match defaults.embedding {
            _ if model_type == "roformer" => s.optional_size(width_key, limits::WIDTH)?.unwrap_or(hidden),
            Some(width) => s.size(width_key, width, limits::WIDTH)?,
            None => hidden,
        };
        let big_bird = model_type == "big_bird";
        let tasks = model_type == "ernie" && s.flag("use_task_id", false)?;
        Ok(Self {
            form,
            vocab,
            embedding,
            output_embedding: match widened {
                true => s.size("output_embedding_size", 1664, limits::WIDTH)?,
                false => hidden,
            },
            hidden,
            intermediate: s.size("intermediate_size", defaults.intermediate, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", defaults.layers, limits::LAYERS)?,
            heads,
            positions,
            first_position,
            types: match form.types {
                Some(_) => s.size_or("type_vocab_size", defaults.types, limits::VOCAB)?,
                None => 0,
            },
            tasks: match tasks {
                true => Some(s.size_or("task_type_vocab_size", 3, limits::VOCAB)?),
                false => None,
            },
            activation: s.activation("hidden_act", defaults.activation)?,
            hidden_dropout: s.probability("hidden_dropout_prob", defaults.dropout)?,
            attention_dropout: s.probability("attention_probs_dropout_prob", defaults.dropout)?,
            characters: characters(model_type, s)?,
            adapters: adapters(model_type, s, hidden)?,
            scales_embeddings: big_bird && s.flag("rescale_embeddings", false)?,
            attention_bias: !big_bird || s.flag("use_bias", true)?,
            rotates_values: model_type == "roformer" && s.flag("rotary_value", false)?,
            blocks_beyond: if big_bird { blocks_beyond(s)? } else { None },
            is_decoder: s.flag("is_decoder", false)?,
            // RemBERT's head is never tied.
            tie_word_embeddings: s.flag("tie_word_embeddings", true)? && !widened,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let (t, path) = (b.tape(), self.form.path);
        let head = |table| t.component("", Component::Head, || head::BertHead::new(b, self, table));
        let stack = || t.component(path, Component::LanguageModel, || stack::BertStack::new(b, self));
        let ties = self.tie_word_embeddings;
        let (stack, head) = if self.form.head_first {
            let mut head = head(None);
            let stack = stack();
            if ties {
                head.tie(&stack.words());
            }
            (stack, head)
        } else {
            let stack = stack();
            let head = head(ties.then(|| stack.words()));
            (stack, head)
        };
        Box::new(TextLm::of(path, stack, Box::new(head)))
    }

    fn positions(&self) -> Positions {
        match self.blocks_beyond {
            Some(most) if most < self.positions => Positions::Simulated(most),
            _ => Positions::Learned(self.positions - self.first_position),
        }
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
