//! Tests of each option of a setup, by the numbers that it must change and those that it must not.

use vramscope_engine::report::Severity;
use vramscope_engine::simulate::{evaluate, generate, record, simulate};
use vramscope_engine::tape::log::Event;
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_engine::{Case, Model, Report, Setup};

const LLAMA: &str = r#"{"model_type":"llama","vocab_size":4000,"hidden_size":128,"intermediate_size":320,
    "num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":256,
    "tie_word_embeddings":false}"#;
const LLAVA: &str = r#"{"model_type":"llava","image_token_index":999,
    "vision_config":{"model_type":"clip_vision_model","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,
        "num_attention_heads":4,"image_size":56,"patch_size":14},
    "text_config":{"model_type":"llama","vocab_size":1000,"hidden_size":128,"intermediate_size":320,
        "num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":4,"max_position_embeddings":256}}"#;

fn try_run(config: &str, setup: &str) -> Result<Report, String> {
    simulate(&Model::from_config(config).unwrap(), &self::setup(setup)).map_err(|e| e.to_string())
}

fn setup(keys: &str) -> Setup {
    let case = Case::from_json(&format!(r#"{{"model":"x","batch":2,"seq":128,{keys}}}"#));
    case.unwrap().unwrap().setup
}

fn run(config: &str, setup: &str) -> Report {
    try_run(config, setup).unwrap_or_else(|e| panic!("{setup}: {e}"))
}

/// Bytes of activations that LLaVA allocates and keeps for backward.
fn activations(setup: &Setup) -> u64 {
    let run = record(&Model::from_config(LLAVA).unwrap(), setup, Gpu::H200);
    let bytes = |event: &Event| {
        let allocation = &run.log.allocations[event.storage() as usize];
        match (allocation.kind, event.is_alloc()) {
            (Kind::Activation, true) => allocation.bytes as i64,
            (Kind::Activation, false) => -(allocation.bytes as i64),
            _ => 0,
        }
    };
    let forward = &run.steady.events[..run.steady.marks.after_forward];
    forward.iter().map(bytes).sum::<i64>() as u64
}

/// Bytes of one kind when a step begins.
fn at_start(report: &Report, kind: Kind) -> u64 {
    let at = report.timeline.at(0);
    at.iter().find(|(k, _)| *k == kind).map_or(0, |(_, bytes)| bytes.get())
}

#[test]
fn each_part_is_checkpointed_alone() {
    let kept = |ckpt: &str| activations(&setup(&format!(r#""ckpt":"{ckpt}""#)));
    let [none, vision, language, full] = ["none", "vision", "language", "full"].map(kept);
    assert!(full < vision && full < language);
    assert!(vision < none && language < none);
    let text = |ckpt: &str| run(LLAMA, &format!(r#""ckpt":"{ckpt}""#)).steady;
    assert_eq!(text("language"), text("full"));
    assert_eq!(text("vision"), text("none"));
}

#[test]
fn moments_in_bytes_take_a_quarter_of_those_in_fp32() {
    let states = |optim: &str| {
        let report = run(LLAMA, &format!(r#""precision":"fp32","optim":"{optim}""#));
        (at_start(&report, Kind::OptimizerState), report.paged.get())
    };
    let (whole, _) = states("adamw");
    let (bytes, paged) = states("adamw_8bit");
    assert!(bytes * 4 > whole && bytes * 3 < whole, "{bytes} of {whole}");
    assert_eq!(paged, 0);
    let (left, paged) = states("paged_adamw_8bit");
    assert!(left + paged > bytes - bytes / 10 && left < bytes && paged > 0);
    assert_eq!(run(LLAMA, r#""optim":"paged_adamw""#).warnings[0].code, "paged-states");
}

#[test]
fn gradients_that_are_zeroed_stay() {
    let [freed, kept] =
        ["to_none", "to_zero"].map(|form| run(LLAMA, &format!(r#""optim":"sgd","zero_grad":"{form}""#)));
    assert_eq!(at_start(&freed, Kind::Gradient), 0);
    let gradients = at_start(&kept, Kind::Gradient);
    assert!(gradients >= 2 * kept.trainable);
    assert_eq!(
        kept.steady.before_forward.get() - freed.steady.before_forward.get(),
        gradients
    );
    assert_eq!(kept.steady.end, kept.steady.after_backward.min(kept.steady.end));
}

#[test]
fn an_average_is_a_second_copy_of_the_weights() {
    let [without, with] = ["false", "true"].map(|on| run(LLAMA, &format!(r#""ema":{on}"#)));
    let copy = with.after_model.get() - without.after_model.get();
    assert!(copy >= 2 * with.params && copy < 2 * with.params + (1 << 20));
    assert_eq!(with.params, without.params);
}

#[test]
fn without_its_cache_autocast_keeps_no_copies_of_checkpointed_weights() {
    let peak = |cache: bool| {
        let setup = format!(r#""precision":"amp-bf16","ckpt":"full","autocast_cache":{cache}"#);
        run(LLAMA, &setup).steady.peak_forward
    };
    assert!(peak(false) < peak(true));
}

#[test]
fn a_fused_loss_never_makes_all_logits() {
    let in_fp32 = 2 * 128 * 4000 * 4;
    let largest = |loss: &str| {
        let setup = setup(&format!(r#""optim":"sgd","loss":"{loss}""#));
        let run = record(&Model::from_config(LLAMA).unwrap(), &setup, Gpu::H200);
        let passing = run.log.allocations.iter().filter(|b| b.kind != Kind::Workspace);
        passing.map(|b| b.bytes).max().unwrap_or(0)
    };
    assert_eq!(largest("full"), in_fp32);
    assert!(largest("fused_linear") * 2 < in_fp32);
    let refused = try_run(
        r#"{"model_type":"gpt2","vocab_size":100,"n_positions":256,"n_embd":64,"n_layer":1,"n_head":4}"#,
        r#""loss":"fused_linear""#,
    );
    assert!(refused.is_err_and(|e| e.contains("`loss`")));
}

#[test]
fn adapters_go_where_their_targets_say() {
    let trained = |targets: &str| run(LLAVA, &format!(r#""freeze":"lora","lora_targets":{targets}"#)).trainable;
    let [attention, projections, all] = [r#""attention""#, r#""projections""#, r#""all-linear""#].map(trained);
    assert!(attention < projections && projections < all);
    // q_proj of both towers: three blocks of 128 to 128, four of 64 to 64, rank 16.
    assert_eq!(trained(r#"["q_proj"]"#), 16 * (3 * 256 + 4 * 128));
    let refused = try_run(LLAVA, r#""freeze":"lora","lora_targets":["wq"]"#);
    assert!(refused.is_err_and(|e| e.contains("wq")));
    let bytes = |dtype: &str| {
        let report = run(LLAVA, &format!(r#""freeze":"lora","lora_dtype":"{dtype}""#));
        at_start(&report, Kind::OptimizerState)
    };
    assert!(bytes("bf16") < bytes("fp32"));
}

#[test]
fn weights_in_four_bits_are_counted_whole_and_held_in_less() {
    let [whole, packed] = ["lora", "qlora"].map(|freeze| run(LLAMA, &format!(r#""freeze":"{freeze}""#)));
    assert_eq!((whole.params, whole.trainable), (packed.params, packed.trainable));
    let text = r#""freeze":"qlora","precision":"amp-bf16","ckpt":"full","lora_dropout":0.05"#;
    for (config, setup) in [
        (LLAMA, text),
        (LLAVA, text),
        (LLAVA, r#""freeze":"qlora","precision":"fp32""#),
    ] {
        let report = run(config, setup);
        assert!(
            report.trainable > 0 && report.peak_allocated > report.after_model,
            "{setup}"
        );
    }
}

#[test]
fn the_longest_sample_decides_and_padding_costs_a_mask() {
    let even = run(LLAMA, r#""lengths":[128,128]"#);
    assert_eq!(even.steady, run(LLAMA, r#""accum":1"#).steady);
    let padded = run(LLAMA, r#""lengths":[128,40]"#);
    assert!(padded.peak_allocated > even.peak_allocated);
    let packed = run(LLAMA, r#""lengths":[128,40],"packing":"packed""#);
    assert!(packed.steady.after_forward < padded.steady.after_forward);
    for (config, keys) in [
        (LLAVA, r#""lengths":[128,40],"packing":"packed""#),
        (LLAMA, r#""lengths":[128,0]"#),
        (LLAMA, r#""lengths":[128,40],"attn":"flash_attention_2""#),
    ] {
        assert!(try_run(config, keys).is_err(), "{keys}");
    }
}

#[test]
fn evaluation_keeps_logits_and_nothing_for_backward() {
    let model = Model::from_config(LLAVA).unwrap();
    let report = evaluate(&model, &setup(r#""precision":"fp32""#), Gpu::H200)
        .unwrap()
        .figures;
    let trained = run(LLAVA, r#""precision":"fp32""#);
    assert_eq!(
        (report.params, report.after_model),
        (trained.params, trained.after_model)
    );
    assert!(report.peak_allocated < trained.steady.peak_forward);
    let logits = 2 * 128 * 1000 * 4;
    assert!(report.with_outputs.get() >= report.after_model.get() + logits);
    let checkpointed = evaluate(&model, &setup(r#""precision":"fp32","ckpt":"full""#), Gpu::H200);
    assert_eq!(checkpointed.map(|passed| passed.figures), Ok(report));
}

#[test]
fn keys_and_values_are_kept_in_training_where_asked() {
    let gpt2 = r#"{"model_type":"gpt2","vocab_size":100,"n_positions":256,"n_embd":64,"n_layer":2,"n_head":4}"#;
    let kept = |on: bool| {
        let report = run(gpt2, &format!(r#""use_cache":{on},"optim":"sgd""#));
        report.steady.after_forward.get()
    };
    // Copies of keys and values, beside the one tensor of queries, keys and values that the graph keeps.
    assert!(kept(true) >= kept(false) + 2 * 2 * 2 * 128 * 64 * 2);
    let checkpointed = |on: bool| run(LLAMA, &format!(r#""use_cache":{on},"ckpt":"full""#)).steady;
    assert_eq!(checkpointed(true), checkpointed(false));
    let packed = try_run(LLAMA, r#""lengths":[100,28],"packing":"packed","use_cache":true"#);
    assert!(packed.is_err_and(|e| e.contains("use_cache")));
}

#[test]
fn an_image_token_without_a_row_in_the_embedding_is_refused() {
    let outside = LLAVA.replace("\"image_token_index\":999", "\"image_token_index\":1000");
    assert!(try_run(&outside, r#""optim":"sgd""#).is_err_and(|e| e.contains("index out of range in self")));
}

#[test]
fn images_of_different_sizes_take_what_their_sizes_need() {
    let next = LLAVA.replace("\"llava\"", "\"llava_next\"").replace(
        "\"image_token_index\":999",
        "\"image_token_index\":999,\"image_grid_pinpoints\":[[56,112],[112,56],[112,112]]",
    );
    let peak = |sizes: &str| run(&next, &format!(r#""seq":300,"image_sizes":{sizes}"#)).peak_allocated;
    assert!(peak("[[112,112],[56,112]]") < peak("[[112,112],[112,112]]"));
    for bad in ["[[0,5]]", "[[5,5000]]", "[[20000,20000]]"] {
        assert!(try_run(&next, &format!(r#""image_sizes":{bad}"#)).is_err(), "{bad}");
    }
    assert!(try_run(LLAMA, r#""image_sizes":[[9,9]]"#).is_err());
}

#[test]
fn generation_holds_keys_and_values_of_every_position() {
    for (config, layers, width) in [(LLAMA, 3, 2 * 32), (LLAVA, 3, 4 * 32)] {
        let model = Model::from_config(config).unwrap();
        let made = |tokens| {
            generate(&model, &setup(r#""precision":"bf16""#), tokens, Gpu::H200)
                .unwrap()
                .figures
        };
        // The last generated token is not fed back.
        assert_eq!(made(1).cache.get(), layers * 2 * 2 * 128 * width * 2);
        assert_eq!(made(65).cache.get(), layers * 2 * 2 * (128 + 64) * width * 2);
        assert!(made(65).peak_reserved >= made(1).peak_reserved);
    }
    let vit = r#"{"model_type":"vit","hidden_size":64,"intermediate_size":96,"num_hidden_layers":1,
        "num_attention_heads":4,"image_size":32,"patch_size":16}"#;
    let vit = Model::from_config(vit).unwrap();
    let refused = generate(&vit, &setup(r#""accum":1"#), 8, Gpu::H200);
    assert!(refused.is_err_and(|e| e.to_string().contains("generate")));
}

#[test]
fn a_result_says_which_sizes_are_those_of_a_class() {
    let warned = |config: &str| {
        let warnings = run(config, r#""optim":"sgd""#).warnings;
        let of_sizes = warnings.into_iter().find(|w| w.code.ends_with("sizes-are-defaults"));
        of_sizes.map(|w| (w.severity, w.message))
    };
    let (severity, said) = warned(r#"{"model_type": "gemma4"}"#).expect("it is said");
    assert_eq!(severity, Severity::Warning);
    assert!(said.contains("no size of `text_config`"), "{said}");
    assert!(said.contains("`text_config.hidden_size` 2304"), "{said}");
    let some = LLAVA.replace(r#""intermediate_size":320,"#, "");
    let (severity, said) = warned(&some).expect("it is said");
    assert_eq!(severity, Severity::Note);
    assert!(said.contains("`text_config.intermediate_size` 11008"), "{said}");
    assert_eq!(warned(LLAMA), None);
    assert_eq!(warned(LLAVA), None);
}

#[test]
fn any_parts_are_frozen_and_each_trains_its_own() {
    let trained = |freeze: &str| run(LLAVA, &format!(r#""freeze":"{freeze}""#)).trainable;
    let all = trained("none");
    let [vision, connector, language] =
        ["vision", "connector", "language"].map(|part| (all - trained(part), trained(&format!("all-but-{part}"))));
    for (frozen, alone) in [vision, connector, language] {
        assert_eq!(frozen, alone);
    }
    assert_eq!(all, vision.0 + connector.0 + language.0);
    // Nothing of a frozen tower and connector is kept for backward; a connector passes no gradient to a frozen tower.
    let kept = |freeze: &str| activations(&setup(&format!(r#""freeze":"{freeze}""#)));
    assert!(kept("all-but-language") < kept("vision") && kept("vision") < kept("none"));
}

#[test]
fn frozen_weights_stay_in_the_type_of_autocast_beside_trained_ones_in_fp32() {
    let of = |more: &str| run(LLAVA, &format!(r#""precision":"amp-bf16"{more}"#));
    let frozen = |more: &str| of(&format!(r#","freeze":"all-but-language"{more}"#));
    let (wide, narrow) = (frozen(""), frozen(r#","frozen_weights":"autocast""#));
    let weights = |report: &Report| at_start(report, Kind::Weight);
    let saved = 2 * (wide.params - wide.trainable);
    let of_alignment = 512 * 200;
    assert!(weights(&wide) - weights(&narrow) > saved - of_alignment && weights(&wide) - weights(&narrow) <= saved);
    assert_eq!(
        at_start(&wide, Kind::OptimizerState),
        at_start(&narrow, Kind::OptimizerState)
    );
    // Without frozen weights, or without autocast, it says nothing.
    assert_eq!(of("").steady, of(r#","frozen_weights":"autocast""#).steady);
    let plain = |more: &str| run(LLAVA, &format!(r#""freeze":"vision"{more}"#)).steady;
    assert_eq!(plain(""), plain(r#","frozen_weights":"autocast""#));
}

#[test]
fn ms_swift_makes_logits_of_labelled_positions_alone() {
    let peak = |more: &str| {
        run(LLAMA, &format!(r#""trainer":"ms_swift"{more}"#))
            .steady
            .peak_forward
    };
    let whole = peak("");
    assert!(peak(r#","completion":20"#) < whole);
    assert_eq!(peak(r#","completion":127"#), whole);
    // Of one sample, positions of images have no label.
    let one = |more: &str| {
        let keys =
            format!(r#""lengths":[128],"precision":"bf16-amp","trainer":"ms_swift","freeze":"all-but-language"{more}"#);
        run(LLAVA, &keys).steady
    };
    assert_eq!(one(""), one(r#","completion":111"#));
    assert!(one("").peak_forward < one(r#","completion":127"#).peak_forward);
}

#[test]
fn preferences_in_ms_swift_take_two_samples_and_a_reference() {
    let of = |trainer: &str, more: &str| {
        run(
            LLAMA,
            &format!(r#""trainer":"{trainer}","precision":"bf16-amp","completion":40{more}"#),
        )
    };
    let lora = |trainer: &str| of(trainer, r#","freeze":"lora""#);
    assert_eq!(lora("ms_swift_dpo").after_model, lora("ms_swift").after_model);
    assert!(lora("ms_swift_dpo").peak_allocated > lora("ms_swift").peak_allocated);
    // Another whole model stands beside one that trains in full.
    let [alone, compared] = ["ms_swift", "ms_swift_dpo"].map(|trainer| at_start(&of(trainer, ""), Kind::Weight));
    assert_eq!(compared, 2 * alone);
    let refused = try_run(LLAMA, r#""trainer":"ms_swift_dpo","reference":"precomputed""#);
    assert!(refused.is_err_and(|e| e.contains("precomputed")));
}

/// TRL's collator gives packed samples no padding mask. What is logged of them stood in its place once.
#[test]
fn recurrent_layers_of_packed_samples_see_no_padding() {
    let config = r#"{"model_type":"lfm2","vocab_size":512,"hidden_size":64,"intermediate_size":128,"num_hidden_layers":3,
        "num_attention_heads":4,"num_key_value_heads":2,"conv_L_cache":3,"full_attn_idxs":[2]}"#;
    let keys = r#""batch":1,"lengths":[1,5,3],"packing":"packed","attn":"eager","trainer":"trl_sft""#;
    let case = Case::from_json(&format!(r#"{{"model":"x",{keys}}}"#)).unwrap().unwrap();
    simulate(&Model::from_config(config).unwrap(), &case.setup).unwrap();
}
