//! Repositories that bring code of their own (`auto_map`, `trust_remote_code`): transformers runs that code, not a class of
//! its own. Some of these models have a form of the same sizes in transformers, which is what can be simulated.

use serde_json::{Map, Value, json};

/// Code that a repository brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCode {
    /// File of the model's class, `modeling_qwen.py`.
    pub file: String,
}

impl OwnCode {
    /// Reads which code a configuration names for the model; `None` if transformers' own is run.
    pub fn of(config: &Map<String, Value>) -> Option<Self> {
        let classes = config.get("auto_map")?.as_object()?;
        let model = classes.iter().find(|(auto, _)| auto.starts_with("AutoModel"));
        let named = model.or_else(|| classes.iter().next())?.1;
        // `[slow, fast]` for tokenizers; `repository--file.Class` for code of another repository.
        let named = named.as_str().or_else(|| named.get(0)?.as_str())?;
        let (_, local) = named.rsplit_once("--").unwrap_or(("", named));
        let module = local.split('.').next().filter(|module| !module.is_empty())?;
        Some(Self {
            file: format!("{module}.py"),
        })
    }
}

/// Returns a configuration of transformers' own class with the same sizes as one whose repository brings its code; `None` if
/// transformers has no such class, or reads the configuration as it is.
pub(crate) fn in_transformers_form(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    match config.get("model_type")?.as_str()? {
        "qwen" => of_qwen(config),
        "internlm2" | "internlm" => of_internlm(config),
        "internvl_chat" => of_internvl_chat(config),
        "Yi" => Some(with(config, [("model_type", "llama".into())])),
        "baichuan" => of_baichuan(config),
        _ => None,
    }
}

/// Returns a configuration of transformers' own classes that is larger in each part than one whose repository brings its
/// code, so that a run of it needs more; `None` if there is none.
pub(crate) fn larger_form(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    match config.get("model_type")?.as_str()? {
        "minicpmv" => of_minicpmv(config),
        _ => None,
    }
}

/// MiniCPM-V from 2.5 on, `modeling_minicpmv.py`: SigLIP's tower over each slice of a picture, one cross-attention of
/// `query_num` queries (`resampler.py`), a language model. Idefics2 has this tower and any language model; its connector, a
/// gated projection as wide as the language model's and a perceiver, is larger in parameters (also by the positions that
/// its tower lacks here) and in activations.
fn of_minicpmv(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    /// Patches along a side of a slice of 448 × 448 pixels, with one more: sides are rounded to whole patches.
    const SIDE: u64 = 33;
    let vision = config.get("vision_config")?.as_object()?;
    let (hidden, patch) = (
        number(config, "hidden_size")?,
        number(vision, "patch_size").unwrap_or(14),
    );
    // Of language models: `version` is a number or a text.
    let version = config
        .get("version")
        .map(|version| version.to_string().replace('"', ""));
    let language = match version.as_deref() {
        Some("2.6") => "qwen2",
        Some("4.5") => "qwen3",
        None | Some("2.5" | "4" | "4.0") => "llama",
        Some(_) => return None,
    };
    let is_of_text = |key: &str| {
        ![
            "vision_config",
            "slice_config",
            "auto_map",
            "architectures",
            "model_type",
        ]
        .contains(&key)
    };
    let mut text: Map<String, Value> = config.clone();
    text.retain(|key, _| is_of_text(key));
    text.insert("model_type".into(), language.into());
    let heads = hidden.checked_div(128)?;
    let of_vision = |key: &str, default: u64| number(vision, key).unwrap_or(default);
    let form = json!({
        "model_type": "idefics2",
        "vision_config": {
            "hidden_size": of_vision("hidden_size", 1152),
            "intermediate_size": of_vision("intermediate_size", 4304),
            "num_hidden_layers": of_vision("num_hidden_layers", 27),
            "num_attention_heads": of_vision("num_attention_heads", 16),
            "image_size": SIDE.checked_mul(patch)?,
            "patch_size": patch,
        },
        "perceiver_config": {
            "resampler_n_latents": number(config, "query_num").unwrap_or(64),
            "resampler_depth": 1,
            "resampler_n_heads": heads,
            "num_key_value_heads": heads,
            "resampler_head_dim": 128,
        },
        "tie_word_embeddings": config.get("tie_word_embeddings").cloned().unwrap_or(json!(false)),
        "torch_dtype": config.get("torch_dtype").cloned().unwrap_or(json!("bfloat16")),
        "text_config": text,
    });
    form.as_object().cloned()
}

