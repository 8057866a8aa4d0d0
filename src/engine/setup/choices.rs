//! Enums of the setup's choices, named as cases name them.

use serde::{Deserialize, Serialize};

use super::declaration::choices;
use super::{Choices, Kind, Needs, Value};

choices! {
    /// Number format of weights and compute.
    #[derive(Default)]
    pub enum Precision {
        /// Everything in fp32.
        Fp32 = "fp32",
        /// Weights, gradients and optimizer states in bf16.
        #[default]
        Bf16 = "bf16",
        /// bf16 weights under `torch.autocast(dtype=bfloat16)`, as most training scripts run them.
        Bf16Amp = "bf16-amp",
        /// fp32 weights under `torch.autocast(dtype=bfloat16)`.
        AmpBf16 = "amp-bf16",
        /// fp32 weights under `torch.autocast(dtype=float16)` with a `GradScaler`.
        AmpFp16 = "amp-fp16",
        /// Weights, gradients and optimizer states in fp16.
        Fp16 = "fp16",
        /// fp16 weights under `torch.autocast(dtype=float16)` with a `GradScaler`, which takes no gradients in fp16: what is
        /// trained is in fp32, as adapters are.
        Fp16Amp = "fp16-amp",
    }

    /// Optimizer and the form of its step.
    #[derive(Default)]
    pub enum Optimizer {
        /// `torch.optim.AdamW(foreach=True)`, PyTorch's default on a GPU.
        #[default]
        Adamw = "adamw" as "AdamW (foreach)",
        /// `torch.optim.AdamW(fused=True)`.
        AdamwFused = "adamw_fused" as "AdamW (fused)",
        /// `torch.optim.AdamW(foreach=False)`: one parameter after the other.
        AdamwLoop = "adamw_loop" as "AdamW (for-loop)",
        /// `torch.optim.SGD`, no momentum.
        Sgd = "sgd" as "SGD",
        /// `torch.optim.SGD(momentum=0.9)`.
        Sgdm = "sgdm",
        /// `transformers.optimization.Adafactor`.
        Adafactor = "adafactor" as "Adafactor (transformers)",
        /// `torch.optim.Adafactor`.
        AdafactorTorch = "adafactor_torch" as "Adafactor (torch.optim)",
        /// `bitsandbytes.optim.AdamW8bit`: moments in one byte, with a scale for each 256 of them.
        Adamw8bit = "adamw_8bit" as "AdamW 8-bit (bitsandbytes)",
        /// `bitsandbytes.optim.PagedAdamW8bit`: moments in one byte, large ones in memory that CUDA moves between host
        /// and device.
        PagedAdamw8bit = "paged_adamw_8bit",
        /// `bitsandbytes.optim.PagedAdamW32bit`: moments in fp32, large ones paged.
        PagedAdamw = "paged_adamw",
        /// `bitsandbytes.optim.Lion`: one moment in fp32.
        Lion = "lion" as "Lion (bitsandbytes)",
        /// `bitsandbytes.optim.Lion8bit`: one moment in one byte, with a scale for each 256 of them.
        Lion8bit = "lion_8bit" as "Lion 8-bit (bitsandbytes)",
        /// `bitsandbytes.optim.PagedLion8bit`: one moment in one byte, paged where it is large.
        PagedLion8bit = "paged_lion_8bit",
        /// `bitsandbytes.optim.PagedLion32bit`: one moment in fp32, paged where it is large.
        PagedLion = "paged_lion",
        /// `torch.optim.Muon` for the matrices of the blocks, `torch.optim.AdamW(foreach=True)` for everything else:
        /// embeddings, the head, vectors, and kernels of convolutions.
        Muon = "muon" as "Muon + AdamW (torch.optim)",
        /// `torchao.optim.AdamW8bit`: moments in one byte, with a scale for each 256 of them.
        AdamwTorchao8bit = "adamw_torchao_8bit" as "AdamW 8-bit (torchao)",
        /// `torchao.optim.AdamW4bit`: moments in half a byte, with a scale for each 128 of them, 256 under Trainer.
        AdamwTorchao4bit = "adamw_torchao_4bit" as "AdamW 4-bit (torchao)",
        /// `torchao.optim.AdamWFp8`: moments in float8_e4m3fn, with a scale for each 256 of them.
        AdamwTorchaoFp8 = "adamw_torchao_fp8" as "AdamW fp8 (torchao)",
        /// `torch.optim.Adagrad(foreach=True)`, PyTorch's default on a GPU, and transformers'.
        Adagrad = "adagrad" as "Adagrad (foreach)",
        /// `torch.optim.Adagrad(foreach=False)`: one parameter after the other.
        AdagradLoop = "adagrad_loop" as "Adagrad (for-loop)",
    }

    /// Activation checkpointing.
    #[derive(Default)]
    pub enum Checkpointing {
        /// Every activation that backward needs is kept.
        #[default]
        None = "none",
        /// `gradient_checkpointing_enable`: every block, in the form that `reentrant` says.
        Full = "full",
        /// Every block of the vision tower alone.
        Vision = "vision" needs Parts,
        /// Every block of the language model alone.
        Language = "language" needs Parts,
        /// Every block with trained weights or adapters; frozen ones run as they are, in the graph beside adapters, for
        /// which peft makes the outputs of all embeddings require gradients (LLaMA-Factory's
        /// `get_custom_gradient_checkpointing_func`).
        Trained = "trained" needs Parts,
    }

    /// transformers' `attn_implementation`.
    #[derive(Default)]
    pub enum Attention {
        /// `scaled_dot_product_attention`.
        #[default]
        Sdpa = "sdpa" as "SDPA",
        /// Scores, softmax, dropout and product as separate tensors.
        Eager = "eager" as "eager",
        /// The package `flash-attn`, version 2. Simulated from the source of transformers 5.17 and flash-attn 2.8: no
        /// run of it has been recorded.
        FlashAttention2 = "flash_attention_2" as "FlashAttention 2",
    }

    /// State of the gradients after `optimizer.zero_grad`.
    #[derive(Default)]
    pub enum ZeroGrad {
        /// `set_to_none=True`, PyTorch's default: they are freed.
        #[default]
        ToNone = "to_none",
        /// `set_to_none=False`: they stay, filled with zeros.
        ToZero = "to_zero",
    }

    /// Program that runs the training steps.
    #[derive(Default)]
    pub enum TrainerKind {
        /// A loop of one's own: forward, backward, step and `zero_grad`, and nothing that lasts beside.
        #[default]
        Loop = "loop",
        /// `transformers.Trainer` (5.17) with accelerate.
        Transformers = "transformers" as "transformers.Trainer",
        /// `swift.trainers.Seq2SeqTrainer` of ms-swift (4.6), which makes logits of labelled positions alone.
        MsSwift = "ms_swift" as "ms-swift Seq2SeqTrainer",
        /// `swift.rlhf_trainers.DPOTrainer` of ms-swift (4.6) on TRL 0.29.
        MsSwiftDpo = "ms_swift_dpo" as "ms-swift DPOTrainer",
        /// `trl.SFTTrainer` (1.16).
        TrlSft = "trl_sft" as "TRL SFTTrainer",
        /// `trl.DPOTrainer` (1.16).
        TrlDpo = "trl_dpo" as "TRL DPOTrainer",
        /// `trl.GRPOTrainer` (1.16).
        TrlGrpo = "trl_grpo" as "TRL GRPOTrainer",
    }

    /// Log-probabilities of the reference model in DPO and GRPO.
    #[derive(Default)]
    pub enum Reference {
        /// Made in every step of DPO, or for every generation of GRPO, by a second copy of the model, or by the model with
        /// its adapters switched off.
        #[default]
        EveryStep = "every_step",
        /// Made before training (DPO's `precompute_ref_log_probs=True`).
        Precomputed = "precomputed",
        /// There is no reference model (GRPO's `beta=0`, its default).
        None = "none",
    }

    /// Program that generates GRPO's completions.
    #[derive(Default)]
    pub enum Generation {
        /// `generate` of transformers, by the model that is trained.
        #[default]
        Transformers = "transformers" as "transformers generate",
        /// vLLM (`use_vllm=True`), whose own memory is not counted.
        Vllm = "vllm" as "vLLM",
    }

    /// Computation of a language model's loss from its last hidden states.
    #[derive(Default)]
    pub enum Loss {
        /// All logits, then transformers' `ForCausalLMLoss`.
        #[default]
        Full = "full",
        /// Liger's `fused_linear_cross_entropy`: logits of a few rows at a time, never all.
        FusedLinear = "fused_linear",
        /// All logits in fp32, and a copy of them without the last position: as transformers computed it up to 4.47, and as
        /// models do that bring their own code.
        Shifted = "shifted",
        /// All logits without a loss of the model's, then the `LabelSmoother` of transformers' `Trainer`.
        Smoothed = "smoothed",
        /// Dynamic fine-tuning: each token's loss by its probability, of TRL's head (`loss_type` of SFT) or of all logits
        /// (LLaMA-Factory's `use_dft_loss`).
        Dft = "dft",
    }

    /// Layout of samples of different lengths in a batch.
    #[derive(Default)]
    pub enum Packing {
        /// Each in a row of its own, padded to the longest.
        #[default]
        Padded = "padded",
        /// One after the other in a single row, separated by their position ids.
        Packed = "packed",
    }

    /// Type of frozen weights.
    #[derive(Default)]
    pub enum FrozenType {
        /// That of `precision`, as for trained ones.
        #[default]
        AsTrained = "as_trained",
        /// The type in which autocast computes: weights were loaded in it, and those that are trained cast to fp32
        /// (LLaMA-Factory's `init_adapter` without `pure_bf16`), or adapters beside weights in fp16 (ms-swift's
        /// `TunerMixin.prepare_model`).
        Autocast = "autocast",
    }

    /// How weights come to the GPU: all end there, in blocks of the allocator that differ.
    #[derive(Default)]
    pub enum Loading {
        /// As is usual with the trainer: TRL's load it from a folder, before others a script makes or moves it.
        #[default]
        Usual = "usual",
        /// `from_pretrained` loads them onto the GPU: memory for all at once, then one by one in the order of their names.
        Loaded = "loaded",
        /// One by one, in the order of modules: made there, or moved by `Trainer` from the host.
        Moved = "moved",
    }

    /// Pixel values of a batch as they come to the GPU.
    #[derive(Default)]
    pub enum PixelValues {
        /// In the type of the weights: a script or its collator has cast them.
        #[default]
        Cast = "cast",
        /// As the processor makes them: in fp32, and with a mask of the pixels that are no padding where it makes one.
        Processor = "processor",
    }

    /// Type of the adapters' weights.
    #[derive(Default)]
    pub enum AdapterType {
        /// fp32, what peft makes of half-precision adapters (`autocast_adapter_dtype=True`).
        #[default]
        Fp32 = "fp32" as "fp32",
        /// bf16 (`autocast_adapter_dtype=False` on weights in bf16).
        Bf16 = "bf16" as "bf16",
    }

    /// Type of the weights of modules that are trained in full beside adapters.
    #[derive(Default)]
    pub enum SavedType {
        /// That of the weights that peft copies.
        #[default]
        AsWeights = "as_weights",
        /// fp32, to which LLaMA-Factory casts all that is trained.
        Fp32 = "fp32" as "fp32",
    }

    /// Adapters on the fused weights of experts.
    #[derive(Default)]
    pub enum ExpertAdapters {
        /// Those that peft 0.21 makes of the targets: names that experts had in transformers 4 stand for fused weights.
        #[default]
        Targets = "targets",
        /// On all of them (`target_parameters=["gate_up_proj", "down_proj"]`), beside the targets.
        All = "all",
    }

    /// Packages beside transformers, whose kernels replace parts of a forward where they are installed.
    #[derive(Default)]
    pub enum KernelPackages {
        /// None: `pip install transformers`.
        #[default]
        None = "none",
        /// flash-linear-attention.
        Fla = "fla" as "flash-linear-attention",
        /// causal-conv1d. Simulated from the source of version 1.7: no run of it has been recorded.
        CausalConv1d = "causal_conv1d" as "causal-conv1d",
        /// flash-linear-attention and causal-conv1d.
        FlaCausalConv1d = "fla_causal_conv1d" as "flash-linear-attention + causal-conv1d",
        /// kernels, from which `from_pretrained(use_kernels=True)` takes those of the hub.
        Hub = "hub" as "kernels (use_kernels=True)",
    }

    /// Split of the model, its gradients and the optimizer's states between GPUs.
    pub enum Strategy {
        /// `DistributedDataParallel`: everything on each GPU, and buckets of the gradients' size beside it.
        Ddp = "ddp" as "DDP",
        /// `DistributedDataParallel` with `gradient_as_bucket_view=True`: gradients are views of the buckets.
        DdpView = "ddp_view" as "DDP (gradient_as_bucket_view)",
        /// `ZeroRedundancyOptimizer` under `DistributedDataParallel`: each GPU keeps the states of a part of the
        /// parameters.
        Zero1 = "zero1" as "ZeRO-1",
        /// FSDP2, `fully_shard` of every block and of the root: parameters, gradients and states are sharded, and each
        /// block is gathered while it runs and resharded after its forward (ZeRO-3).
        Fsdp = "fsdp" as "FSDP2",
        /// FSDP2 with `reshard_after_forward=False`: gathered parameters stay until backward is done with them (ZeRO-2).
        FsdpNoReshard = "fsdp_no_reshard" as "FSDP2 (reshard_after_forward=False)",
        /// FSDP1 (`FullyShardedDataParallel`, FULL_SHARD), as accelerate wraps a model: each block has one flat parameter,
        /// gathered while it runs, and the next one's ahead of backward (`BACKWARD_PRE`).
        Fsdp1 = "fsdp1" as "FSDP1",
        /// FSDP1 with SHARD_GRAD_OP: gathered parameters stay until backward is done with them.
        Fsdp1NoReshard = "fsdp1_no_reshard" as "FSDP1 (SHARD_GRAD_OP)",
        /// Tensor parallelism by the model's own plan (`DistributedConfig(tp_size=…)` of transformers): each GPU keeps
        /// some heads and some of the MLP's width of every block, and all work on one batch.
        Tensor = "tensor" as "DistributedConfig(tp_size)",
        /// Pipeline parallelism (`torch.distributed.pipelining`): each GPU has consecutive blocks, and micro-batches go
        /// from one to the next; backwards begin as soon as they can (`Schedule1F1B`).
        Pipeline = "pipeline" as "Schedule1F1B (torch.distributed.pipelining)",
        /// Pipeline parallelism with all forwards before the first backward (`ScheduleGPipe`).
        PipelineGpipe = "pipeline_gpipe" as "ScheduleGPipe (torch.distributed.pipelining)",
        /// DeepSpeed without ZeRO: gradients in buckets, weights in fp32 beside those in bf16, all on each GPU.
        Deepspeed0 = "deepspeed0" as "DeepSpeed (ZeRO stage 0)",
        /// DeepSpeed's ZeRO stage 1: each GPU keeps a part of the weights in fp32 and of the states.
        Deepspeed1 = "deepspeed1" as "DeepSpeed (ZeRO stage 1)",
        /// DeepSpeed's ZeRO stage 2: each GPU keeps its part of the gradients too.
        Deepspeed2 = "deepspeed2" as "DeepSpeed (ZeRO stage 2)",
        /// DeepSpeed's ZeRO stage 3: each GPU keeps its part of the parameters too, which are gathered to be used.
        Deepspeed3 = "deepspeed3" as "DeepSpeed (ZeRO stage 3)",
    }
}

