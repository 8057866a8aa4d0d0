//! Configuration of ERNIE 4.5 VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits, rope};
use crate::model::decoder::{
    Biases, ChosenWeights, DecoderConfig, DecoderFamily, DenseLayers, ExpertKeys, ExpertsConfig, LlamaBlock,
    LlamaModules, Modules, OfDense, Rotation, SharedKeys, not_null,
};
use crate::model::families::decoders::ernie4_5_moe;
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};

/// ERNIE 4.5 VL: a tower like Qwen2-VL's, a resampler that joins patches and frames, and a decoder like ERNIE 4.5's whose
/// image tokens have experts of their own.
///
/// Source: `transformers/models/ernie4_5_vl_moe/configuration_ernie4_5_vl_moe.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ernie45VlConfig {
    /// The vision tower.
    pub vision: ErnieVisionConfig,
    /// The language model, with the experts of text.
    pub text: DecoderConfig,
    /// Experts of images.
    pub image_experts: ExpertsConfig,
    /// Width of the expert that all tokens pass, if there is one.
    pub shared: Option<u64>,
}

/// ERNIE 4.5 VL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct ErnieVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
}

/// `Ernie4_5_VLMoeTextModel`, without its experts.
static TEXT: DecoderFamily = DecoderFamily {
    biases: |s| {
        not_null(
            s,
            &[
                "moe_k",
                "moe_num_experts",
                "moe_num_shared_experts",
                "num_key_value_heads",
                "head_dim",
            ],
        )?;
        let all = s.flag("use_bias", false)?;
        Ok(Biases {
            qkv: all,
            output: all,
            mlp: all,
        })
    },
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            rotation: Rotation::PairedInF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..ernie4_5_moe::FAMILY
};

/// Experts, whose widths and whose shared one stand under keys of another kind.
const EXPERTS: ExpertKeys = ExpertKeys {
    experts: (["moe_num_experts", "num_experts"], 64),
    chosen: (["moe_k", "num_experts_per_tok"], 6),
    intermediate: ("moe_intermediate_size", 1536),
    weights: ChosenWeights::Corrected,
    gate_first: true,
    dense: DenseLayers::Kinds(1),
    shared: SharedKeys::Never,
    of_dense: OfDense::Usual,
};

/// Defaults of `moe_intermediate_size`: experts of text and of images.
const WIDTHS: [u64; 2] = [1536, 512];

/// Default of `mrope_section`: frequencies of height, width and time.
const SECTIONS: [u64; 3] = [22, 22, 20];

/// `Ernie4_5_VLMoeImageProcessor.size`.
const RESIZE: Resize = Resize {
    pixels: [56 * 56, 28 * 28 * 6177],
    widening: Widening::Never,
};

impl Ernie45VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "ERNIE 4.5 VL language")?;
        let vision = s.nested_or_empty("vision_config", "ERNIE 4.5 VL vision")?;
        let mut decoder = read_text(&text)?;
        decoder.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let size = [decoder.hidden, decoder.layers];
        let [of_text, of_images] = widths(&text)?.map(|width| {
            let mut experts = ExpertsConfig::read_of_width(&text, &EXPERTS, size, ("moe_intermediate_size", width))?;
            if text.value("mlp_layer_types").is_none() {
                experts.sparse = (0..decoder.layers).map(|layer| layer > 0).collect();
            }
            Ok::<_, ModelError>(experts)
        });
        let of_text = of_text?;
        let shared = text
            .optional_count("moe_num_shared_experts", limits::COUNT)?
            .unwrap_or(2);
        let shared = (shared > 0).then_some(shared * of_text.sizes.intermediate);
        decoder.experts = Some(of_text);
        Ok(Self {
            vision: ErnieVisionConfig::read(&vision)?,
            text: decoder,
            image_experts: of_images?,
            shared,
        })
    }
}

fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    rope::unscaled_table(s)?;
    let mut text = DecoderConfig::read(s, &TEXT)?;
    text.attention_dropout = 0.0;
    let sections = text.rope.mrope_section.clone().unwrap_or_else(|| SECTIONS.to_vec());
    let half = text.head_dim / 2;
    match sections[..] {
        [height, width, time] if height == width && time > 0 && 2 * height + time == half => {}
        _ => {
            let allowed = format!("three numbers whose sum is {half}, half of a head, the first two equal");
            return Err(s.wrong("rope_parameters.mrope_section", &sections.clone().into(), &allowed));
        }
    }
    text.rope.mrope_section = Some(sections);
    Ok(text)
}

/// Reads the widths of the experts of text and of images.
fn widths(s: &Section) -> Result<[u64; 2], ModelError> {
    let Some(given) = s.optional_indices("moe_intermediate_size", limits::WIDTH * 4)? else {
        return Ok(WIDTHS);
    };
    match given[..] {
        [text, images, ..] if text > 0 && images > 0 => Ok([text, images]),
        _ => Err(s.wrong(
            "moe_intermediate_size",
            &given.clone().into(),
            "two widths, of the experts of text and of images",
        )),
    }
}

impl ErnieVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let mut patches = QwenPatches::read(s, 32, 14)?;
        patches.temporal_patch = 1;
        patches.resize = RESIZE;
        s.only(
            "temporal_merge_size",
            "2: others are not implemented in transformers",
            |n| n.as_u64() == Some(2),
        )?;
        let width = s.size("hidden_size", 1280, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 5120, limits::WIDTH * 4)?,
            activation: s.activation("hidden_act", Activation::QuickGelu)?,
        })
    }
}
