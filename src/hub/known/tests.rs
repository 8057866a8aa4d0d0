//! Tests of names that are known.

use super::*;
use crate::not_simulated::not_simulated;

/// Name of the configuration, and weights.
fn of(given: &str) -> Option<(&'static str, Weights)> {
    known(given).map(|known| (known.name, known.weights))
}

/// Names as people write them, the configuration that each means, and its weights.
const NAMES: &[(&str, &str, Weights)] = &[
    ("gpt2", "gpt2", Weights::Plain),
    ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", Weights::Plain),
    ("qwen/qwen3-8b", "Qwen/Qwen3-8B", Weights::Plain),
    ("Qwen/Qwen3-VL-8B-Thinking", "Qwen/Qwen3-VL-8B-Instruct", Weights::Plain),
    ("Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B", Weights::Plain),
    ("google/gemma-3-4b-pt", "google/gemma-3-4b-it", Weights::Plain),
    (
        "meta-llama/Meta-Llama-3.1-8B",
        "meta-llama/Llama-3.1-8B",
        Weights::Plain,
    ),
    ("unsloth/gemma-3-4b-pt", "google/gemma-3-4b-it", Weights::Plain),
    (
        "unsloth/Llama-3.2-11B-Vision-Instruct",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        Weights::Plain,
    ),
    (
        "unsloth/Qwen3-VL-8B-Instruct-unsloth-bnb-4bit",
        "Qwen/Qwen3-VL-8B-Instruct",
        Weights::DynamicNf4,
    ),
    (
        "Qwen/Qwen2-VL-72B-Instruct-GPTQ-Int4",
        "Qwen/Qwen2-VL-72B-Instruct",
        Weights::Gptq,
    ),
    (
        "Qwen/Qwen2.5-VL-7B-Instruct-AWQ",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        Weights::Awq,
    ),
    ("mlx-community/Qwen3-8B-4bit", "Qwen/Qwen3-8B", Weights::Mlx),
    ("OpenGVLab/InternVL3-8B", "OpenGVLab/InternVL3-8B-hf", Weights::Plain),
    (
        "/models/Qwen2-VL-72B-Instruct",
        "Qwen/Qwen2-VL-72B-Instruct",
        Weights::Plain,
    ),
    ("./weights/Qwen2.5-0.5B/", "Qwen/Qwen2.5-0.5B", Weights::Plain),
    ("C:\\models\\Qwen3-8B", "Qwen/Qwen3-8B", Weights::Plain),
    ("/out/Qwen3-8B/checkpoint-500", "Qwen/Qwen3-8B", Weights::Plain),
    (
        "~/.cache/modelscope/hub/Qwen/Qwen2___5-VL-3B-Instruct",
        "Qwen/Qwen2.5-VL-3B-Instruct",
        Weights::Plain,
    ),
    (
        "LLM-Research/Meta-Llama-3-8B-Instruct",
        "meta-llama/Meta-Llama-3-8B-Instruct",
        Weights::Plain,
    ),
    ("qwen2-vl-7b-instruct", "Qwen/Qwen2-VL-7B-Instruct", Weights::Plain),
    ("qwen-7b-chat", "Qwen/Qwen-7B", Weights::Plain),
    ("yi-6b-chat", "01-ai/Yi-6B", Weights::Plain),
    ("./weights/InternVL2-40B", "OpenGVLab/InternVL2-40B", Weights::Plain),
    (
        "OpenGVLab/InternVL3_5-8B",
        "OpenGVLab/InternVL3_5-8B-HF",
        Weights::Plain,
    ),
    ("showlab/ShowUI-2B", "Qwen/Qwen2-VL-2B-Instruct", Weights::Plain),
];

#[test]
fn names_as_people_write_them_lead_to_the_model() {
    for (given, name, weights) in NAMES {
        assert_eq!(of(given), Some((*name, *weights)), "{given}");
    }
}

#[test]
fn another_size_or_another_name_leads_to_none() {
    let others = [
        "Qwen/Qwen2.5-VL-4B-Instruct",
        "/models/Qwen2.5-0.5B-with-eye",
        "/models/mine",
        "someone/model",
        "qwen2_5_vl",
        "Qwen/Qwen2.5-7B-Instruct-1M",
        "",
        "/",
        "..",
        "7b",
        "instruct",
    ];
    for given in others {
        assert_eq!(of(given), None, "{given}");
    }
}

#[test]
fn what_is_taken_for_a_model_has_a_remark_and_its_own_name_none() {
    for given in ["Qwen/Qwen3-8B", "gpt2"] {
        assert_eq!(known(given).map(|known| known.remarks), Some(Vec::new()));
    }
    for given in [
        "/models/Qwen3-8B",
        "unsloth/Qwen3-8B",
        "Qwen/Qwen3-8B@v2",
        "qwen2-vl-7b-instruct",
    ] {
        assert!(known(given).is_some_and(|known| !known.remarks.is_empty()), "{given}");
    }
    // A stranger's repository of that name may hold anything.
    assert!(known("stranger/Qwen3-8B").is_some_and(|known| !known.is_certain));
    assert!(known("unsloth/Qwen3-8B").is_some_and(|known| known.is_certain));
}

