//! Tests of FSDP around reentrant checkpoints.

use vramscope_engine::setup::{Checkpointing, Freeze, Optimizer, Parallel, Strategy, TrainerKind};
use vramscope_engine::simulate::{Recording, record_parallel};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::log::Event;
use vramscope_engine::{Model, Setup};

fn record(strategy: Strategy, reentrant: bool, freeze: Freeze) -> Recording {
    let model = Model::from_catalogue("qwen2.5-0.5b").unwrap();
    let setup = Setup {
        batch: 1,
        seq: 128,
        optim: Optimizer::AdamwFused,
        trainer: TrainerKind::Transformers,
        ckpt: Checkpointing::Full,
        reentrant,
        freeze,
        ..Setup::default()
    };
    let parallel = Parallel {
        strategy,
        world: 2,
        ..Parallel::default()
    };
    record_parallel(&model, &setup, &parallel, Gpu::H200).unwrap()
}

/// Sizes of what a step makes by this name.
fn made(run: &Recording, name: &str) -> Vec<u64> {
    let is_named = |event: &&Event| event.is_alloc() && run.log.allocations[event.storage() as usize].name == name;
    let events = run.steady.events.iter().filter(is_named);
    let mut sizes: Vec<u64> = events
        .map(|event| run.log.allocations[event.storage() as usize].shape.numel())
        .collect();
    sizes.sort_unstable();
    sizes
}

/// PyTorch 2.11 gathers a block in forward and once more in backward, where FSDP2's hooks run again with the block and leave what
/// they gathered to its own backward, and those of FSDP1 are around the checkpoint. Recorded without a GPU, event by event.
#[test]
fn reentrant_checkpoints_gather_a_block_as_often_as_others() {
    for (strategy, names) in [
        (Strategy::Fsdp, ["all-gather buffer", "reduce-scatter input"]),
        (
            Strategy::Fsdp1,
            ["gathered flat parameter", "gradient of a flat parameter"],
        ),
    ] {
        let [others, reentrant] = [false, true].map(|reentrant| record(strategy, reentrant, Freeze::NONE));
        for name in names {
            let sizes = made(&others, name);
            assert!(sizes.len() > 24, "{strategy:?}: {sizes:?}");
            assert_eq!(made(&reentrant, name), sizes, "{strategy:?}: {name}");
        }
    }
}

/// Adapters in fp32 beside weights in bf16, neither of which a policy casts.
#[test]
fn parameters_of_several_types_are_gathered_as_bytes() {
    let run = record(Strategy::Fsdp, true, Freeze::Lora);
    assert!(made(&run, "copy of shards").is_empty());
    let [buffers, whole] =
        ["all-gather buffer", "gathered parameter"].map(|name| made(&run, name).into_iter().sum::<u64>());
    assert!(buffers > whole, "{buffers} bytes of {whole} parameters");
}