/// Returns the part that trains of a model that also speaks: the thinker of Qwen's omni models; `None` for others.
pub(crate) fn thinker(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let model_type = config.get("model_type")?.as_str()?;
    if !["qwen2_5_omni", "qwen3_omni_moe"].contains(&model_type) {
        return None;
    }
    let thinker = config.get("thinker_config")?.as_object()?;
    Some(with(thinker, [("model_type", format!("{model_type}_thinker").into())]))
}

/// Copies a configuration without `auto_map`, with these keys.
fn with<const N: usize>(config: &Map<String, Value>, keys: [(&str, Value); N]) -> Map<String, Value> {
    let mut out = config.clone();
    out.shift_remove("auto_map");
    out.shift_remove("architectures");
    out.extend(keys.map(|(key, value)| (key.to_owned(), value)));
    out
}

fn number(config: &Map<String, Value>, key: &str) -> Option<u64> {
    config.get(key)?.as_u64()
}

/// Qwen (1), `modeling_qwen.py`: `c_attn` is q, k and v with their biases in one layer, `w1` and `w2` are half of
/// `intermediate_size` wide each. Qwen2 has the same parameters.
fn of_qwen(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let heads = number(config, "num_attention_heads")?;
    let hidden = number(config, "hidden_size")?;
    let head = number(config, "kv_channels").unwrap_or(128);
    // Only the projections of q, k and v have biases.
    let is_qwen2 = config.get("no_bias").and_then(Value::as_bool) != Some(false) && head.checked_mul(heads)? == hidden;
    is_qwen2.then_some(())?;
    let of = |key: &str, default: Value| config.get(key).cloned().unwrap_or(default);
    let text = json!({
        "model_type": "qwen2",
        "hidden_size": hidden,
        "intermediate_size": number(config, "intermediate_size")? / 2,
        "num_hidden_layers": number(config, "num_hidden_layers")?,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": number(config, "vocab_size")?,
        "max_position_embeddings": number(config, "seq_length").unwrap_or(8192),
        "rms_norm_eps": of("layer_norm_epsilon", json!(1e-6)),
        "rope_theta": of("rotary_emb_base", json!(10000)),
        "tie_word_embeddings": of("tie_word_embeddings", json!(false)),
        "use_sliding_window": false,
        "torch_dtype": "bfloat16",
    });
    text.as_object().cloned()
}

/// InternLM 2, `modeling_internlm2.py`: `wqkv` is q, k and v in one layer without biases. Llama has the same parameters.
/// InternLM (1) has biases in its attention where `bias` says so.
fn of_internlm(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let bias = config.get("bias").and_then(Value::as_bool).unwrap_or(false);
    Some(with(
        config,
        [("model_type", "llama".into()), ("attention_bias", bias.into())],
    ))
}

/// InternVL-Chat, `modeling_internvl_chat.py`: the engine reads its file, but for language models whose code is their own.
fn of_internvl_chat(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let llm = config.get("llm_config")?.as_object()?;
    let text = in_transformers_form(llm)?;
    Some(with(config, [("llm_config", Value::Object(text))]))
}

/// Baichuan 7B, `modeling_baichuan.py`: `W_pack` is q, k and v in one layer. Llama has the same parameters; the 13B
/// checkpoints have ALiBi in place of rotary positions, and no such form.
fn of_baichuan(config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let is_rotary = number(config, "hidden_size")? == 4096;
    is_rotary.then(|| with(config, [("model_type", "llama".into())]))
}