#[test]
fn every_known_configuration_is_one() {
    for name in known_ids() {
        let found = known(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(found.name, name);
        let config = found.config().unwrap_or_else(|error| panic!("{name}: {error}"));
        Model::from_config(&config).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for [id, base] in fine_tuned() {
        let (found, of) = (known(id), known(base));
        assert!(of.as_ref().is_some_and(|of| of.is_certain), "{id}: {base}");
        assert_eq!(found.map(|found| found.name), of.map(|of| of.name), "{id}");
    }
}

#[test]
fn weights_that_are_not_simulated_are_refused_with_a_way_on() {
    let found = known("Qwen/Qwen2.5-7B-Instruct-AWQ").expect("it is known");
    let why = found.config().expect_err("it is refused").to_string();
    for part in ["AWQ", "name Qwen/Qwen2.5-7B-Instruct", "--freeze qlora"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let nf4 = known("unsloth/Qwen2.5-7B-Instruct-bnb-4bit").expect("it is known");
    let config = nf4.config().expect("it is simulated");
    let model = Model::from_config(&config).expect("it is read");
    assert!(matches!(model.stored, vramscope_engine::model::Stored::Nf4(_)));
}

#[test]
fn models_with_their_own_code_have_their_published_parameters() {
    use vramscope_engine::simulate::parameters;
    let published = [
        ("Qwen/Qwen-1_8B-Chat", 1_836_828_672),
        ("Qwen/Qwen-7B-Chat", 7_721_324_544),
        ("Qwen/Qwen-14B-Chat", 14_167_290_880),
        ("Qwen/Qwen-72B-Chat", 72_287_920_128),
    ];
    for (id, count) in published {
        let found = known(id).unwrap_or_else(|| panic!("{id}"));
        let model = Model::from_config(&found.config().expect("it is read")).expect("it is read");
        assert_eq!(parameters(&model), count, "{id}");
        assert!(
            found
                .remarks
                .iter()
                .any(|remark| matches!(remark, Remark::OwnCode { .. })),
            "{:?}",
            found.remarks
        );
    }
}

#[test]
fn a_model_that_is_bounded_says_so() {
    for (given, language) in [
        ("openbmb/MiniCPM-Llama3-V-2_5", "meta-llama/Meta-Llama-3-8B"),
        ("/models/MiniCPM-V-2_6", "Qwen/Qwen2-7B-Instruct"),
    ] {
        let found = known(given).unwrap_or_else(|| panic!("{given}"));
        assert!(
            found.remarks.iter().any(|remark| remark.bound().is_some()),
            "{:?}",
            found.remarks
        );
        let config = found.config().expect("it is read");
        let model = Model::from_config(&config).expect("it is read");
        let config = Model::catalogue_config(language).expect("it is known");
        let language = Model::from_config(config).expect("it is read");
        use vramscope_engine::simulate::parameters;
        // SigLIP's tower has 0.41 billion parameters.
        assert!(parameters(&model) > parameters(&language) + 400_000_000, "{given}");
    }
    assert!(known("openbmb/MiniCPM-V-2_6-int4").is_some_and(|known| known.config().is_err()));
}

/// Names in 44 launch files of public repositories that name no model of the catalogue as it is written there.
const IN_LAUNCH_FILES: [&str; 44] = [
    "Qwen/Qwen-7B-Chat",
    "meta-llama/Llama-2-70b-hf",
    "meta-llama/Llama-2-70b-hf",
    "meta-llama/Llama-2-70b-hf",
    "showlab/ShowUI-2B",
    "Qwen/Qwen3-VL-Embedding-8B",
    "unsloth/ERNIE-4.5-VL-28B-A3B-PT",
    "qwen-7b-chat",
    "Qwen/Qwen2-VL-72B-Instruct-GPTQ-Int4",
    "/models/Qwen2-VL-72B-Instruct",
    "/models/Qwen2-VL-2B-Instruct",
    "google/gemma-4-E2B-it",
    "deepseek-ai/deepseek-vl2-tiny",
    "mistralai/Magistral-Small-2509",
    "./weights/InternVL2-40B",
    "./weights/InternVL-Chat-V1-5",
    "./weights/InternVL-Chat-V1-5",
    "./weights/InternVL-Chat-V1-5",
    "/hub/models--Qwen--Qwen2.5-VL-72B-Instruct/snapshots/0123456789abcdef0123456789abcdef01234567",
    "/hub/models--Qwen--Qwen2.5-VL-72B-Instruct/snapshots/fedcba9876543210fedcba9876543210fedcba98",
    "unsloth/Qwen3-VL-8B-Instruct-unsloth-bnb-4bit",
    "axolotl-quants/Llama-4-Scout-17B-16E-Linearized-bnb-nf4-bf16",
    "openbmb/MiniCPM-Llama3-V-2_5",
    "openbmb/MiniCPM-Llama3-V-2_5",
    "openbmb/MiniCPM-Llama3-V-2_5",
    "openbmb/MiniCPM-Llama3-V-2_5",
    "zai-org/GLM-4.7-Flash",
    "Qwen/Qwen-7B-Chat",
    "unsloth/Meta-Llama-3.1-8B",
    "/models/Qwen2.5-0.5B",
    "Qwen/Qwen-72B-Chat",
    "unsloth/Llama-3.2-11B-Vision-Instruct",
    "unsloth/Llama-3.2-11B-Vision-Instruct",
    "mistralai/Ministral-3-3B-Instruct-2512-BF16",
    "/models/InternVL3-8B",
    "unsloth/Llama-3.3-70B-Instruct",
    "OpenGVLab/InternVL3_5-8B-HF",
    "Qwen/Qwen3-Omni-30B-A3B-Instruct",
    "Qwen/Qwen2.5-Omni-7B",
    "yi-6b-chat",
    "/models/Meta-Llama-3-8B-Instruct",
    "AIDC-AI/Ovis2.5-2B",
    "google/gemma-3-4b-pt",
    "unsloth/gemma-3-4b-pt",
];

#[test]
fn launch_files_find_their_models_without_a_network() {
    let (found, others): (Vec<&str>, Vec<&str>) = IN_LAUNCH_FILES.iter().partition(|given| known(given).is_some());
    assert!(found.len() >= 40, "{others:?}");
    for given in others {
        assert!(not_simulated(given).is_some(), "{given}");
    }
}
