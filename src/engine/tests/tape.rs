//! Properties of recorded steps: every allocation is freed or kept for a reason, and more never costs less.

use std::collections::HashSet;

use proptest::prelude::*;
use vramscope_engine::simulate::{Recording, record, simulate};
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_engine::{Case, Model};

const GPT2: &str = r#"{"model_type":"gpt2","vocab_size":1000,"n_positions":256,"n_embd":64,"n_layer":3,"n_head":4}"#;
const LLAMA: &str = r#"{"model_type":"llama","vocab_size":1000,"hidden_size":64,"intermediate_size":160,
    "num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":256}"#;
const LLAVA: &str = r#"{"model_type":"llava","image_token_index":999,
    "vision_config":{"model_type":"clip_vision_model","hidden_size":48,"intermediate_size":96,"num_hidden_layers":3,
        "num_attention_heads":4,"image_size":28,"patch_size":14},
    "text_config":{"model_type":"llama","vocab_size":1000,"hidden_size":64,"intermediate_size":160,
        "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":4,"max_position_embeddings":256}}"#;

fn run(config: &str, setup: &str) -> Recording {
    let case = Case::from_json(&format!(r#"{{"model":"x",{setup}}}"#))
        .unwrap()
        .unwrap();
    record(&Model::from_config(config).unwrap(), &case.setup, Gpu::H200)
}

/// Dotted paths of the modules that have a weight, and of those that a step enters.
fn made_and_entered(run: &Recording) -> [HashSet<String>; 2] {
    let weights = run
        .build
        .iter()
        .map(|event| run.log.allocations[event.storage() as usize]);
    let made: HashSet<u32> = weights
        .filter(|made| made.kind == Kind::Weight && made.name == "weight")
        .map(|made| made.scope)
        .collect();
    let last = made.iter().copied().max().unwrap();
    let path = |scope: u32| run.log.path(scope);
    let entered = (last + 1)..run.log.scopes.len() as u32;
    [made.into_iter().map(path).collect(), entered.map(path).collect()]
}

#[test]
fn a_step_enters_every_module_with_a_weight_by_its_name() {
    for setup in ["", r#","ckpt":"full","freeze":"lora""#, r#","loss":"fused_linear""#] {
        let [made, entered] = made_and_entered(&run(LLAMA, &format!(r#""seq":64{setup}"#)));
        let missing: Vec<_> = made.difference(&entered).collect();
        // The fused loss reads the head's weight, and does not call the head.
        let expected: Vec<&str> = if setup.contains("fused") {
            vec!["lm_head"]
        } else {
            Vec::new()
        };
        assert_eq!(missing, expected, "{setup}");
        assert_eq!(made.len(), 3 + 3 * 9);
    }
}

/// Highest sum of requested bytes within a steady step.
fn peak(run: &Recording) -> u64 {
    let bytes = |id: u32| run.log.allocations[id as usize].bytes;
    let mut now: u64 = live_before(run).into_iter().map(bytes).sum();
    let mut peak = now;
    for event in &run.steady.events {
        now = if event.is_alloc() {
            now + bytes(event.storage())
        } else {
            now - bytes(event.storage())
        };
        peak = peak.max(now);
    }
    peak
}

/// Bytes of activations when the forward of a steady step ends.
fn activations(run: &Recording) -> u64 {
    let mut live = HashSet::new();
    play(&mut live, &run.steady.events[..run.steady.marks.after_forward]);
    let allocations = &run.log.allocations;
    live.iter()
        .map(|&id| allocations[id as usize])
        .filter(|b| b.kind == Kind::Activation)
        .map(|b| b.bytes)
        .sum()
}

fn live_before(run: &Recording) -> HashSet<u32> {
    let mut live = HashSet::new();
    play(&mut live, &run.build);
    play(&mut live, &run.first.events);
    live
}

/// Applies allocations and frees to the live set. A double allocation or a free of a dead storage is a bug of the tape,
/// except for a state that the optimizer makes anew before it drops the old one.
fn play(live: &mut HashSet<u32>, events: &[vramscope_engine::tape::log::Event]) {
    let mut replaced = HashSet::new();
    for event in events {
        if event.is_alloc() && live.contains(&event.storage()) {
            replaced.insert(event.storage());
            continue;
        }
        if !event.is_alloc() && replaced.remove(&event.storage()) {
            continue;
        }
        let known = if event.is_alloc() {
            live.insert(event.storage())
        } else {
            live.remove(&event.storage())
        };
        assert!(known, "{event:?} at the wrong time");
    }
}

fn balanced(run: &Recording) {
    let before = live_before(run);
    let mut live = before.clone();
    play(&mut live, &run.steady.events);
    assert!(live == before, "a steady step changes what lives");
}

fn setups() -> impl Strategy<Value = (&'static str, String)> {
    let freeze = prop_oneof![Just("none"), Just("vision"), Just("all-but-connector"), Just("lora")];
    (
        prop_oneof![Just(GPT2), Just(LLAMA), Just(LLAVA)],
        prop_oneof![Just("fp32"), Just("bf16"), Just("amp-bf16"), Just("amp-fp16")],
        prop_oneof![
            Just("adamw"),
            Just("adamw_fused"),
            Just("adamw_loop"),
            Just("sgd"),
            Just("sgdm"),
            Just("adafactor")
        ],
        prop_oneof![Just("none"), Just("full")],
        prop_oneof![Just("sdpa"), Just("eager")],
        freeze,
        (1u64..4, 16u64..40, 1u64..3, any::<bool>()),
    )
        .prop_map(
            |(config, precision, optim, ckpt, attn, freeze, (batch, seq, accum, clip))| {
                let freeze = match config {
                    LLAVA => freeze,
                    LLAMA if freeze == "lora" => freeze,
                    _ => "none",
                };
                let setup = format!(
                    r#""precision":"{precision}","optim":"{optim}","ckpt":"{ckpt}","attn":"{attn}","freeze":"{freeze}",
                "batch":{batch},"seq":{seq},"accum":{accum},"clip":{clip}"#
                );
                (config, setup)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn everything_born_dies_or_is_a_state((config, setup) in setups()) {
        let run = run(config, &setup);
        prop_assert_eq!(&run.failure, &None);
        let lasting = [Kind::Weight, Kind::OptimizerState, Kind::Workspace];
        for id in live_before(&run) {
            let allocation = &run.log.allocations[id as usize];
            prop_assert!(lasting.contains(&allocation.kind), "{} ({:?}) outlives the first step", allocation.name, allocation.kind);
        }
        balanced(&run);
    }

    #[test]
    fn more_never_lowers_the_peak((config, setup) in setups(), key in prop_oneof![Just("batch"), Just("seq")]) {
        let more = |text: &str| {
            let at = text.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
            let end = at + text[at..].find(',').unwrap();
            let value: u64 = text[at..end].parse().unwrap();
            format!("{}{}{}", &text[..at], value * 2, &text[end..])
        };
        prop_assert!(peak(&run(config, &more(&setup))) >= peak(&run(config, &setup)));
    }

    #[test]
    fn checkpointing_never_raises_the_activations_kept((config, setup) in setups()) {
        let with = |ckpt: &str| {
            let plain = setup.replace(r#""ckpt":"full""#, r#""ckpt":"none""#);
            activations(&run(config, &plain.replace(r#""ckpt":"none""#, &format!(r#""ckpt":"{ckpt}""#))))
        };
        prop_assert!(with("full") <= with("none"));
    }

    #[test]
    fn freezing_never_raises_the_peak_without_a_word((_, setup) in setups()) {
        let with = |freeze: &str| {
            let start = setup.find(r#""freeze":""#).unwrap() + 10;
            let end = start + setup[start..].find('"').unwrap();
            format!("{}{freeze}{}", &setup[..start], &setup[end..])
        };
        for (less, more) in [("none", "vision"), ("vision", "all-but-connector")] {
            let raised = peak(&run(LLAVA, &with(more))) > peak(&run(LLAVA, &with(less)));
            prop_assert!(!raised || explains(&with(more)), "{more} peaks above {less}");
        }
    }
}

/// Returns true if the report says that the frozen tower keeps a graph.
fn explains(setup: &str) -> bool {
    let case = Case::from_json(&format!(r#"{{"model":"x",{setup}}}"#))
        .unwrap()
        .unwrap();
    let report = simulate(&Model::from_config(LLAVA).unwrap(), &case.setup).unwrap();
    report.warnings.iter().any(|w| w.code == "frozen-tower-keeps-graph")
}
