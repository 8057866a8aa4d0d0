//! Tests of what several GPUs were refused for before: optimizers, gradients that lie apart, ms-swift's DPO.

use vramscope_engine::setup::{
    ExpertAdapters, Freeze, Loss, Optimizer, Parallel, Precision, Strategy, TrainerKind, Zero,
};
use vramscope_engine::simulate::{Recording, record_parallel, simulate_parallel};
use vramscope_engine::tape::log::Event;
use vramscope_engine::tape::{Gpu, Kind};
use vramscope_engine::{Model, Setup};

fn setup(optim: Optimizer) -> Setup {
    Setup {
        batch: 1,
        seq: 128,
        optim,
        ..Setup::default()
    }
}

fn of(strategy: Strategy, world: u64) -> Parallel {
    Parallel {
        strategy,
        world,
        ..Parallel::default()
    }
}

fn record(setup: &Setup, parallel: &Parallel) -> Recording {
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    record_parallel(&model, setup, parallel, Gpu::H200).unwrap()
}

/// Number of tensors of this name that a step makes.
fn made(run: &Recording, name: &str) -> usize {
    let is_named = |event: &&Event| event.is_alloc() && run.log.allocations[event.storage() as usize].name == name;
    run.steady.events.iter().filter(is_named).count()
}

fn states(run: &Recording) -> u64 {
    let allocations = run.first.events.iter().filter(|event| event.is_alloc());
    let of_states = allocations.map(|event| &run.log.allocations[event.storage() as usize]);
    of_states
        .filter(|x| x.kind == Kind::OptimizerState)
        .map(|x| x.bytes)
        .sum()
}

/// `ZeroRedundancyOptimizer` has an optimizer over its own parameters, whose states differ in number from one to the next.
#[test]
fn zero1_shares_the_states_of_any_optimizer() {
    for optim in [Optimizer::Adafactor, Optimizer::Adamw8bit, Optimizer::AdamwTorchao8bit] {
        let [all, half] =
            [Strategy::DdpView, Strategy::Zero1].map(|strategy| states(&record(&setup(optim), &of(strategy, 2))));
        let share = half as f64 / all as f64;
        assert!((0.3..0.7).contains(&share), "{optim:?}: {share} of the states");
    }
}

/// A flat part of the parameters gets whatever states its optimizer makes; recorded without a GPU under DeepSpeed.
#[test]
fn optimizers_update_flat_parts() {
    for strategy in [Strategy::Deepspeed2, Strategy::Deepspeed3, Strategy::Fsdp1] {
        for optim in [
            Optimizer::PagedAdamw,
            Optimizer::AdafactorTorch,
            Optimizer::AdamwTorchao4bit,
        ] {
            record(&setup(optim), &of(strategy, 2));
        }
    }
    record(&setup(Optimizer::AdamwTorchao8bit), &of(Strategy::Fsdp, 2));
}

