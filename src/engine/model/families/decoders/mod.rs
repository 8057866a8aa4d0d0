//! Registry of decoders like Llama's: one folder and one row for each, alone and inside vision-language models.

pub(crate) mod afmoe;
pub(crate) mod apertus;
pub(crate) mod arcee;
pub(crate) mod aria_text;
pub(crate) mod axk1;
pub(crate) mod axk2;
pub(crate) mod bitnet;
pub(crate) mod cohere;
pub(crate) mod cohere2;
pub(crate) mod cohere2_moe;
pub(crate) mod cwm;
pub(crate) mod deepseek_v2;
pub(crate) mod deepseek_v3;
pub(crate) mod deepseek_v32;
pub(crate) mod diffllama;
pub(crate) mod doge;
pub(crate) mod dots1;
pub(crate) mod emu3;
pub(crate) mod ernie4_5;
pub(crate) mod ernie4_5_moe;
pub(crate) mod exaone4;
pub(crate) mod exaone_moe;
mod family;
pub(crate) mod flex_olmo;
pub(crate) mod gemma;
pub(crate) mod gemma2;
pub(crate) mod gemma3_text;
pub(crate) mod glm;
pub(crate) mod glm4;
pub(crate) mod glm4_moe;
pub(crate) mod glm4_moe_lite;
pub(crate) mod glm_moe_dsa;
pub(crate) mod gpt_oss;
pub(crate) mod granite;
pub(crate) mod granite_swa;
pub(crate) mod granitemoe;
pub(crate) mod granitemoe_swa;
pub(crate) mod granitemoeshared;
pub(crate) mod helium;
pub(crate) mod hunyuan_v1_dense;
pub(crate) mod hunyuan_v1_moe;
pub(crate) mod hy_v3;
pub(crate) mod hy_v4;
pub(crate) mod hyperclovax;
pub(crate) mod internlm3;
pub(crate) mod iquestcoder;
pub(crate) mod jais2;
pub(crate) mod laguna;
pub(crate) mod llama;
pub(crate) mod longcat_flash;
pub(crate) mod mellum;
pub(crate) mod mimo_v2_flash;
pub(crate) mod minicpm3;
pub(crate) mod minimax_m2;
pub(crate) mod minimax_m3;
pub(crate) mod ministral;
pub(crate) mod ministral3;
pub(crate) mod mistral;
pub(crate) mod mistral4;
pub(crate) mod mixtral;
pub(crate) mod nanochat;
pub(crate) mod nemotron;
pub(crate) mod olmo;
pub(crate) mod olmo2;
pub(crate) mod olmo3;
pub(crate) mod olmoe;
pub(crate) mod phi3;
pub(crate) mod phimoe;
pub(crate) mod qwen2;
pub(crate) mod qwen2_moe;
pub(crate) mod qwen3;
pub(crate) mod qwen3_moe;
pub(crate) mod seed_oss;
pub(crate) mod smollm3;
pub(crate) mod solar_open;
pub(crate) mod starcoder2;
pub(crate) mod vaultgemma;
pub(crate) mod youtu;

use std::rc::Rc;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::block::Block;
use crate::model::decoder::{DecoderConfig, DecoderFamily};
use crate::model::facts::{Entry, ModelType, Name, names};
use crate::model::lazy::{self, LazyGroup};
use crate::nn::Builder;

/// Makes the tables of decoders from rows of a module, and the block that its family has of its own, if any: those that
/// are always there, and those that are loaded with [`LazyGroup::Blocks`] and with [`LazyGroup::Images`], where any can be
/// the language model.
macro_rules! decoders {
    (first: $($first:ident),+; later: $($later:ident $(with $block:ident)?),+ $(,)?) => {
        /// Decoders that are always there.
        static FIRST: &[DecoderFamily] = &[$($first::FAMILY),+];

        /// All others. Whatever refers to this table contains them.
        pub(crate) static LATER: &[DecoderFamily] = &[$($later::FAMILY),+];

        /// The decoders' types, in the order in which messages list them.
        const MODEL_TYPES: &[ModelType] = &[$($first::FAMILY.model_type,)+ $($later::FAMILY.model_type),+];

        /// Names of the models of [`LATER`], family by family.
        static LATER_NAMES: &[&[Name]] = &[$({
            const ENTRIES: &[Entry] = $later::FAMILY.catalogue;
            const NAMES: [Name; ENTRIES.len()] = names(ENTRIES);
            &NAMES
        }),+];

        /// Types of decoders with blocks of their own, and the names of these.
        const WITH_BLOCKS: &[(&str, &str)] = &[$($(($later::FAMILY.name(), stringify!($block)),)?)+];

        /// Makes the block of this index of a decoder with blocks of its own; `None` for one that has Llama's. Only
        /// [`crate::model::lazy`] calls this: whatever does contains the code of all these blocks.
        pub(crate) fn own_block(b: &Builder, c: &DecoderConfig, index: usize) -> Option<Rc<dyn Block>> {
            $($(if *c.family == $later::FAMILY {
                return Some(Rc::new($later::$block::new(b, c, index)));
            })?)+
            None
        }
    };
}

