//! Functions and modules that Liger 0.8.5 replaces in the models that it knows (`MODEL_TYPE_TO_APPLY_LIGER_FN` in
//! `liger_kernel/transformers/monkey_patch.py`), as transformers 5.17 names their functions and modules: replacing a
//! function of another name does nothing, as that of Qwen2.5-VL's rotary positions.

use crate::nn::{LigerPatches, Norms, Replaced};

/// Types of models that Liger knows and whose replaced modules are not simulated.
const NOT_SIMULATED: [&str; 31] = [
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v4",
    "exaone4",
    "falcon_h1",
    "gemma4",
    "gemma4_text",
    "glm4",
    "glm4v",
    "glm4v_moe",
    "gpt_oss",
    "hunyuan_v1_dense",
    "hunyuan_v1_moe",
    "llama4",
    "llama4_text",
    "ministral",
    "mixtral",
    "mllama",
    "mllama_text_model",
    "muse_glimmer",
    "nemotron",
    "olmo2",
    "olmo3",
    "paligemma",
    "pixtral",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl_moe",
];

/// Returns true if Liger knows models of this type.
pub(crate) fn knows(model_type: &str) -> bool {
    NOT_SIMULATED.contains(&model_type) || patches(model_type, "", false).is_some()
}

/// Norms of a block of a decoder like Llama's, and the last one.
const OF_BLOCKS: &[&str] = &["input_layernorm", "post_attention_layernorm", "norm"];
/// Norms of a decoder's blocks, and of their queries and keys.
const OF_HEADS_TOO: &[&str] = &[
    "input_layernorm",
    "post_attention_layernorm",
    "norm",
    "q_norm",
    "k_norm",
];
/// Norms of Gemma's block with two around each part, and the last one.
const OF_SANDWICHES: &[&str] = &[
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
    "norm",
];
/// Norms of SigLIP's encoder.
const OF_SIGLIP: &[&str] = &["layer_norm1", "layer_norm2", "post_layernorm"];

/// All of a decoder: rotary positions, these norms, MLPs.
const fn decoder(norms: &'static [&'static str]) -> LigerPatches {
    LigerPatches {
        language: Replaced {
            rope: true,
            norms: Norms::Named(norms),
            mlps: true,
        },
        in_place: true,
        ..LigerPatches::NOTHING
    }
}

/// Adds the norms of a tower, of which Liger replaces nothing else.
const fn with_tower_norms(patches: LigerPatches, norms: Norms) -> LigerPatches {
    LigerPatches {
        tower: Replaced {
            norms,
            ..Replaced::NOTHING
        },
        ..patches
    }
}

/// Leaves the rotary function out: it has another name in transformers 5.17, and replacing it does nothing.
const fn without_rope(patches: LigerPatches) -> LigerPatches {
    LigerPatches {
        language: Replaced {
            rope: false,
            ..patches.language
        },
        ..patches
    }
}

/// Patches of a model that is made already: modules that it has, found by their names.
fn in_model(model_type: &str, text_type: &str) -> Option<LigerPatches> {
    Some(match model_type {
        "llama" | "mistral" | "qwen2" | "smollm3" | "phi3" | "granite" => decoder(OF_BLOCKS),
        "qwen3" => decoder(OF_HEADS_TOO),
        "gemma" => decoder(OF_BLOCKS),
        "gemma2" => LigerPatches {
            in_place: false,
            ..decoder(OF_SANDWICHES)
        },
        "gemma3_text" => LigerPatches {
            language: Replaced {
                norms: Norms::All,
                ..decoder(&[]).language
            },
            ..LigerPatches::NOTHING
        },
        "gemma3" => LigerPatches {
            connector: Replaced {
                norms: Norms::All,
                ..Replaced::NOTHING
            },
            ..with_tower_norms(in_model("gemma3_text", "")?, Norms::Named(OF_SIGLIP))
        },
        "qwen2_vl" | "qwen2_5_vl" => {
            with_tower_norms(without_rope(decoder(OF_BLOCKS)), Norms::Named(&["norm1", "norm2"]))
        }
        // Its MLPs are not replaced, and both rotary functions are.
        "qwen3_vl" => LigerPatches {
            language: Replaced {
                mlps: false,
                ..decoder(OF_HEADS_TOO).language
            },
            tower: Replaced {
                rope: true,
                ..Replaced::NOTHING
            },
            in_place: true,
            ..LigerPatches::NOTHING
        },
        "internvl" => with_tower_norms(
            in_model(text_type, "").unwrap_or(LigerPatches::NOTHING),
            Norms::Named(&["layernorm", "layernorm_before", "layernorm_after", "q_norm", "k_norm"]),
        ),
        "smolvlm" => with_tower_norms(
            in_model(text_type, "").unwrap_or(LigerPatches::NOTHING),
            Norms::Named(OF_SIGLIP),
        ),
        "llava" => in_model(text_type, "").unwrap_or(LigerPatches::NOTHING),
        _ => return None,
    })
}

/// Patches of a model of this type with such a language model; `None` if Liger does not know the type.
/// With `before`, classes are replaced before the model is made, and so all modules of each.
pub(crate) fn patches(model_type: &str, text_type: &str, before: bool) -> Option<LigerPatches> {
    let of_model = in_model(model_type, text_type)?;
    if !before {
        return Some(of_model);
    }
    let all = |part: Replaced| Replaced {
        norms: match part.norms {
            Norms::Named([]) => Norms::NONE,
            _ => Norms::All,
        },
        ..part
    };
    Some(match model_type {
        // Only the class of the whole model is replaced: its language model's function needs the model.
        "llava" => LigerPatches::NOTHING,
        _ => LigerPatches {
            language: all(of_model.language),
            tower: all(of_model.tower),
            connector: all(of_model.connector),
            ..of_model
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_around_another_takes_what_that_has() {
        let of = |model: &str, text: &str| patches(model, text, false);
        assert_eq!(
            of("internvl", "qwen2").map(|p| p.language),
            of("qwen2", "").map(|p| p.language)
        );
        assert_eq!(
            of("internvl", "unheard-of").map(|p| p.language),
            Some(Replaced::NOTHING)
        );
        assert_eq!(of("idefics2", "mistral"), None);
        assert_eq!(patches("llava", "llama", true), Some(LigerPatches::NOTHING));
    }
}
