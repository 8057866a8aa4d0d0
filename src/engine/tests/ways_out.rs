//! Every way out that a refusal names answers.

use proptest::prelude::*;
use proptest::sample::select;
use vramscope_engine::setup::{
    Checkpointing, Freeze, Loss, Offload, Optimizer, Parallel, Precision, Strategy as Sharing, TrainerKind, ZeroGrad,
};
use vramscope_engine::simulate::{SimulateError, simulate_parallel, ways_out};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Model, Setup};

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
        let named = why.message.split_once("; ").map_or(0, |(_, ways)| ways.split(", or ").count());
        prop_assert!(ways.is_empty() || named == ways.len(), "{}", why.message);
        for way in ways {
            prop_assert!(why.message.contains(way.text), "{}: {}", way.text, why.message);
            let (setup, parallel) = way.of(&setup, &parallel);
            let answer = simulate_parallel(&model, &setup, &parallel, Gpu::default());
            // SmolVLM under autocast fails inside transformers on any number of GPUs, which a setup alone does not tell.
            if matches!(answer, Err(SimulateError::Fails(_))) {
                continue;
            }
            prop_assert!(answer.is_ok(), "{}: {}: {}", why.message, way.text, answer.unwrap_err());
        }
    }
}

#[test]
fn a_fused_loss_under_stage_3_is_named_and_not_advised_again() {
    let model = Model::from_catalogue("qwen2.5-0.5b").expect("a model of the catalogue");
    let setup = Setup {
        loss: Loss::FusedLinear,
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
    let why = simulate_parallel(&model, &setup, &parallel, Gpu::default()).expect_err("it is not simulated");
    let why = why.to_string();
    for words in ["fused loss", "not simulated yet", "set `loss` to full", "deepspeed2"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert!(!why.contains("fsdp"), "{why}");
    let full = Setup {
        loss: Loss::Full,
        ..setup
    };
    let report = simulate_parallel(&model, &full, &parallel, Gpu::default()).expect("it answers");
    let advice = |report: &vramscope_engine::Report| {
        let said = report
            .warnings
            .iter()
            .filter(|warning| warning.code.starts_with("logits"));
        said.map(|warning| warning.message.clone()).collect::<String>()
    };
    assert!(advice(&report).contains("lower the batch"), "{:?}", report.warnings);
    assert!(!advice(&report).contains("fused"), "{}", advice(&report));
    let second = Parallel {
        strategy: Sharing::Deepspeed2,
        ..parallel
    };
    let report = simulate_parallel(&model, &full, &second, Gpu::default()).expect("it answers");
    assert!(advice(&report).contains("fused"), "{}", advice(&report));
}