/// Name of the package causal-conv1d.
pub const CAUSAL_CONV1D: &str = "causal-conv1d";

impl Loss {
    /// Ways to compute the same value: a search may take another of them. Label smoothing and dynamic fine-tuning are
    /// objectives of their own, which only the user changes.
    pub const fn alike(self) -> &'static [Self] {
        match self {
            Self::Full | Self::FusedLinear | Self::Shifted => &[Self::Full, Self::FusedLinear],
            Self::Smoothed => &[Self::Smoothed],
            Self::Dft => &[Self::Dft],
        }
    }
}

impl KernelPackages {
    /// Names of the packages.
    pub const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Fla => &["flash-linear-attention"],
            Self::CausalConv1d => &[CAUSAL_CONV1D],
            Self::FlaCausalConv1d => &["flash-linear-attention", CAUSAL_CONV1D],
            Self::Hub => &["kernels"],
        }
    }
}

impl Optimizer {
    /// Returns true if an update of parts of parameters sends more between GPUs than the norm of gradients: products of whole
    /// matrices do.
    pub const fn communicates(self) -> bool {
        matches!(self, Self::Muon)
    }
}

impl TrainerKind {
    /// Returns true for transformers' `Trainer` and those that are derived from it.
    pub const fn is_derived(self) -> bool {
        !matches!(self, Self::Loop)
    }

