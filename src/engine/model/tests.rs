//! Tests of reading configurations and of the catalogue.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::decoder::{DecoderConfig, Modules};
use crate::model::families::llava::LlavaConfig;
use crate::model::families::mllama::MllamaConfig;
use crate::model::families::qwen2_5_vl::Qwen25VlConfig;
use crate::model::parts::llava_vision::FeatureSelect;

fn decoder(text: &str) -> DecoderConfig {
    of_type(Model::from_config(text))
}

fn of_type<C: std::any::Any + Clone>(model: Result<Model, ModelError>) -> C {
    let model = model.expect("it can be read");
    let config = model.config.downcast();
    config.cloned().unwrap_or_else(|| panic!("{model:?}"))
}

fn message(text: &str) -> String {
    Model::from_config(text).expect_err("must be refused").to_string()
}

/// Returns a catalogue file with one change.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut config = serde_json::from_str(Model::catalogue_config(name).unwrap()).unwrap();
    change(&mut config);
    config.to_string()
}

#[test]
fn every_catalogue_file_is_a_known_family() {
    for name in Model::catalogue() {
        let model = Model::from_catalogue(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let config: Value = serde_json::from_str(Model::catalogue_config(name).unwrap()).unwrap();
        assert!(
            config["model_type"].is_string(),
            "{name} must state a supported model_type"
        );
        assert_eq!(model.name, name);
    }
}

#[test]
fn catalogue_names_are_unique() {
    let mut names = Model::catalogue();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Model::catalogue().len());
}

#[test]
fn llama_reads_its_shape() {
    let d = decoder(Model::catalogue_config("llama3.2-1b").unwrap());
    assert_eq!(
        (d.vocab, d.hidden, d.layers, d.heads, d.kv_heads, d.head_dim),
        (128_256, 2048, 16, 32, 8, 64)
    );
    assert!(d.tie_word_embeddings && !d.qkv_bias && !d.qk_norm);
    assert_eq!(d.windows, vec![None; 16]);
}

#[test]
fn qwen2_has_biases_on_query_key_and_value_alone() {
    let d = decoder(Model::catalogue_config("qwen2.5-0.5b").unwrap());
    assert!(d.qkv_bias && !d.o_bias && !d.mlp_bias);
}

#[test]
fn qwen2_slides_only_when_switched_on_and_past_the_full_layers() {
    let text = changed("qwen2.5-0.5b", |c| {
        c["use_sliding_window"] = true.into();
        c["sliding_window"] = 1024.into();
        c["max_window_layers"] = 20.into();
    });
    let windows = decoder(&text).windows;
    assert_eq!(windows[19], None);
    assert_eq!(windows[20], Some(1024));
}

#[test]
fn llava_without_nested_sizes_is_the_hub_file() {
    // llava-hf/llava-1.5-7b-hf states little more of its language model than the vocabulary.
    let text = json!({
        "model_type": "llava",
        "image_token_index": 32000,
        "vision_feature_layer": -2,
        "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "torch_dtype": "float16", "vocab_size": 32064},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
            "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14},
    });
    let given: LlavaConfig = of_type(Model::from_config(&text.to_string()));
    assert_eq!(
        (given.text.hidden, given.text.layers, given.text.vocab),
        (4096, 32, 32_064)
    );
    assert_eq!(given.feature_layers.indices, [23]);
    assert_eq!(given.feature_select, FeatureSelect::Default);
    assert_eq!(given.image_tokens(), 576);
}

