//! Reasons that GPUs cannot share a run as the setup asks, with their English messages.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::SimulateError;

/// Reason that GPUs cannot share a run as the setup asks. Frontends in other languages find their own text by its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unshared {
    /// Stable identifier, such as `stage_beyond`.
    pub code: Cow<'static, str>,
    /// Values for translated texts, by their names in alphabetical order.
    pub args: Vec<(Cow<'static, str>, String)>,
    /// English text: the value given, the values allowed, and the next step.
    pub message: String,
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
        f.write_str(&self.message)
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
                })
            }
        )+
    };
}

reasons! {
    adapted_experts() = "adapters on experts are simulated with `strategy` ddp, ddp_view and zero1; take one of these, or \
        `lora_targets` attention with `lora_experts` targets";
    bucket(bucket, most) = "`bucket` is {bucket} MB; it must be between 1 and {most}";
    compiled() = "steps under `compile` were measured on one GPU alone; leave `compile` out, or `strategy`";
    deepspeed_bucket(most, size) = "`zero.reduce_bucket_size` is {size}; it must be between 1 and {most}";
    deepspeed_contiguous() = "`zero.contiguous_gradients` false is not simulated; leave it out";
    deepspeed_extras() = "DeepSpeed is simulated without `ema`, and with `zero_grad` to_none";
    deepspeed_keys() = "`zero` is of DeepSpeed; set `strategy` to deepspeed0, 1, 2 or 3, or leave it out";
    deepspeed_offload() = "`offload` in words is DeepSpeed's; set `strategy` to deepspeed1, 2 or 3, or `offload` to \
        true";
    deepspeed_optim() = "DeepSpeed is simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm";
    deepspeed_parameters() = "parameters are offloaded by stage 3; set `offload` to \"optimizer\"";
    deepspeed_precision() = "DeepSpeed is simulated with `bf16: enabled` and weights in bf16; set `precision` to bf16";
    deepspeed_qlora() = "DeepSpeed is simulated without weights in 4 bits; set `freeze` to lora or none";
    deepspeed_shared() = "stage 3 is simulated for models whose modules use their own parameters alone; set `strategy` to \
        deepspeed2, or to fsdp";
    deepspeed_stage0() = "stage 0 offloads nothing; set `strategy` to deepspeed1 or deepspeed2, or leave `offload` out";
    deepspeed_time() = "the time of DeepSpeed's step is not estimated; set `strategy` to zero1 or fsdp for one of its kind";
    fsdp_extras() = "FSDP2 is simulated without `accum`, `clip` and `ema`; leave them out";
    fsdp_options() = "`mp` and `offload` true are of FSDP2; set `strategy` to fsdp or leave them out";
    fsdp_zero_grad() = "FSDP2 is simulated with `zero_grad` to_none";
    idle_tower() = "several GPUs are simulated for samples with images; set `images` to at least 1";
    loop_alone() = "several GPUs are simulated with `trainer` loop";
    mp_autocast() = "`mp` takes the place of autocast; set `precision` to fp32 or bf16";
    pipeline_accum(accum, world) = "`accum` is {accum}, the micro-batches of a step; Schedule1F1B takes at least as many \
        as there are stages, {world}";
    pipeline_blocks(blocks, world) = "`world` is {world}, and the model's {blocks} blocks are not a multiple of it; a \
        pipeline is simulated with as many blocks in each stage, so take a number that divides them";
    pipeline_cache() = "pipeline parallelism is simulated with `use_cache` off";
    pipeline_extras() = "pipeline parallelism is simulated without `clip` and `ema`; leave them out";
    pipeline_freeze() = "pipeline parallelism is simulated with `freeze` none or vision";
    pipeline_loss() = "pipeline parallelism is simulated with `loss` full";
    pipeline_model(model) = "pipeline parallelism is not simulated for {model}: it is for Llama and Qwen2 decoders, alone \
        or in LLaVA-1.5 and SmolVLM; set `strategy` to fsdp";
    pipeline_optim() = "pipeline parallelism is simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm";
    pipeline_ragged() = "pipeline parallelism is simulated with samples of one length and images of one size: leave \
        `lengths` and `image_sizes` out";
    pipeline_scaler() = "pipeline parallelism is simulated without GradScaler; set `precision` to bf16, amp-bf16 or fp32";
    pipeline_tied(model) = "the head of {model} is its table of tokens, and the last stage of a pipeline has no table: \
        PyTorch does not keep two copies alike; set `strategy` to fsdp or tensor";
    pipeline_zero_grad() = "pipeline parallelism is simulated with `zero_grad` to_none";
    sharded_states() = "sharded states are simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm";
    stage_beyond(last, stage, world) = "`stage` is {stage}; the stages of {world} GPUs are 0 to {last}";
    stage_elsewhere() = "`stage` is of a pipeline; set `strategy` to pipeline or leave it out";
    tensor_adapters() = "tensor parallelism is simulated without adapters; set `freeze` to none, vision or \
        all-but-connector";
    tensor_extras() = "tensor parallelism is simulated without `clip` and `ema`; leave them out";
    tensor_loss() = "tensor parallelism is simulated with `loss` full";
    tensor_model(model) = "tensor parallelism is not simulated for {model}: it is for Llama, Mistral and Qwen2 decoders, \
        alone or in LLaVA, Qwen2-VL, Qwen2.5-VL, InternVL and SmolVLM; set `strategy` to fsdp";
    tensor_optim() = "tensor parallelism is simulated for `optim` adamw, adamw_fused, adamw_loop, sgd and sgdm";
    tensor_parts(name, size, world) = "`world` is {world}, and the model's `{name}` of {size} cannot be shared by so many \
        GPUs; tensor parallelism takes a number that divides it";
    unused_parameters() = "`strategy` zero1 is simulated where every trained parameter gets a gradient, and some of this \
        model get none; set `freeze` to vision, or `strategy` to fsdp";
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