#[cfg(test)]
mod tests {
    use vramscope_engine::Model;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("it is an object")
    }

    #[test]
    fn the_file_of_the_models_class_is_named() {
        let cases = [
            (
                json!({"AutoConfig": "configuration_qwen.QWenConfig", "AutoModelForCausalLM": "modeling_qwen.QWenLMHeadModel"}),
                "modeling_qwen.py",
            ),
            (
                json!({"AutoModel": "OpenGVLab/InternVL2-8B--modeling_internvl_chat.InternVLChatModel"}),
                "modeling_internvl_chat.py",
            ),
            (json!({"AutoConfig": "configuration_x.X"}), "configuration_x.py"),
        ];
        for (auto_map, file) in cases {
            let code = OwnCode::of(&object(json!({"auto_map": auto_map})));
            assert_eq!(code.map(|code| code.file).as_deref(), Some(file));
        }
        for config in [
            json!({}),
            json!({"auto_map": {}}),
            json!({"auto_map": "x"}),
            json!({"auto_map": {"AutoModel": 3}}),
        ] {
            assert_eq!(OwnCode::of(&object(config)), None);
        }
    }

    #[test]
    fn the_thinker_of_an_omni_model_is_what_trains() {
        let config = object(json!({"model_type": "qwen2_5_omni", "thinker_config": {"image_token_index": 7}}));
        let expected = json!({"image_token_index": 7, "model_type": "qwen2_5_omni_thinker"});
        assert_eq!(thinker(&config).map(Value::Object), Some(expected));
        assert_eq!(thinker(&object(json!({"model_type": "qwen2_5_omni"}))), None);
        assert_eq!(
            thinker(&object(json!({"model_type": "llama", "thinker_config": {}}))),
            None
        );
    }

    #[test]
    fn a_larger_form_has_each_part() {
        use vramscope_engine::simulate::parameters;
        // The parts of MiniCPM-V: parameters of its tower and language model are those of the form, its connector is smaller.
        let (tower, hidden, queries, positions) = (1152, 4096, 96, 70 * 70);
        let published = json!({"model_type": "minicpmv", "query_num": queries, "hidden_size": hidden, "vocab_size": 1000,
            "intermediate_size": 14336, "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vision_config": {"hidden_size": tower, "intermediate_size": 4304, "num_hidden_layers": 2,
                "num_attention_heads": 16, "patch_size": 14, "image_size": 980}});
        let form = larger_form(&object(published.clone())).expect("it has one");
        let model = Model::from_config(&Value::Object(form).to_string()).expect("it is read");
        let language = json!({"model_type": "llama", "hidden_size": hidden, "vocab_size": 1000, "intermediate_size": 14336,
            "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8});
        let language = Model::from_config(&language.to_string()).expect("it is read");
        let resampler =
            queries * hidden + tower * hidden + 4 * (hidden * hidden + hidden) + 6 * hidden + hidden * hidden;
        let block = 4 * (tower * tower + tower) + 2 * tower * 4304 + 4304 + tower + 4 * tower;
        let vision = positions * tower + 3 * 14 * 14 * tower + tower + 2 * block + 2 * tower;
        assert!(parameters(&model) > parameters(&language) + resampler + vision);
        for other in [json!({"version": "2.6"}), json!({"version": 4.5})] {
            let mut config = object(published.clone());
            config.extend(object(other));
            let form = larger_form(&config).expect("it has one");
            Model::from_config(&Value::Object(form).to_string()).expect("it is read");
        }
        assert_eq!(
            larger_form(&object(json!({"model_type": "minicpmv", "version": "9"}))),
            None
        );
    }

    #[test]
    fn forms_of_other_code_are_read_by_the_engine() {
        let internlm2 = json!({"model_type": "internlm2", "auto_map": {"AutoModel": "m.M"}, "architectures": ["M"], "bias": false,
            "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 16,
            "num_key_value_heads": 8, "vocab_size": 92553});
        let qwen = json!({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
            "num_attention_heads": 32, "kv_channels": 128, "vocab_size": 151936, "no_bias": true, "seq_length": 8192});
        let vision = json!({"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
            "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "qkv_bias": true, "qk_normalization": false,
            "norm_type": "layer_norm"});
        let chat = json!({"model_type": "internvl_chat", "downsample_ratio": 0.5, "vision_config": vision,
            "llm_config": internlm2.clone()});
        let baichuan = json!({"model_type": "baichuan", "hidden_size": 4096, "intermediate_size": 11008,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 64000});
        for config in [internlm2, qwen, chat, baichuan] {
            let form = in_transformers_form(&object(config)).expect("it has one");
            Model::from_config(&Value::Object(form.clone()).to_string()).unwrap_or_else(|e| panic!("{form:?}: {e}"));
        }
        for config in [json!({"model_type": "llama"}), json!({"model_type": "qwen"}), json!({})] {
            assert_eq!(in_transformers_form(&object(config)), None);
        }
    }
}
