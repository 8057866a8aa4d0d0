//! Records pipeline parallelism as PyTorch trains it: `PipelineStage` and `Schedule1F1B` or `ScheduleGPipe`.
//!
//! Each GPU has an equal number of consecutive blocks of the language model, `layers[rank * n..(rank + 1) * n]`; the
//! first also has the token embedding and the modules that turn images into embeddings, and the last the norm, the head
//! and the loss. A step trains `accum` micro-batches of `batch` samples. A GPU holds:
//!
//! - parameters, gradients and optimizer states of its own blocks;
//! - a buffer for the activations that it receives of each micro-batch, unless it is the first, and one for the
//!   gradients, unless it is the last: the first step makes them (`_prepare_forward_infra`, `_prepare_backward_infra`)
//!   and they stay;
//! - what backward needs of each micro-batch in flight, and the output of its forward (`fwd_cache`): stages − rank
//!   micro-batches with 1F1B, all with `GPipe`;
//! - with 1F1B two gradients of its inputs, one that was sent and one that is being made, with `GPipe` one. The
//!   allocator reuses memory that NCCL sends only after the send, which may be after Python frees it if the host is far
//!   ahead of the GPU; here it is reused as soon as Python frees it;
//! - on the last stage the logits of the micro-batch before while the next one's are made, since the schedule's
//!   variable still holds them, and the losses.
//!
//! Losses are not divided by the number of micro-batches: gradients are, in place, once all are accumulated
//! (`scale_grads`). A stage is called with `use_cache=False` and under autocast, if any, per micro-batch, so that each
//! micro-batch in flight has its own copies of the weights. Steps are called with `return_outputs=False`: otherwise the
//! last stage keeps all logits and joins them. Each GPU gets ids, labels and mask of all micro-batches, the first one
//! the images too. If a stage is not given the shapes of its inputs and outputs, the first step runs each forward once
//! more without a graph; that is not simulated, and leaves nothing behind.
//!
//! Sources: `torch/distributed/pipelining/{stage,schedules,microbatch,_backward}.py` of PyTorch 2.11.

use super::super::SimulateError;
use super::super::count::count;
use super::super::steps::{Notes, record_shared};
use super::super::unshared as why;
use crate::order::sort_by_key;
use crate::setup::{Freeze, Loss, Optimizer, Parallel, Strategy, ZeroGrad};
use crate::tape::{Gpu, Stage};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Returns the stage of a pipeline to record; the whole model for other strategies.
pub(super) const fn stage(parallel: &Parallel) -> Stage {
    match (parallel.strategy.is_pipeline(), parallel.stage) {
        (true, Some(index)) => Stage {
            index,
            count: parallel.world,
            fills_first: matches!(parallel.strategy, Strategy::PipelineGpipe),
        },
        _ => Stage::WHOLE,
    }
}

/// Returns the strategy with its stage named: if it names none, the stage with the most live bytes, together with the
/// live bytes of each stage compared, highest first.
///
/// # Errors
/// Returns the errors of [`simulate_parallel`](super::simulate_parallel).
pub(super) fn named(
    model: &Model,
    setup: &Setup,
    parallel: &Parallel,
    gpu: Gpu,
) -> Result<(Parallel, Vec<(u64, Bytes)>), SimulateError> {
    if !parallel.strategy.is_pipeline() || parallel.stage.is_some() {
        return Ok((*parallel, Vec::new()));
    }
    let base = base(model, setup, parallel)?;
    let notes = Notes {
        work: false,
        sums: true,
    };
    let at = |index| Parallel {
        stage: Some(index),
        ..*parallel
    };
    let mut all = Vec::new();
    for index in distinct(parallel.world) {
        let run = record_shared(model, &base, gpu, (notes, super::share(&at(index))), None)?;
        all.push((index, count(&run).highest));
    }
    sort_by_key(&mut all, |(_, bytes)| std::cmp::Reverse(*bytes));
    Ok((at(all[0].0), all))
}

/// Stages that can be the heaviest: of those between the first and the last, the second has the most micro-batches in
/// flight.
pub fn distinct(world: u64) -> impl Iterator<Item = u64> {
    let second = (world > 2).then_some(1);
    [Some(0), second, Some(world - 1)].into_iter().flatten()
}

/// Returns the setup of one stage to record.
///
/// # Errors
/// When the model cannot be cut into this many stages.
pub(super) fn base(model: &Model, setup: &Setup, parallel: &Parallel) -> Result<Setup, SimulateError> {
    stages(model, parallel.world)?;
    if setup.images == 0 && model.takes().parts {
        return Err(why::pipeline_idle());
    }
    Ok(Setup {
        use_cache: Some(false),
        ..setup.clone()
    })
}

/// Checks that a model can be cut into `world` stages.
///
/// # Errors
/// When pipelines are not simulated for the model, or the stages would have different numbers of blocks.
pub fn stages(model: &Model, world: u64) -> Result<(), SimulateError> {
    let Some(text) = model.config.family().support().pipeline else {
        return Err(why::pipeline_model(&model.name));
    };
    if text.tie_word_embeddings {
        return Err(why::pipeline_tied(&model.name));
    }
    if !text.layers.is_multiple_of(world) {
        return Err(why::pipeline_blocks(&text.layers, &world));
    }
    Ok(())
}

/// Refuses setups that a pipeline cannot train, for any model.
pub(super) fn refuse(setup: &Setup, parallel: &Parallel) -> Result<(), SimulateError> {
    let simulated = matches!(
        setup.optim,
        Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::Sgd | Optimizer::Sgdm
    );
    let world = parallel.world;
    let why = if let Some(stage) = parallel.stage.filter(|stage| *stage >= world) {
        why::stage_beyond(&(world - 1), &stage, &world)
    } else if parallel.strategy == Strategy::Pipeline && setup.accum < world {
        why::pipeline_accum(&setup.accum, &world)
    } else if !simulated {
        why::pipeline_optim()
    } else if !matches!(setup.freeze, Freeze::NONE | Freeze::VISION) {
        why::pipeline_freeze()
    } else if setup.precision.has_scaler() {
        why::pipeline_scaler()
    } else if setup.loss != Loss::Full {
        why::pipeline_loss()
    } else if setup.clip || setup.ema {
        why::pipeline_extras()
    } else if setup.zero_grad != ZeroGrad::ToNone {
        why::pipeline_zero_grad()
    } else if !setup.lengths.is_empty() || !setup.image_sizes.is_empty() || !setup.image_counts.is_empty() {
        why::pipeline_ragged()
    } else if setup.use_cache == Some(true) {
        why::pipeline_cache()
    } else {
        return Ok(());
    };
    Err(why)
}
