//! Frozen parts and adapters of models with images and without.

use vramscope_engine::setup::{Freeze, FrozenType, Targets, TrainerKind};

use super::tests::{case, case_of, launch, open};
use super::{Aspect, ModelFacts, Note, Remark, Resolved};

/// A model of text alone.
const TEXT: ModelFacts = ModelFacts {
    takes_images: false,
    ..ModelFacts::UNKNOWN
};

#[test]
fn a_text_model_has_no_tower_to_freeze() {
    let full = launch(&["stage: sft\nfinetuning_type: full\ncutoff_len: 512\nimage_max_pixels: 262144\nbf16: true\n"]);
    assert_eq!(case(&full).setup.freeze, Freeze::ALL_BUT_LANGUAGE);
    let text = full.resolve(TEXT);
    assert_eq!(text.not_simulated, Vec::<Remark>::new());
    assert_eq!(case_of(&text).setup.freeze, Freeze::NONE);
    assert!(
        !text.missing.iter().any(|remark| remark.note == Note::MostPixels),
        "{:?}",
        text.missing
    );
    let lora = launch(&["stage: sft\nfinetuning_type: lora\nlora_target: all\n"]);
    assert_eq!(case_of(&lora.resolve(TEXT)).setup.lora_targets, Targets::AllLinear);
}

#[test]
fn a_frozen_tower_gets_no_adapters_by_name_in_llama_factory() {
    let of = |targets: &str| {
        let file = format!("stage: sft\nfinetuning_type: lora\nlora_target: {targets}\n");
        launch(&[&file])
    };
    let all = of("q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj");
    assert_eq!(case(&all).setup.lora_targets, Targets::Projections);
    assert_eq!(
        case(&of("v_proj,q_proj,o_proj,k_proj")).setup.lora_targets,
        Targets::Attention
    );
    assert!(
        open(&of("q_proj,v_proj"))[0].contains("language model alone"),
        "{:?}",
        open(&of("q_proj,v_proj"))
    );
    let text = of("q_proj,v_proj").resolve(TEXT);
    assert_eq!(
        case_of(&text).setup.lora_targets,
        Targets::parse("q_proj,v_proj").unwrap()
    );
    // The connector gets none with `all`, even where it may train.
    let unfrozen = launch(&["stage: sft\nfinetuning_type: lora\nlora_target: all\nfreeze_vision_tower: false\n"]);
    assert!(open(&unfrozen)[0].contains("connector"), "{:?}", open(&unfrozen));
}

#[test]
fn adapters_of_ms_swift_go_where_nothing_is_frozen() {
    let of = |more: &str| {
        launch(&[&format!(
            "swift sft --tuner_type lora --target_modules all-linear {more}"
        )])
    };
    assert_eq!(case(&of("")).setup.lora_targets, Targets::LanguageModel);
    let all = of("--freeze_vit false --freeze_aligner false");
    assert_eq!(case(&all).setup.lora_targets, Targets::AllLinear);
    assert!(open(&of("--freeze_vit false"))[0].contains("alone"));
    let named = launch(&["swift sft --tuner_type lora --target_modules q_proj v_proj"]);
    assert_eq!(
        case(&named).setup.lora_targets,
        Targets::parse("q_proj,v_proj").unwrap()
    );
}

#[test]
fn ms_swift_trains_any_parts() {
    let of = |more: &str| launch(&[&format!("swift sft --tuner_type full --max_length 512 {more}")]);
    for (more, freeze) in [
        ("", Freeze::ALL_BUT_LANGUAGE),
        ("--freeze_vit false", Freeze::CONNECTOR),
        ("--freeze_aligner false", Freeze::VISION),
        ("--freeze_vit false --freeze_aligner false", Freeze::NONE),
        ("--freeze_llm true --freeze_aligner false", Freeze::ALL_BUT_CONNECTOR),
        ("--freeze_llm true --freeze_vit false", Freeze::ALL_BUT_VISION),
        (
            "--freeze_llm true --freeze_vit false --freeze_aligner false",
            Freeze::LANGUAGE,
        ),
    ] {
        let launch = of(more);
        let setup = case(&launch).setup;
        assert_eq!((setup.freeze, setup.trainer), (freeze, TrainerKind::MsSwift), "{more}");
        assert_eq!(setup.frozen_weights, FrozenType::AsTrained);
    }
    let nothing = of("--freeze_llm true");
    assert!(open(&nothing)[0].contains("language model"), "{:?}", open(&nothing));
    let all_logits = of("--use_logits_to_keep false");
    assert_eq!(case(&all_logits).setup.trainer, TrainerKind::Transformers);
}

#[test]
fn transformers_makes_deepspeeds_sizes_of_the_width() {
    let zero = |stage: u64, hidden_size| {
        let auto = r#""reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto""#;
        let file = format!(r#"{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {stage}, {auto}}}}}"#);
        let arguments = "per_device_train_batch_size: 1\nbf16: true\n";
        launch(&[arguments, &file]).resolve(ModelFacts {
            hidden_size,
            ..ModelFacts::UNKNOWN
        })
    };
    let third = zero(3, Some(4096));
    assert_eq!(third.case["zero"]["reduce_bucket_size"], 16_777_216);
    assert_eq!(third.case["zero"]["stage3_prefetch_bucket_size"], 15_099_494);
    assert_eq!(third.case["zero"]["stage3_param_persistence_threshold"], 40_960);
    let second = zero(2, Some(4096));
    assert_eq!(second.case["zero"]["reduce_bucket_size"], 16_777_216);
    assert!(second.case["zero"].get("stage3_prefetch_bucket_size").is_none());
    let open = |resolved: &Resolved| {
        resolved
            .not_simulated
            .iter()
            .filter(|remark| remark.note == Note::AutoSize)
            .count()
    };
    assert_eq!(
        [open(&third), open(&second), open(&zero(3, None)), open(&zero(2, None))],
        [0, 0, 3, 1]
    );
}

#[test]
fn preferences_of_ms_swift_are_learnt_by_its_own_trainer() {
    let of = |more: &str| launch(&[&format!("swift rlhf --max_length 512 --tuner_type lora {more}")]);
    for launch in [of(""), of("--rlhf_type dpo --beta 0.1")] {
        assert_eq!(open(&launch), Vec::<String>::new());
        assert_eq!(case(&launch).setup.trainer, TrainerKind::MsSwiftDpo);
    }
    // Its trainer makes more of the logits, or is another one.
    for more in ["--rlhf_type dpo --rpo_alpha 0.1", "--rlhf_type kto"] {
        let resolved = of(more).resolve(TEXT);
        assert_eq!(resolved.case["trainer"], "transformers", "{more}");
        assert!(
            resolved.not_this_run.iter().any(|left| left.what == Aspect::Loss),
            "{more}"
        );
    }
}
