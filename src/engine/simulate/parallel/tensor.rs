//! Tensor parallelism as transformers trains: which models have a plan, and what an optimizer makes of it.
//!
//! `from_pretrained(distributed_config=DistributedConfig(tp_size=…))` makes the linear maps that the model's plan names
//! `DTensor`s: of each GPU some heads and some of the MLP's width, with an all-reduce behind attention and MLP and one
//! of each projection's input gradient in backward. The head of a model of text is cut by its vocabulary, and with it a
//! table of tokens that is tied to it; norms, other tables, vision towers and the heads of models that see stay whole
//! on each GPU. All GPUs work on one batch. So a step is recorded with the shapes of one GPU, rather than rewritten.
//!
//! Sources: `transformers/distributed/tensor_parallel.py`, `mixin.py`, `configuration_utils.py` and each model's
//! `base_model_tp_plan` of transformers 5.17; `torch/distributed/tensor/` of PyTorch 2.11.

use super::super::SimulateError;
use crate::model::ModelConfig;
use crate::model::config::{DecoderConfig, DecoderFamily};
use crate::setup::{Freeze, Loss, Optimizer};
use crate::{Model, Setup};

/// The step of one GPU that is recorded.
///
/// Fused and foreach kernels refuse a list of `DTensor`s and plain tensors. `Trainer` sees that and steps `AdamW` one
/// parameter after the other (`trainer_optimizer.py`); SGD runs where a script says `foreach=False`.
pub(super) fn base(model: &Model, setup: &Setup, world: u64) -> Result<Setup, SimulateError> {
    parts(model, world)?;
    let optim = match setup.optim {
        Optimizer::Adamw | Optimizer::AdamwFused => Optimizer::AdamwLoop,
        other => other,
    };
    Ok(Setup { optim, ..setup.clone() })
}

/// Whether so many GPUs can share a model's linear maps.
///
/// # Errors
/// When transformers has no plan for the model, or the number divides what is cut into parts that are not equal.
pub fn parts(model: &Model, world: u64) -> Result<(), SimulateError> {
    let (text, gathers) = planned(model)?;
    divides(text, gathers, world)
}

/// What cannot be shared so, whatever the model.
pub(super) fn refuse(setup: &Setup) -> Result<(), SimulateError> {
    let simulated = matches!(
        setup.optim,
        Optimizer::Adamw | Optimizer::AdamwFused | Optimizer::AdamwLoop | Optimizer::Sgd | Optimizer::Sgdm
    );
    let why = if !simulated {
        "tensor parallelism is simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm"
    } else if matches!(setup.freeze, Freeze::Lora | Freeze::Qlora) {
        "tensor parallelism is simulated without adapters; set `freeze` to none, vision or all-but-connector"
    } else if setup.loss != Loss::Full {
        "tensor parallelism is simulated with `loss` full"
    } else if setup.clip || setup.ema {
        "tensor parallelism is simulated without `clip` and `ema`; leave them out"
    } else {
        return Ok(());
    };
    Err(SimulateError::Parallel(why.to_owned()))
}

/// The language model whose maps are shared, and whether its head is.
fn planned(model: &Model) -> Result<(&DecoderConfig, bool), SimulateError> {
    use ModelConfig as M;
    let (text, gathers) = match &model.config {
        M::Decoder(text) => (text, true),
        // its head is tied where the section of the text says so, and then transformers cuts the table and not the head
        M::Llava(c) if !c.text.tie_word_embeddings => (&c.text, false),
        M::LlavaNext(c) => (&c.text, false),
        M::Qwen2Vl(c) => (&c.text, false),
        M::Qwen25Vl(c) => (&c.text, false),
        M::InternVl(c) => (&c.text, false),
        M::Idefics3(c) => (&c.text, false),
        _ => return Err(no_plan(model)),
    };
    match text.family {
        DecoderFamily::Llama | DecoderFamily::Mistral | DecoderFamily::Qwen2 => Ok((text, gathers)),
        _ => Err(no_plan(model)),
    }
}

fn no_plan(model: &Model) -> SimulateError {
    SimulateError::Parallel(format!(
        "tensor parallelism is not simulated for {}: it is for Llama, Mistral and Qwen2 decoders, alone or in LLaVA, \
         Qwen2-VL, Qwen2.5-VL, InternVL and SmolVLM; set `strategy` to fsdp",
        model.name
    ))
}

/// Each GPU gets whole heads and an equal part of everything else that is cut.
fn divides(text: &DecoderConfig, gathers: bool, world: u64) -> Result<(), SimulateError> {
    let cut = [
        ("num_key_value_heads", text.kv_heads, true),
        ("num_attention_heads", text.heads, true),
        ("intermediate_size", text.intermediate, true),
        ("vocab_size", text.vocab, gathers),
    ];
    match cut
        .into_iter()
        .find(|(_, size, cut)| *cut && !size.is_multiple_of(world))
    {
        None => Ok(()),
        Some((name, size, _)) => Err(SimulateError::Parallel(format!(
            "`world` is {world}, and the model's `{name}` of {size} cannot be shared by so many GPUs; tensor parallelism \
             takes a number that divides it"
        ))),
    }
}
