//! Configuration of Muse Glimmer.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::{
    Biases, DecoderConfig, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement,
    WindowLength, Windows, slides_with_a_number,
};
use crate::model::facts::ModelType;
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};
use crate::nn::{NormKind, RmsScale};

/// Muse Glimmer: a tower over the patches of all images at once, some of whose blocks see windows, and a decoder whose
/// attention is gated and whose embeddings are normed.
///
/// Source: `transformers/models/muse_glimmer/configuration_muse_glimmer.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MuseGlimmerConfig {
    /// The vision tower.
    pub vision: MuseVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Width of what the adapter takes: of all patches that become one token.
    pub merged: u64,
    /// Width of what the adapter makes.
    pub adapter: u64,
    /// Activation of the adapter.
    pub activation: Activation,
}

/// Muse Glimmer's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct MuseVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Side of the square grid of learned positions, and of a window, in patches.
    pub side: u64,
    /// For each block, true if its attention is over whole images (`full_attention`), false if over windows.
    pub sees_all: Vec<bool>,
}

/// Blocks of the language model and of the tower (`MuseGlimmerTextConfig`, `MuseGlimmerVisionConfig`).
const LAYERS: [u64; 2] = [52, 50];

/// Most tokens of an image (`MuseGlimmerImageProcessor.max_image_tokens`).
const MOST_TOKENS: u64 = 4096;

/// `muse_glimmer_text`, of which transformers has no class with a head: it is a part of the whole model alone.
static TEXT: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "muse_glimmer_text",
        classes: &[],
    },
    defaults: DecoderDefaults {
        vocab: 202_048,
        hidden: 6656,
        intermediate: 19_968,
        layers: LAYERS[0],
        heads: 32,
        kv_heads: Some(2),
        head_dim: Some(128),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        slides_with_a_number(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(2048),
        slides: |s, _, layer| {
            let layers = s.size_or("num_hidden_layers", LAYERS[0], limits::LAYERS)?;
            Ok(!(layers - 1 - layer).is_multiple_of(4))
        },
    },
    newer_activation_key: Some("hidden_activation"),
    modules: Modules::Llama(LlamaModules {
        both_masks: true,
        norms_embeddings: true,
        tables_for_sliding: true,
        last_norm: Some(NormKind::Power),
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::OnePlusWeight),
            placement: NormPlacement::Sandwich,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

impl MuseGlimmerConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = read_text(&s.nested_or_empty("text_config", "Muse Glimmer language")?)?;
        // The language model's own key ties nothing: the head is the whole model's.
        let text = DecoderConfig {
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
            ..text
        };
        Ok(Self {
            vision: MuseVisionConfig::read(&s.nested_or_empty("vision_config", "Muse Glimmer vision")?)?,
            text,
            merged: s.size_of_class("out_hidden_size", 6144, limits::WIDTH * 4)?,
            adapter: s.size_of_class("projector_hidden_size", 4096, limits::WIDTH * 4)?,
            activation: s.activation("projector_hidden_act", Activation::Gelu)?,
        })
    }
}

fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    let text = DecoderConfig::read(s, &TEXT)?;
    let types = s.value("layer_types").unwrap_or(&Value::Null);
    if text.windows.iter().all(Option::is_none) {
        let allowed = "some of sliding_attention: without any, the mask of sliding layers is not simulated";
        return Err(s.wrong("layer_types", types, allowed));
    }
    let has_rope = |bases: &Value| {
        let bases = bases.as_array()?;
        Some(bases.iter().map(|base| base.as_f64() != Some(0.0)).collect::<Vec<_>>())
    };
    let sliding: Vec<bool> = text.windows.iter().map(Option::is_some).collect();
    let allowed = "0 for the layers of full_attention and another number for those of sliding_attention";
    s.only("layer_rope_theta", allowed, |bases| {
        has_rope(bases).as_ref() == Some(&sliding)
    })?;
    // Without the list, every fourth layer from the last has no RoPE, whatever it sees.
    if s.value("layer_rope_theta").is_none() {
        let layers = sliding.len();
        let usual = (0..layers).map(|i| !(layers - 1 - i).is_multiple_of(4));
        if !usual.eq(sliding.iter().copied()) {
            let allowed = "full_attention in every fourth layer from the last, as `layer_rope_theta` has zeros";
            return Err(s.wrong("layer_types", types, allowed));
        }
    }
    Ok(text)
}

impl MuseVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patch = s.size("patch_size", 14, limits::PIXELS)?;
        let merge = s.size("merge_size", 2, limits::COUNT)?;
        let width = s.size("hidden_size", 1536, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        let head = s.divide(("hidden_size", width), ("num_attention_heads", heads))?;
        if head % 4 != 0 {
            return Err(s.wrong("hidden_size", &width.into(), "heads of a multiple of 4 elements"));
        }
        s.only("head_dim", "none: its rotary embedding alone reads it", |_| false)?;
        if let Some(table) = s.optional_nested("rope_parameters", "rotary embedding")? {
            table.only("rope_type", "\"axial\"", |kind| kind == "axial")?;
        }
        let side = s.size_or("pos_emb_height", 32, limits::COUNT)?;
        let columns = s.size_or("pos_emb_width", 32, limits::COUNT)?;
        s.equal(("pos_emb_height", side), ("pos_emb_width", columns))?;
        let layers = s.size("num_hidden_layers", LAYERS[1], limits::LAYERS)?;
        Ok(Self {
            patches: QwenPatches {
                layers,
                heads,
                channels: 3,
                patch,
                temporal_patch: s.size_or("patch_temporal", 2, limits::COUNT)?,
                merge,
                resize: Resize {
                    pixels: [0, MOST_TOKENS * patch * patch * merge * merge],
                    widening: Widening::Never,
                },
            },
            width,
            intermediate: s.size("intermediate_size", 8960, limits::WIDTH * 4)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            side,
            sees_all: sees_all(s, layers)?,
        })
    }
}

/// Reads which blocks of the tower attend over whole images: every fourth and the last, unless the file says otherwise.
fn sees_all(s: &Section, layers: u64) -> Result<Vec<bool>, ModelError> {
    let Some(types) = s.value("layer_types") else {
        return Ok((0..layers)
            .map(|i| (i + 1).is_multiple_of(4) || i + 1 == layers)
            .collect());
    };
    let allowed = format!("{layers} entries, each \"window_attention\" or \"full_attention\"");
    let wrong = || s.wrong("layer_types", types, &allowed);
    let list = types
        .as_array()
        .filter(|list| list.len() as u64 == layers)
        .ok_or_else(wrong)?;
    list.iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(true),
            Some("window_attention") => Ok(false),
            _ => Err(wrong()),
        })
        .collect()
}
