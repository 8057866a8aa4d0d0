//! Every way out that a refusal names answers.

use proptest::prelude::*;
use proptest::sample::select;
use vramscope_engine::setup::{
    Checkpointing, ExpertAdapters, Freeze, Generation, KernelPackages, Loss, Offload, Optimizer, Packing, Parallel,
    Precision, Reference, Strategy as Sharing, TrainerKind, ZeroGrad,
};
use vramscope_engine::simulate::{Change, SimulateError, WayOut, simulate_on, simulate_parallel, ways_out};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Setup};

const MODELS: [&str; 4] = ["gpt2", "qwen2.5-0.5b", "smolvlm-256m", "internvl3-1b"];

fn small(model: &Model) -> Setup {
    Setup {
        seq: if model.takes().parts { 320 } else { 64 },
        ..Setup::default()
    }
}

fn setups() -> impl Strategy<Value = (&'static str, Setup, Parallel)> {
    let run = (select(&MODELS), select(Sharing::ALL), 1_u64..5);
    let choices = (
        select(Precision::ALL),
        select(Optimizer::ALL),
        select(Freeze::ALL),
        select(Loss::ALL),
        select(&[TrainerKind::Loop, TrainerKind::Loop, TrainerKind::Transformers]),
        select(ZeroGrad::ALL),
    );
    let numbers = (1_u64..3, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let offload = select(&[
        Offload::None,
        Offload::None,
        Offload::Shards,
        Offload::Optimizer,
        Offload::OptimizerAndParameters,
    ]);
    (run, choices, numbers, offload).prop_map(|((name, strategy, world), choices, numbers, offload)| {
        let (precision, optim, freeze, loss, trainer, zero_grad) = choices;
        let (accum, clip, ema, mp, ckpt) = numbers;
        let setup = Setup {
            precision,
            optim,
            freeze,
            loss,
            trainer,
            zero_grad,
            accum,
            clip,
            ema,
            ckpt: if ckpt { Checkpointing::Full } else { Checkpointing::None },
            ..small(&Model::from_catalogue(name).expect("a model of the catalogue"))
        };
        let parallel = Parallel {
            strategy,
            world,
            mp,
            offload,
            ..Parallel::default()
        };
        (name, setup, parallel)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_way_out_that_a_refusal_names_answers((name, setup, parallel) in setups()) {
        let model = Model::from_catalogue(name).expect("a model of the catalogue");
        let Err(SimulateError::Parallel(why)) = simulate_parallel(&model, &setup, &parallel, Gpu::default()) else {
            return Ok(());
        };
        let ways = ways_out(&model, (&setup, &parallel), &why);
        prop_assert_eq!(&ways.iter().map(WayOut::change).collect::<Vec<_>>(), &why.ways);
        for way in ways {
            prop_assert!(why.to_string().contains(&way.change().to_string()), "{}", why);
            let (setup, parallel) = way.of(&setup, &parallel);
            let answer = simulate_parallel(&model, &setup, &parallel, Gpu::default());
            // SmolVLM under autocast fails inside transformers on any number of GPUs, which a setup alone does not tell.
            if matches!(answer, Err(SimulateError::Fails(_))) {
                continue;
            }
            prop_assert!(answer.is_ok(), "{}: {}: {}", why, way.change(), answer.unwrap_err());
        }
    }
}

/// Models whose families refuse something on one GPU: experts, weights in 4 bits, kernels of other packages, towers.
const ALONE: [&str; 6] = [
    "gpt2",
    "qwen2.5-0.5b",
    "smolvlm-256m",
    "Qwen/Qwen1.5-MoE-A2.7B",
    "vit-large",
    "clip-l",
];

/// Setups for one GPU, as the entries of a case, so that what a refusal names can be entered as it is named.
fn alone() -> impl Strategy<Value = (&'static str, serde_json::Map<String, serde_json::Value>)> {
    let words = (
        select(Precision::ALL),
        select(Optimizer::ALL),
        select(Freeze::ALL),
        select(Loss::ALL),
        select(TrainerKind::ALL),
        select(Reference::ALL),
        select(Generation::ALL),
        select(KernelPackages::ALL),
        select(ExpertAdapters::ALL),
        select(Packing::ALL),
    );
    let numbers = (
        0_u64..2,
        1_u64..4,
        proptest::option::of(1_u64..4),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (select(&ALONE), words, numbers).prop_map(|(name, words, (images, accum, every, compile, ema, lengths))| {
        let (precision, optim, freeze, loss, trainer, reference, generation, packages, experts, packing) = words;
        let seq = if name.starts_with("smolvlm") { 320 } else { 64 };
        let mut entries = serde_json::json!({
            "model": name, "seq": seq, "images": images, "accum": accum, "compile": compile, "ema": ema,
            "precision": precision.name(), "optim": optim.name(), "freeze": freeze.name(), "loss": loss.name(),
            "trainer": trainer.name(), "reference": reference.name(), "generation": generation.name(),
            "packages": packages.name(), "lora_experts": experts.name(), "packing": packing.name(),
        });
        let entries = entries.as_object_mut().expect("an object");
        if let Some(every) = every {
            entries.insert("steps_per_generation".into(), every.into());
        }
        if lengths {
            entries.insert("lengths".into(), serde_json::json!([seq, seq / 2 + seq / 4]));
        }
        (name, std::mem::take(entries))
    })
}

fn setup_of(entries: &serde_json::Map<String, serde_json::Value>) -> Option<Setup> {
    let text = serde_json::Value::Object(entries.clone()).to_string();
    Case::from_json(&text).ok()?.map(|case| case.setup)
}

/// Enters what a refusal names.
fn enter(entries: &mut serde_json::Map<String, serde_json::Value>, change: &Change) {
    match change {
        Change::Set(all) => {
            for (name, value) in all {
                let number = value.parse::<u64>().map(serde_json::Value::from);
                entries.insert(name.to_string(), number.unwrap_or_else(|_| value.to_string().into()));
            }
        }
        Change::LeaveOut(all) => all.iter().for_each(|name| {
            entries.remove(&**name);
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_way_out_on_one_gpu_answers_as_it_is_named((name, entries) in alone()) {
        let model = Model::from_catalogue(name).expect("a model of the catalogue");
        let Some(setup) = setup_of(&entries) else {
            return Ok(());
        };
        let Err(SimulateError::NotSimulated { ways, given, .. }) = simulate_on(&model, &setup, Gpu::default()) else {
            return Ok(());
        };
        for way in ways {
            let mut entries = entries.clone();
            enter(&mut entries, &way);
            let setup = setup_of(&entries).expect("a case");
            let answer = simulate_on(&model, &setup, Gpu::default());
            // What fails inside of a library does so on any number of GPUs, and no setup alone tells it.
            if matches!(answer, Err(SimulateError::Fails(_))) {
                continue;
            }
            prop_assert!(answer.is_ok(), "{}: {}: {}", given, way, answer.unwrap_err());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A refusal for what a model lacks names what takes the place of the setting. Another setting may be refused after it.
    #[test]
    fn a_setting_that_a_refusal_names_ends_that_refusal((name, entries) in alone()) {
        let model = Model::from_catalogue(name).expect("a model of the catalogue");
        let Some(setup) = setup_of(&entries) else {
            return Ok(());
        };
        let Err(why) = simulate_on(&model, &setup, Gpu::default()) else {
            return Ok(());
        };
        for way in why.ways() {
            let mut entries = entries.clone();
            enter(&mut entries, &way);
            let setup = setup_of(&entries).expect("a case");
            let answer = simulate_on(&model, &setup, Gpu::default());
            prop_assert!(answer.as_ref().err() != Some(&why), "{}: {}", why, way);
        }
    }
}

#[test]
fn a_model_that_takes_no_adapters_is_trained_in_full() {
    let entries = serde_json::json!({ "model": "gpt2", "seq": 64, "freeze": "lora" });
    let setup = setup_of(entries.as_object().expect("an object")).expect("a case");
    let model = Model::from_catalogue("gpt2").expect("a model of the catalogue");
    let why = simulate_on(&model, &setup, Gpu::default()).expect_err("it has no linear layers");
    assert_eq!(why.ways(), [Change::set("freeze", "none")]);
    assert!(why.to_string().ends_with("; set `freeze` to none"), "{why}");
}

#[test]
fn adapters_find_linear_layers_of_other_names() {
    let config = r#"{"model_type": "opt", "vocab_size": 512, "hidden_size": 64, "word_embed_proj_dim": 64, "ffn_dim": 128,
        "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 256}"#;
    let model = Model::from_config(config).expect("a configuration");
    let entries = serde_json::json!({ "model": "opt", "seq": 64, "freeze": "lora" });
    let mut entries = entries.as_object().expect("an object").clone();
    let simulated = |entries: &_| simulate_on(&model, &setup_of(entries).expect("a case"), Gpu::default());
    let why = simulated(&entries).expect_err("it has no q_proj to down_proj");
    let ways = why.ways();
    assert_eq!(ways[0], Change::set("lora_targets", "all-linear"), "{why}");
    enter(&mut entries, &ways[0]);
    simulated(&entries).expect("adapters on all of its linear layers");
}

#[test]
fn a_fused_loss_runs_under_stage_3_and_is_advised() {
    let model = Model::from_catalogue("qwen2.5-0.5b").expect("a model of the catalogue");
    let full = Setup {
        precision: Precision::Bf16,
        optim: Optimizer::AdamwFused,
        seq: 2048,
        batch: 4,
        accum: 2,
        clip: true,
        ckpt: Checkpointing::Full,
        ..Setup::default()
    };
    let parallel = Parallel {
        strategy: Sharing::Deepspeed3,
        ..Parallel::default()
    };
    let of = |setup: &Setup| simulate_parallel(&model, setup, &parallel, Gpu::default()).expect("it answers");
    let report = of(&full);
    let said = report
        .warnings
        .iter()
        .filter(|warning| warning.code.starts_with("logits"));
    let advice: String = said.map(|warning| warning.message.clone()).collect();
    assert!(advice.contains("fused"), "{advice}");
    let fused = of(&Setup {
        loss: Loss::FusedLinear,
        ..full
    });
    assert!(fused.peak_allocated < report.peak_allocated);
}
