//! Reasons that GPUs cannot share a run as the setup asks, with their English messages.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::SimulateError;
use super::change::{Change, behind};

/// Reason that GPUs cannot share a run as the setup asks. Frontends in other languages find their own text by its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unshared {
    /// Stable identifier, such as `stage_beyond`.
    pub code: Cow<'static, str>,
    /// Values for translated texts, by their names in alphabetical order.
    pub args: Vec<(Cow<'static, str>, String)>,
    /// English text: the value given, and the values allowed.
    pub message: String,
    /// Ways out, of which each was tried ([`ways_out`](super::ways_out)).
    pub ways: Vec<Change>,
}

impl Unshared {
    /// Returns true if the run itself may well work, and is only not simulated. The text of such a reason says what is
    /// simulated.
    pub fn is_only_unsimulated(&self) -> bool {
        self.message.contains("simulated") || self.code == "compiled"
    }

    /// The entry, by its name in a case, whose value is out of its range; `None` for other reasons.
    pub fn entry_out_of_range(&self) -> Option<&str> {
        match &*self.code {
            "bucket" | "world" => Some(&self.code),
            "deepspeed_bucket" => Some("zero"),
            "stage_beyond" => Some("stage"),
            _ => None,
        }
    }
}

impl Display for Unshared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, behind(&self.ways))
    }
}

impl std::error::Error for Unshared {}

/// Declares reasons, `code(arguments) = "English text";`: a function that makes each, and the list of all.
macro_rules! reasons {
    ($( $code:ident($( $arg:ident ),*) = $text:literal; )+) => {
        impl Unshared {
            /// Codes of all reasons, each with the names of its values.
            pub const ALL: &'static [(&'static str, &'static [&'static str])] =
                &[$( (stringify!($code), &[$( stringify!($arg) ),*]) ),+];
        }
        $(
            pub(super) fn $code($( $arg: &dyn Display ),*) -> SimulateError {
                SimulateError::Parallel(Unshared {
                    code: Cow::Borrowed(stringify!($code)),
                    args: vec![$( (Cow::Borrowed(stringify!($arg)), $arg.to_string()) ),*],
                    message: format!($text),
                    ways: Vec::new(),
                })
            }
        )+
    };
}

