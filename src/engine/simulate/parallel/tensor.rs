//! Records tensor parallelism as transformers trains it: models with a plan, and the optimizer's form.
//!
//! `from_pretrained(distributed_config=DistributedConfig(tp_size=…))` turns the linear layers that the model's plan names
//! into `DTensor`s: each GPU has some heads and some of the MLP's width, with an all-reduce after attention and MLP and
//! one for each projection's input gradient in backward. The head of a text model is split by its vocabulary, and so is
//! a token embedding that is tied to it; norms, other embeddings, vision towers and the heads of vision-language models
//! stay whole on each GPU. All GPUs work on one batch. So a step is recorded with the shapes of one GPU, rather than
//! rewritten.
//!
//! Sources: `transformers/distributed/tensor_parallel.py`, `mixin.py`, `configuration_utils.py` and each model's
//! `base_model_tp_plan` of transformers 5.17; `torch/distributed/tensor/` of PyTorch 2.11.

use super::super::{SimulateError, unshared as why};
use crate::model::answers::TensorPlan;
use crate::setup::{Freeze, Loss, Optimizer};
use crate::{Model, Setup};

/// Returns the setup of one GPU to record.
///
/// Fused and foreach kernels refuse a list that mixes `DTensor`s and plain tensors. `Trainer` detects that and steps
/// `AdamW` one parameter after the other (`trainer_optimizer.py`); SGD runs if a script passes `foreach=False`.
pub(super) fn base(model: &Model, setup: &Setup, world: u64) -> Result<Setup, SimulateError> {
    parts(model, world)?;
    let plan = model.config.family().support().tensor_parallel;
    if setup.loss == Loss::FusedLinear && plan.is_some_and(|plan| plan.splits_head) {
        return Err(why::tensor_loss());
    }
    let optim = match setup.optim {
        Optimizer::Adamw | Optimizer::AdamwFused => Optimizer::AdamwLoop,
        other => other,
    };
    Ok(Setup { optim, ..setup.clone() })
}

/// Checks that `world` GPUs can share a model's linear layers.
///
/// # Errors
/// When transformers has no plan for the model, or the split sizes are not multiples of `world`.
pub fn parts(model: &Model, world: u64) -> Result<(), SimulateError> {
    match model.config.family().support().tensor_parallel {
        Some(plan) => divides(plan, world),
        None => Err(why::tensor_model(&model.name)),
    }
}

/// Refuses setups that tensor parallelism cannot train, for any model.
pub(super) fn refuse(setup: &Setup) -> Result<(), SimulateError> {
    // Those that update one parameter after the other, or do so if they are told to.
    let is_apart = matches!(
        setup.optim,
        Optimizer::Adamw
            | Optimizer::AdamwFused
            | Optimizer::AdamwLoop
            | Optimizer::Sgd
            | Optimizer::Sgdm
            | Optimizer::AdamwTorchao8bit
            | Optimizer::AdamwTorchao4bit
            | Optimizer::AdamwTorchaoFp8
    );
    if !is_apart {
        Err(why::tensor_optim())
    } else if setup.freeze == Freeze::Qlora {
        Err(why::tensor_bits())
    } else if setup.dora && setup.freeze.is_adapted() {
        Err(why::tensor_dora())
    } else if setup.trains_saved_modules() {
        Err(why::saved_sharded())
    } else if setup.clip || setup.ema {
        Err(why::tensor_extras())
    } else {
        Ok(())
    }
}

/// Checks that each GPU gets whole heads and an equal part of everything else that is split.
fn divides(TensorPlan { text, splits_head }: TensorPlan<'_>, world: u64) -> Result<(), SimulateError> {
    let cut = [
        ("num_key_value_heads", text.kv_heads, true),
        ("num_attention_heads", text.heads, true),
        ("intermediate_size", text.intermediate, true),
        ("vocab_size", text.vocab, splits_head),
    ];
    match cut
        .into_iter()
        .find(|(_, size, cut)| *cut && !size.is_multiple_of(world))
    {
        None => Ok(()),
        Some((name, size, _)) => Err(why::tensor_parts(&name, &size, &world)),
    }
}