decoders! {
    first: llama, mistral, qwen2, qwen3;
    later:
    ministral,
    ministral3,
    gemma,
    gemma2,
    gemma3_text,
    vaultgemma,
    phi3 with Layer,
    cwm,
    seed_oss,
    ernie4_5,
    granite,
    helium,
    smollm3,
    internlm3,
    iquestcoder,
    qwen3_moe with ExpertLayer,
    mixtral with ExpertLayer,
    qwen2_moe with ExpertLayer,
    olmoe with ExpertLayer,
    flex_olmo with ExpertLayer,
    mellum with ExpertLayer,
    glm4_moe with ExpertLayer,
    dots1 with ExpertLayer,
    exaone_moe with ExpertLayer,
    ernie4_5_moe with ExpertLayer,
    minimax_m3 with ClampedExpertLayer,
    gpt_oss with Layer,
    solar_open with ExpertLayer,
    deepseek_v3 with LatentLayer,
    glm4_moe_lite with LatentLayer,
    youtu with LatentLayer,
    deepseek_v2 with LatentLayer,
    minicpm3 with LatentLayer,
    axk1 with LatentLayer,
    mistral4 with LatentLayer,
    olmo,
    olmo2,
    olmo3,
    exaone4,
    emu3,
    arcee,
    glm,
    glm4,
    cohere,
    cohere2,
    nemotron,
    hyperclovax,
    starcoder2,
    jais2,
    hunyuan_v1_dense,
    hunyuan_v1_moe with ExpertLayer,
    apertus,
    granitemoe with Layer,
    granitemoeshared with Layer,
    granite_swa with Layer,
    granitemoe_swa with Layer,
    nanochat,
    bitnet,
    minimax_m2 with ExpertLayer,
    hy_v3 with ExpertLayer,
    afmoe with Layer,
    cohere2_moe with ExpertLayer,
    phimoe with ExpertLayer,
    diffllama with Layer,
    laguna with Layer,
    mimo_v2_flash with Layer,
    deepseek_v32 with SparseLatentLayer,
    glm_moe_dsa with SparseLatentLayer,
    hy_v4 with Layer,
    axk2 with Layer,
    longcat_flash with Layer,
    doge with Layer,
    aria_text with ExpertLayer,
}

/// Returns true if the family has blocks of its own in place of Llama's.
pub(crate) fn has_own_blocks(family: &DecoderFamily) -> bool {
    WITH_BLOCKS.iter().any(|(name, _)| *name == family.name())
}

/// Types of whole models whose language model alone is simulated: its configuration is their `text_config`.
const OF_WHOLE: &[&str] = &[emu3::FAMILY.name()];

/// Decoders whose code is there.
pub(crate) fn loaded() -> impl Iterator<Item = &'static DecoderFamily> {
    FIRST.iter().chain(lazy::decoders().unwrap_or_default())
}

/// Finds the decoder of a `model_type`, one of the registry's.
///
/// # Errors
/// If its code is not there.
fn named(model_type: &str) -> Result<&'static DecoderFamily, ModelError> {
    loaded()
        .find(|family| family.name() == model_type)
        .ok_or_else(|| ModelError::not_loaded(model_type))
}

/// Group that reading a decoder of this type needs; `None` if it needs none, or is no decoder.
pub(crate) fn group(model_type: &str) -> Option<LazyGroup> {
    let later = &MODEL_TYPES[FIRST.len()..];
    later
        .iter()
        .any(|known| known.name == model_type)
        .then_some(LazyGroup::Blocks)
}

/// Names of models, family by family, each with the group that its file needs.
pub(super) fn model_names() -> impl Iterator<Item = (Option<LazyGroup>, Name)> {
    let first = FIRST.iter().flat_map(|family| family.catalogue);
    let later = LATER_NAMES.iter().copied().flatten();
    first
        .map(|entry| (None, entry.name()))
        .chain(later.map(|name| (Some(LazyGroup::Blocks), *name)))
}

/// Models known by name, family by family, of those decoders whose code is there.
pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    loaded().flat_map(|family| family.catalogue)
}

/// Reads the decoder inside a vision-language configuration; `default` is its `model_type` if unstated.
pub(crate) fn read_text(s: &Section, default: &str) -> Result<DecoderConfig, ModelError> {
    let given = s.optional_text("model_type")?.unwrap_or(default);
    let wrong = || Err(s.wrong("model_type", &given.into(), DECODER_NAMES));
    if !MODEL_TYPES.iter().any(|known| known.name == given) {
        return wrong();
    }
    let family = named(given)?;
    let stands_alone = family.stands_in || family.is_eager() || OF_WHOLE.contains(&given);
    match stands_alone {
        true => wrong(),
        false => DecoderConfig::read(s, family),
    }
}

/// The most usual types that [`read_text`] accepts, for messages.
const DECODER_NAMES: &str = "a decoder, such as llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text or phi3";