    /// Returns true for ms-swift's trainers.
    pub const fn is_swift(self) -> bool {
        matches!(self, Self::MsSwift | Self::MsSwiftDpo)
    }

    /// Returns true for trainers that put chosen and rejected samples into one batch.
    pub const fn is_dpo(self) -> bool {
        matches!(self, Self::MsSwiftDpo | Self::TrlDpo)
    }

    /// Returns true if positions without labels are left out of the logits.
    pub const fn counts_labels(self) -> bool {
        self.is_trl() || self.is_swift()
    }

    /// Returns true if accelerate wraps the model's forward and so converts its outputs to fp32 under autocast.
    pub const fn converts_outputs(self) -> bool {
        matches!(self, Self::Transformers) || self.is_swift()
    }

    /// Returns true if the trainer loads the model from a folder by itself.
    pub const fn loads_models(self) -> bool {
        self.is_trl()
    }

    /// Returns true for TRL's trainers.
    pub const fn is_trl(self) -> bool {
        matches!(self, Self::TrlSft | Self::TrlDpo | Self::TrlGrpo)
    }
}

impl Generation {
    /// Returns true if vLLM generates.
    pub const fn is_vllm(self) -> bool {
        !matches!(self, Self::Transformers)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Freeze;
    use super::*;

    /// Checks that a type is written and read by its words, among them these, which cases and links hold.
    fn follows_its_words<T: Value + std::fmt::Debug>(fixed: &[&str]) {
        let all: Vec<String> = T::every().iter().map(Value::text).collect();
        assert!(
            fixed.iter().all(|word| all.iter().any(|known| known == word)),
            "{all:?}"
        );
        for value in T::every() {
            let written = serde_json::to_value(&value).expect("a choice is JSON");
            assert_eq!(written, *value.text());
            assert_eq!(serde_json::from_value::<T>(written).ok(), Some(value));
        }
    }

    #[test]
    fn choices_are_the_words_of_cases() {
        follows_its_words::<Precision>(&["fp32", "bf16", "amp-bf16", "amp-fp16"]);
        follows_its_words::<Optimizer>(&[
            "adamw",
            "adamw_fused",
            "adamw_loop",
            "sgd",
            "sgdm",
            "adafactor",
            "adafactor_torch",
            "adamw_8bit",
            "paged_adamw_8bit",
            "paged_adamw",
            "lion",
            "lion_8bit",
            "paged_lion_8bit",
            "paged_lion",
        ]);
        follows_its_words::<Checkpointing>(&["none", "full", "vision", "language"]);
        follows_its_words::<Attention>(&["sdpa", "eager", "flash_attention_2"]);
        follows_its_words::<Freeze>(&["none", "vision", "all-but-connector", "lora", "qlora"]);
        follows_its_words::<FrozenType>(&["as_trained", "autocast"]);
        follows_its_words::<ZeroGrad>(&["to_none", "to_zero"]);
        follows_its_words::<Loss>(&["full", "fused_linear"]);
        follows_its_words::<Packing>(&["padded", "packed"]);
        follows_its_words::<AdapterType>(&["fp32", "bf16"]);
        follows_its_words::<SavedType>(&["as_weights", "fp32"]);
        follows_its_words::<ExpertAdapters>(&["targets", "all"]);
        follows_its_words::<KernelPackages>(&["none", "fla", "causal_conv1d", "fla_causal_conv1d", "hub"]);
        follows_its_words::<Strategy>(&[
            "ddp",
            "ddp_view",
            "zero1",
            "fsdp",
            "fsdp_no_reshard",
            "tensor",
            "pipeline",
            "pipeline_gpipe",
            "deepspeed0",
            "deepspeed1",
            "deepspeed2",
            "deepspeed3",
        ]);
    }
}