/// transformers' `validate_architecture` refuses this though `head_dim` is given; Mistral does not check it.
#[test]
fn heads_that_do_not_divide_the_width_are_refused_where_transformers_refuses_them() {
    let with = |model_type: &str| {
        let text = json!({"model_type": model_type, "vocab_size": 1000, "hidden_size": 896, "intermediate_size": 2048,
            "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 2});
        Model::from_config(&text.to_string()).map_err(|error| error.to_string())
    };
    for refused in ["llama", "gemma2", "gemma3_text"] {
        let why = with(refused).unwrap_err();
        assert!(why.contains("`hidden_size` is 896") && why.contains("is 24"), "{why}");
    }
    for fine in ["mistral", "qwen2", "qwen3", "gemma"] {
        assert_eq!(with(fine).err(), None);
    }
}

/// Intel/llava-gemma-2b is such a model.
#[test]
fn llava_may_hold_a_gemma() {
    for family in ["llava", "llava_next"] {
        let text = json!({
            "model_type": family,
            "text_config": {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16_384,
                "num_attention_heads": 8, "num_key_value_heads": 1, "num_hidden_layers": 18, "vocab_size": 256_064},
            "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
                "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14},
        });
        let model = Model::from_config(&text.to_string()).unwrap();
        assert!(
            model.has_forward() && model.lazy_group() == Some(LazyGroup::Blocks),
            "{family}"
        );
    }
}

#[test]
fn a_name_needs_the_code_that_its_file_needs() {
    for name in Model::catalogue() {
        let file = Model::catalogue_config(name).expect("it is linked in");
        assert_eq!(LazyGroup::of_name(name), LazyGroup::of_config(file), "{name}");
    }
    for (text, group) in [("llama", None), ("qwen3_moe", Some(LazyGroup::Blocks))] {
        let config = json!({"model_type": "llava", "text_config": {"model_type": text}});
        assert_eq!(LazyGroup::of_config(&config.to_string()), group, "{text}");
    }
}

#[test]
fn a_tied_language_model_ties_llava() {
    let llava: LlavaConfig = of_type(Model::from_catalogue("tinyllava-1.5b"));
    assert!(llava.text.tie_word_embeddings);
}

#[test]
fn a_case_changes_the_image() {
    let case = crate::Case::from_json(r#"{"model": "llava-1.5-7b", "image": 224}"#)
        .unwrap()
        .unwrap();
    let llava: LlavaConfig = of_type(Model::from_case(&case));
    assert_eq!(llava.image_tokens(), 256);
}

#[test]
fn a_case_shortens_mllama_and_keeps_the_cross_attention_that_is_left() {
    let case = crate::Case::from_json(r#"{"model": "mllama", "layers": 10}"#)
        .unwrap()
        .unwrap();
    let mllama: MllamaConfig = of_type(Model::from_case(&case));
    let text = mllama.text;
    assert_eq!((text.decoder.layers, text.cross_attention_layers), (10, vec![3, 8]));
}

#[test]
fn flat_and_nested_files_of_qwen2_vl_say_the_same() {
    let config = |name| of_type::<Qwen25VlConfig>(Model::from_catalogue(name));
    let (mut flat, nested) = (config("Qwen/Qwen2.5-VL-7B-Instruct"), config("qwen2.5-vl-7b"));
    assert_eq!(flat.text.rope.mrope_section, Some(vec![16, 24, 24]));
    flat.text.max_positions = nested.text.max_positions;
    flat.image_token = nested.image_token;
    assert_eq!(flat, nested);
}

#[test]
fn original_internvl_files_name_the_same_parts_otherwise() {
    let chat = json!({
        "model_type": "internvl_chat",
        "downsample_ratio": 0.5,
        "llm_config": {"model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
            "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151_674, "rope_theta": 1e6,
            "max_position_embeddings": 32768, "tie_word_embeddings": false, "use_sliding_window": false},
        "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 448, "patch_size": 14,
            "norm_type": "layer_norm", "qkv_bias": true, "qk_normalization": false},
    });
    let read = Model::from_config(&chat.to_string()).unwrap().config;
    assert_eq!(read, Model::from_catalogue("OpenGVLab/InternVL3-2B-hf").unwrap().config);
}

#[test]
fn gemma_decoders_alternate_windows_and_cap_by_family() {
    let d = |name| decoder(Model::catalogue_config(name).unwrap());
    let (two, three) = (d("google/gemma-2-2b"), d("google/gemma-3-1b-pt"));
    assert_eq!(two.windows[..2], [Some(4096), None]);
    assert_eq!(three.windows[4..7], [Some(512), None, Some(512)]);
    assert_eq!((two.attention_softcap, two.logit_softcap), (Some(50.0), Some(30.0)));
    assert_eq!((three.attention_softcap, three.qk_norm), (None, true));
    let sandwich_norms = |d: &DecoderConfig| match d.family.modules {
        Modules::Gemma(modules) => modules.sandwich_norms,
        Modules::Llama(_) => false,
    };
    assert!(two.tie_word_embeddings && two.is_gemma() && sandwich_norms(&two));
}

#[test]
fn older_spellings_of_rope_are_read() {
    let text = changed("llama3.1-8b", |c| {
        c["rope_theta"] = 500_000.0.into();
        c["rope_scaling"] = json!({"type": "linear", "factor": 2.0});
    });
    let rope = decoder(&text).rope;
    assert_eq!((rope.kind, rope.theta), (config::RopeKind::Linear, 500_000.0));
}

/// An unknown family may have norms, biases, experts or layers that its file does not name.
#[test]
fn an_unknown_decoder_is_refused_with_the_nearest_that_is_known() {
    let text = |model_type: &str| changed("llama3.2-1b", |c| c["model_type"] = model_type.into());
    for model_type in ["quokka", "newcomer_moe"] {
        let why = message(&text(model_type));
        assert!(
            why.contains("no name that is known is near") && !why.contains("nearest"),
            "{why}"
        );
        assert!(why.contains("vramscope record"), "{why}");
    }
    for (model_type, nearest) in [("qwen4_next", "qwen3"), ("gemma5", "gemma")] {
        let why = message(&text(model_type));
        assert!(why.contains(&format!("\"{model_type}\" is not supported")), "{why}");
        assert!(why.contains(&format!("nearest: \"{nearest}")), "{why}");
    }
}

#[test]
fn decoders_with_a_forward_of_their_own_are_simulated_with_a_note() {
    for (model_type, noted) in [("granite", false), ("helium", true), ("cwm", false), ("llama", false)] {
        let text = changed("llama3.2-1b", |c| {
            c["model_type"] = model_type.into();
            c["architectures"] = Value::Null;
        });
        assert_eq!(
            Model::from_config(&text).map(|model| model.generic),
            Ok(noted),
            "{model_type}"
        );
    }
}

#[test]
fn messages_name_what_was_given_and_what_is_allowed() {
    let cases = [
        (
            "{",
            "config.json is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "[]",
            "a config.json is a JSON object, such as {\"model_type\": \"llama\", …}",
        ),
        (
            r#"{"model_type": "llama"}"#,
            "`hidden_size` is missing; a llama config.json states it, such as \"hidden_size\": 4096",
        ),
        (
            r#"{"model_type": "gpt2", "n_embd": 0}"#,
            "`n_embd` is 0; a gpt2 model needs a whole number from 1 to 262144",
        ),
        (
            r#"{"model_type": "gpt2", "n_embd": 10, "n_head": 3}"#,
            "`n_embd` is 10 and `n_head` is 3: a gpt2 model needs the first to be a multiple of the second",
        ),
        (
            r#"{"model_type": "llava", "text_config": {}}"#,
            "`vision_config` is missing; a llava config.json states it, such as \"vision_config\": {…}",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), expected);
    }
}

#[test]
fn an_unknown_name_lists_near_ones() {
    let error = Model::from_catalogue("lava-1.5-7b").unwrap_err().to_string();
    assert!(
        error.starts_with("no model is named \"lava-1.5-7b\"; did you mean: llava-1.5-7b"),
        "{error}"
    );
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Returns every key of a catalogue file, nested ones as (section, key).
fn keys_of(name: &str) -> Vec<(Option<String>, String)> {
    let config: Value = serde_json::from_str(Model::catalogue_config(name).unwrap()).unwrap();
    let mut keys = Vec::new();
    for (key, value) in config.as_object().unwrap() {
        keys.push((None, key.clone()));
        for inner in value.as_object().into_iter().flatten() {
            keys.push((Some(key.clone()), inner.0.clone()));
        }
    }
    keys
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = Model::from_config(&text);
    }

    #[test]
    fn a_catalogue_file_with_arbitrary_values_never_panics(
        model in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        value in arbitrary_json(),
    ) {
        let names = Model::catalogue();
        let name = names[model.index(names.len())];
        let keys = keys_of(name);
        let (section, key) = &keys[place.index(keys.len())];
        let text = changed(name, |c| match section {
            Some(section) => c[section][key] = value,
            None => c[key] = value,
        });
        if let Err(error) = Model::from_config(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

/// Parameters of a model.
fn params(text: &str) -> u64 {
    let model = Model::from_config(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let setup = Setup {
        seq: 8,
        ..Setup::default()
    };
    crate::simulate(&model, &setup).expect("it runs").params
}

#[test]
fn mamba_has_the_width_that_its_file_states() {
    for name in ["mamba", "falcon_mamba"] {
        let config = |more: &str| {
            format!(r#"{{"model_type": "{name}", "hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 100{more}}}"#)
        };
        // As transformers 5.17 counts them.
        assert_eq!(params(&config("")), 39_168, "{name}");
        assert_eq!(params(&config(r#", "expand": 3"#)), 55_488, "{name}");
        assert_eq!(params(&config(r#", "intermediate_size": 100"#)), 32_028, "{name}");
        let refused = message(&config(r#", "intermediate_size": null"#));
        assert!(refused.contains("`intermediate_size` is null"), "{refused}");
    }
}

#[test]
fn sizes_that_sections_leave_to_their_classes_are_noted() {
    let defaults = |text: &str| Model::from_config(text).unwrap().class_defaults;
    let all = defaults(r#"{"model_type": "gemma4"}"#);
    assert_eq!(all.sections, ["text_config"]);
    let sizes: Vec<&str> = all.sizes.iter().map(|(path, _)| path.as_str()).collect();
    for key in [
        "num_hidden_layers",
        "vocab_size",
        "num_attention_heads",
        "hidden_size",
        "intermediate_size",
        "head_dim",
    ] {
        let path = format!("text_config.{key}");
        assert!(sizes.contains(&path.as_str()), "{path}: {sizes:?}");
    }
    assert!(all.sizes.contains(&("text_config.hidden_size".to_owned(), 2304)));
    // One that is stated leaves the others.
    let some = defaults(r#"{"model_type": "gemma4", "text_config": {"hidden_size": 2304}}"#);
    assert!(some.sections.is_empty());
    assert_eq!(some.sizes.len(), all.sizes.len() - 1);
    // A whole file that states its sizes leaves none, and neither does a published one.
    assert_eq!(
        defaults(Model::catalogue_config("llama3.2-1b").unwrap()),
        ClassDefaults::default()
    );
    assert_eq!(
        Model::from_catalogue("llava-1.5-7b").unwrap().class_defaults,
        ClassDefaults::default()
    );
}