reasons! {
    adapted_experts() = "adapters on experts are not simulated yet with stage 3 of DeepSpeed, tensor and pipeline parallelism";
    bucket(bucket, most) = "`bucket` is {bucket} MB; it must be between 1 and {most}";
    compiled() = "steps under `compile` were measured on one GPU alone";
    deepspeed_adagrad() = "Adagrad is not simulated yet under DeepSpeed, which makes it a second time, over its own parts";
    deepspeed_autocast() = "DeepSpeed switches a loop's own autocast off (\"torch.autocast is enabled outside DeepSpeed but disabled within the \
        DeepSpeed engine\"): `precision` is what its engine has, fp32, bf16 or fp16";
    deepspeed_bucket(most, size) = "`zero.reduce_bucket_size` is {size}; it must be between 1 and {most}";
    deepspeed_ema() = "`ema` averages whole parameters, of which stage 3 leaves none: PyTorch stops with \"must match the size of tensor b \
        (0)\"";
    deepspeed_keys() = "`zero` is of DeepSpeed";
    deepspeed_offload() = "`offload` in words is DeepSpeed's";
    deepspeed_parameters() = "parameters are offloaded by stage 3 alone";
    deepspeed_shared() = "ZeRO-3 is not simulated yet where a module reads another's parameters, as Liger's fused loss does";
    deepspeed_stage0() = "stage 0 offloads nothing";
    deepspeed_zero_grad() = "DeepSpeed's engine frees gradients by itself: `zero_grad` other than to_none is of a loop without it";
    flat_muon() = "Muon updates matrices and leaves the rest to another optimizer: DeepSpeed takes a single one (\"Client Optimizer is of \
        unexpected type\"), and FSDP1 has vectors alone, each the parameters of a module";
    fsdp1_experts() = "peft multiplies adapters on experts outside their modules, which FSDP1 wraps and gathers alone: PyTorch stops with \"is a \
        view and its base or another view of its base has been modified inplace\"";
    fsdp1_scaler() = "fp16 under FSDP1 has a ShardedGradScaler, whose flag of one element PyTorch's fused AdamW does not take: it \
        stops with \"output with shape [] doesn't match the broadcast shape [1]\"";
    fsdp1_types() = "FSDP1 flattens parameters of one type alone, and peft's prepare_model_for_kbit_training leaves some in \
        fp32 beside weights in 4 bits; TRL's SFT does not";
    fsdp_adafactor() = "transformers' Adafactor makes states that are no `DTensor`s, as which FSDP2 keeps parameters: PyTorch stops \
        in the first update with \"got mixed torch.Tensor and DTensor\"";
    fsdp_adafactor_torch() = "PyTorch's Adafactor changes norms of rows in place, which those of `DTensor`s, as which FSDP2 keeps \
        parameters, do not allow: PyTorch stops in the first update with \"in-place operations that require placement changes are \
        not supported\"";
    fsdp_adagrad() = "PyTorch's Adagrad makes states as it is made itself, which under a trainer is before accelerate wraps the model for \
        FSDP2 and gives it other parameters: PyTorch stops in the first update with \"KeyError: 'sum'\"";
    fsdp_bitsandbytes() = "bitsandbytes updates plain tensors with kernels of its own, and FSDP2 keeps parameters as `DTensor`s: PyTorch \
        stops in the first update with \"got mixed torch.Tensor and DTensor\"";
    fsdp_ema() = "`ema` is a copy of the model, and PyTorch refuses to copy one that FSDP has wrapped (\"FSDP does not support \
        deepcopy\")";
    fsdp_options() = "`mp` and `offload` true are of FSDP2";
    fsdp_without_text() = "accelerate does not prepare a model without text for FSDP2: it wraps what `get_input_embeddings` \
        returns, which CLIP has not, and which ViT has within what is wrapped already";
    grpo_sharded() = "FSDP is not simulated yet with `trainer` trl_grpo, which gathers the model again for each token";
    loop_alone() = "this `strategy` is not simulated yet with a `trainer` other than loop";
    mp_autocast() = "`mp` takes the place of autocast";
    mp_trainer() = "under a trainer the precision is the trainer's own, which `mp` is not";
    pipeline_accum(accum, world) = "`accum` is {accum}, the micro-batches of a step; Schedule1F1B takes at least as many \
        as there are stages, {world}";
    pipeline_blocks(blocks, world) = "`world` is {world}, and the model's {blocks} blocks are not a multiple of it; a \
        pipeline is simulated with as many blocks in each stage, so take a number that divides them";
    pipeline_cache() = "pipeline parallelism is not simulated yet with `use_cache`";
    pipeline_extras() = "pipeline parallelism is not simulated yet with `clip` or `ema`";
    pipeline_freeze() = "pipeline parallelism is not simulated yet with this `freeze`, but with none and vision";
    pipeline_idle() = "pipeline parallelism is not simulated yet for samples without images of a model that takes them";
    pipeline_loss() = "pipeline parallelism is not simulated yet with a fused loss";
    pipeline_model(model) = "pipeline parallelism is not simulated for {model}: it is for Llama and Qwen2 decoders, alone \
        or in LLaVA-1.5 and SmolVLM";
    pipeline_optim() = "pipeline parallelism is not simulated yet with this `optim`, but with adamw, adamw_fused, adamw_loop, sgd and sgdm";
    pipeline_ragged() = "pipeline parallelism is simulated with samples of one length and images of one size";
    pipeline_scaler() = "pipeline parallelism is not simulated yet with GradScaler";
    pipeline_tied(model) = "the head of {model} is its table of tokens, and the last stage of a pipeline has no table: \
        PyTorch does not keep two copies alike";
    pipeline_zero_grad() = "pipeline parallelism is not simulated yet with `zero_grad` other than to_none";
    saved_sharded() = "modules trained in full beside adapters (`saved_modules`) are not simulated yet with FSDP, stage 3 of DeepSpeed \
        and tensor parallelism";
    stage_beyond(last, stage, world) = "`stage` is {stage}; the stages of {world} GPUs are 0 to {last}";
    stage_elsewhere() = "`stage` is of a pipeline";
    tensor_bits() = "tensor parallelism is not simulated yet with weights in 4 bits";
    tensor_dora() = "DoRA is not simulated yet with tensor parallelism";
    tensor_extras() = "`clip` and `ema` go over all parameters at once, of which tensor parallelism makes some `DTensor`s and leaves norms \
        plain: PyTorch stops with \"got mixed torch.Tensor and DTensor\"";
    tensor_loss() = "a fused loss multiplies by the head, which tensor parallelism splits: PyTorch stops with \"aten.mm.out got mixed \
        torch.Tensor and DTensor\"";
    tensor_model(model) = "tensor parallelism is not simulated for {model}: it is for Llama, Mistral and Qwen2 decoders, \
        alone or in LLaVA, Qwen2-VL, Qwen2.5-VL, InternVL and SmolVLM";
    tensor_optim() = "this `optim` mixes the `DTensor`s of tensor parallelism with plain tensors, or changes them in place: PyTorch stops \
        in the first update with \"got mixed torch.Tensor and DTensor\" or \"in-place operations that require placement \
        changes are not supported\"";
    tensor_parts(name, size, world) = "`world` is {world}, and the model's `{name}` of {size} cannot be shared by so many \
        GPUs; tensor parallelism takes a number that divides it";
    world(least, most, world) = "`world` is {world}; several GPUs are {least} to {most}";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translated texts number their gaps in this order.
    #[test]
    fn names_are_in_order() {
        assert!(Unshared::ALL.is_sorted_by_key(|(code, _)| code));
        for (code, args) in Unshared::ALL {
            assert!(args.is_sorted(), "{code}: {args:?}");
        }
    }
}