/// Where the libraries stop, their own words say so.
#[test]
fn optimizers_that_libraries_stop_with_are_refused_in_their_words() {
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    for (strategy, optim, words) in [
        (
            Strategy::Fsdp,
            Optimizer::Adamw8bit,
            "got mixed torch.Tensor and DTensor",
        ),
        (
            Strategy::Fsdp,
            Optimizer::PagedAdamw,
            "got mixed torch.Tensor and DTensor",
        ),
        (
            Strategy::Fsdp,
            Optimizer::AdafactorTorch,
            "in-place operations that require placement changes",
        ),
        (
            Strategy::Deepspeed2,
            Optimizer::Muon,
            "Client Optimizer is of unexpected type",
        ),
    ] {
        let refused = simulate_parallel(&model, &setup(optim), &of(strategy, 2), Gpu::H200).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

/// Recorded without a GPU: a loop makes Adagrad over parameters in parts, `Trainer` before they are cut.
#[test]
fn adagrad_has_states_of_parameters_that_a_trainer_cuts_later() {
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    let looped = setup(Optimizer::Adagrad);
    assert!(simulate_parallel(&model, &looped, &of(Strategy::Fsdp, 2), Gpu::H200).is_ok());
    let trainer = Setup {
        trainer: TrainerKind::Transformers,
        ..looped
    };
    let refused = simulate_parallel(&model, &trainer, &of(Strategy::Fsdp, 2), Gpu::H200).unwrap_err();
    assert!(refused.to_string().contains("KeyError: 'sum'"), "{refused}");
    assert!(simulate_parallel(&model, &trainer, &of(Strategy::Fsdp1, 2), Gpu::H200).is_ok());
}

/// Without `contiguous_gradients` there is no bucket: gradients wait where they are, and are copied together to be summed.
#[test]
fn gradients_that_lie_apart_have_no_bucket() {
    let run = |contiguous_gradients| {
        let zero = Zero {
            contiguous_gradients,
            reduce_bucket_size: 1_000_000,
            ..Zero::default()
        };
        let parallel = Parallel {
            zero,
            ..of(Strategy::Deepspeed2, 2)
        };
        record(&setup(Optimizer::AdamwFused), &parallel)
    };
    assert_eq!(made(&run(true), "bucket of gradients"), 1);
    let apart = run(false);
    assert_eq!(made(&apart, "bucket of gradients"), 0);
    assert!(made(&apart, "gradients to be summed") > 24);
}

/// TRL wraps the model that DPO compares with whole, ms-swift block by block.
#[test]
fn ms_swift_gathers_the_model_it_compares_with_by_blocks() {
    let gathers = |trainer| {
        let setup = Setup {
            trainer,
            precision: Precision::Bf16Amp,
            ..setup(Optimizer::AdamwFused)
        };
        made(&record(&setup, &of(Strategy::Fsdp, 2)), "all-gather buffer")
    };
    let [whole, by_blocks] = [TrainerKind::TrlDpo, TrainerKind::MsSwiftDpo].map(gathers);
    assert!(by_blocks >= whole + 23, "{by_blocks} against {whole}");
}

/// In fp32 stage 0 updates the parameters themselves, and stages 1 to 3 a clone of their part, whose gradients need no copy.
#[test]
fn deepspeed_in_fp32_copies_no_gradients() {
    let run = |strategy, precision| {
        let setup = Setup {
            precision,
            clip: true,
            ..setup(Optimizer::AdamwFused)
        };
        record(&setup, &of(strategy, 2))
    };
    let copies = |run: &Recording| made(run, "gradient");
    for strategy in [Strategy::Deepspeed0, Strategy::Deepspeed2, Strategy::Deepspeed3] {
        assert!(copies(&run(strategy, Precision::Bf16)) > 0, "{strategy:?}");
        assert_eq!(copies(&run(strategy, Precision::Fp32)), 0, "{strategy:?}");
    }
    let parameters = |run: &Recording, name| {
        let is_named = |event: &&Event| event.is_alloc() && run.log.allocations[event.storage() as usize].name == name;
        run.build.iter().filter(is_named).count()
    };
    assert_eq!(
        parameters(&run(Strategy::Deepspeed0, Precision::Fp32), "parameter in fp32"),
        0
    );
    assert!(parameters(&run(Strategy::Deepspeed3, Precision::Fp32), "parameters in fp32") > 0);
}

/// DeepSpeed's engine leaves the moving average to the loop: a copy in the weights' type, which stage 3 would leave nothing to
/// average of.
#[test]
fn a_moving_average_is_beside_deepspeeds_engine() {
    let end = |ema| {
        let setup = Setup {
            ema,
            ..setup(Optimizer::AdamwFused)
        };
        let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
        let report = simulate_parallel(&model, &setup, &of(Strategy::Deepspeed2, 2), Gpu::H200).unwrap();
        (report.steady.end.get(), report.params)
    };
    let ((without, params), (with, _)) = (end(false), end(true));
    assert!(with - without >= 2 * params, "{with} against {without}");
    let setup = Setup {
        ema: true,
        ..setup(Optimizer::AdamwFused)
    };
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    let refused = simulate_parallel(&model, &setup, &of(Strategy::Deepspeed3, 2), Gpu::H200).unwrap_err();
    assert!(
        refused.to_string().contains("must match the size of tensor b (0)"),
        "{refused}"
    );
}

/// peft splits adapters with the maps beside them: a map's inputs that are split make `lora_A`'s output partial, split outputs its
/// gradient. Recorded without a GPU.
#[test]
fn adapters_are_split_with_the_maps_beside_them() {
    let model = Model::from_catalogue("llama3.2-1b").unwrap();
    let sums = |freeze| {
        let setup = Setup {
            freeze,
            ..setup(Optimizer::AdamwLoop)
        };
        let run = record_parallel(&model, &setup, &of(Strategy::Tensor, 2), Gpu::H200).unwrap();
        made(&run, "all-reduce")
    };
    // Of seven projections in each of 16 blocks; what the first three read needs no gradient.
    assert_eq!(sums(Freeze::Lora) - sums(Freeze::NONE), 7 * 16 - 3);
}

/// Lists of `DTensor`s and plain tensors stop PyTorch.
#[test]
fn what_mixes_split_and_whole_parameters_is_refused_in_pytorchs_words() {
    let model = Model::from_catalogue("llama3.2-1b").unwrap();
    let plain = setup(Optimizer::AdamwLoop);
    let clip = Setup {
        clip: true,
        ..plain.clone()
    };
    let fused = Setup {
        loss: Loss::FusedLinear,
        ..plain
    };
    for setup in [
        clip,
        fused,
        setup(Optimizer::Adafactor),
        setup(Optimizer::Adamw8bit),
        setup(Optimizer::Muon),
    ] {
        let refused = simulate_parallel(&model, &setup, &of(Strategy::Tensor, 2), Gpu::H200).unwrap_err();
        assert!(
            refused.to_string().contains("mixed torch.Tensor and DTensor"),
            "{refused}"
        );
    }
}

/// Recorded without a GPU under FSDP2: adapters are on the parts.
#[test]
fn adapters_on_experts_are_in_parts_under_fsdp2() {
    let config = r#"{"model_type": "mixtral", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4}"#;
    let model = Model::from_config(config).unwrap();
    let setup = Setup {
        freeze: Freeze::Lora,
        lora_experts: ExpertAdapters::All,
        ..setup(Optimizer::AdamwFused)
    };
    let with = |strategy| simulate_parallel(&model, &setup, &of(strategy, 2), Gpu::H200);
    assert!(with(Strategy::Fsdp).is_ok());
    let refused = with(Strategy::Fsdp1).unwrap_err().to_string();
    assert!(refused.contains("modified inplace"), "{refused}");
}

/// The allocator gets what other streams use back late, which no figure of a log tells.
#[test]
fn fsdp1_says_that_more_may_be_reserved() {
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    let setup = Setup {
        trainer: TrainerKind::Transformers,
        ..setup(Optimizer::AdamwFused)
    };
    let warns = |strategy| {
        let report = simulate_parallel(&model, &setup, &of(strategy, 2), Gpu::H200).unwrap();
        report.warnings.iter().any(|warning| warning.code == "streams")
    };
    assert!(warns(Strategy::Fsdp1));
    assert!(!warns(Strategy::Fsdp));
}
