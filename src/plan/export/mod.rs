//! Exports a plan as the configuration of a training tool.
//!
//! Each format is what the tool's own parser accepts; `tests/exports` reads every one with the real library. Settings
//! that a tool lacks are named in a comment, or refused if omitting them would train something else.

mod accelerate;
mod deepspeed;
mod lightning;
mod lines;
mod llama_factory;
mod ms_swift;
mod targets;
mod transformers;
mod trl;
mod yaml;

pub use self::targets::{names_in_language_model, targets_in_language_model};

use super::answer::{Choice, Plan};
use super::optimizers;
use vramscope_engine::Setup;
use vramscope_engine::dtype::DType;
use vramscope_engine::model::hub_id;
use vramscope_engine::setup::{
    Checkpointing, Export, Freeze, LigerKernels, Loss, Optimizer, Parallel, Setting, Strategy,
};

/// Model id in an export, if the hub has no checkpoint of the model.
const PLACEHOLDER: &str = "PATH-OR-HUB-ID";

/// A training tool, and the format in which it reads its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// `transformers.TrainingArguments`, as Python.
    HfPython,
    /// `transformers.TrainingArguments`, as YAML for `HfArgumentParser`.
    HfYaml,
    /// The configuration file of `accelerate launch`.
    Accelerate,
    /// DeepSpeed's JSON, with ZeRO-1 if the plan shards optimizer states.
    Deepspeed,
    /// The configuration file of `accelerate launch` for FSDP2.
    Fsdp,
    /// `Trainer` of PyTorch Lightning, as YAML for `LightningCLI`.
    Lightning,
    /// `SFTConfig` and `ModelConfig` of TRL, as YAML for `TrlParser`.
    Trl,
    /// LLaMA-Factory's YAML.
    LlamaFactory,
    /// ms-swift's YAML.
    MsSwift,
}

impl ExportFormat {
    /// All formats, in menu order.
    pub const ALL: [Self; 9] = [
        Self::HfPython,
        Self::HfYaml,
        Self::Accelerate,
        Self::Deepspeed,
        Self::Fsdp,
        Self::Lightning,
        Self::Trl,
        Self::LlamaFactory,
        Self::MsSwift,
    ];

    /// Name on the command line and in links.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HfPython => "hf-python",
            Self::HfYaml => "hf-yaml",
            Self::Accelerate => "accelerate",
            Self::Deepspeed => "deepspeed",
            Self::Fsdp => "fsdp",
            Self::Lightning => "lightning",
            Self::Trl => "trl",
            Self::LlamaFactory => "llama-factory",
            Self::MsSwift => "ms-swift",
        }
    }

    /// Writes a setup of a plan in this format.
    ///
    /// # Errors
    /// If the tool cannot train the setup; the message names the alternative.
    pub fn write(self, plan: &Plan, choice: &Choice) -> Result<String, String> {
        let of = Exported { plan, choice };
        if let Some(why) = of.parallel().and_then(|parallel| self.refusal(parallel.strategy)) {
            return Err(why);
        }
        if let Some(why) = self.refused_loss(of.setup().loss) {
            return Err(why);
        }
        match self {
            Self::HfPython => transformers::python(&of),
            Self::HfYaml => transformers::yaml(&of),
            Self::Accelerate => accelerate::any(&of),
            Self::Deepspeed => deepspeed::json(&of),
            Self::Fsdp => accelerate::fsdp(&of),
            Self::Lightning => lightning::yaml(&of),
            Self::Trl => trl::yaml(&of),
            Self::LlamaFactory => llama_factory::yaml(&of),
            Self::MsSwift => ms_swift::yaml(&of),
        }
    }

    /// Reason why the tool does not compute a loss; `None` if it does, or leaves it to another file.
    fn refused_loss(self, loss: Loss) -> Option<String> {
        let (what, tools) = match (loss, self) {
            (Loss::Dft, Self::HfPython | Self::HfYaml | Self::Lightning | Self::MsSwift) => {
                ("the loss of dynamic fine-tuning", "trl or llama-factory")
            }
            (Loss::Smoothed, Self::Lightning | Self::MsSwift | Self::Trl) => {
                ("smoothed labels", "hf-yaml or llama-factory")
            }
            _ => return None,
        };
        Some(format!(
            "{} has no entry for {what}, of which the figures are; export {tools}, or plan with --loss full",
            self.name()
        ))
    }

    /// Reason why the tool does not support a strategy; `None` if it does.
    fn refusal(self, strategy: Strategy) -> Option<String> {
        let tool = self.name();
        match (strategy, self) {
            // Only transformers supports tensor parallelism.
            (Strategy::Tensor, Self::HfPython | Self::HfYaml) => None,
            (Strategy::Tensor, _) => Some(format!(
                "{tool} has no entry for transformers' own tensor parallelism; export hf-python, or plan with --keep \
                 strategy"
            )),
            (Strategy::Pipeline | Strategy::PipelineGpipe, _) => Some(format!(
                "{tool} has no entry for pipeline parallelism; write the step with torch.distributed.pipelining \
                 (PipelineStage, Schedule1F1B), as torchtitan does, or plan with --keep strategy"
            )),
            (Strategy::Zero1, Self::Deepspeed) => None,
            (Strategy::Zero1, _) => Some(format!(
                "{tool} has no entry for ZeRO-1 (ZeroRedundancyOptimizer) and would run DDP, which takes more memory; \
                 export deepspeed, or plan with --keep strategy"
            )),
            (
                Strategy::Fsdp | Strategy::FsdpNoReshard,
                Self::HfPython | Self::HfYaml | Self::Trl | Self::LlamaFactory | Self::MsSwift,
            ) => Some(format!(
                "{tool} takes FSDP2 from accelerate; export fsdp beside it, or plan with --keep strategy"
            )),
            (Strategy::Ddp | Strategy::DdpView | Strategy::Fsdp | Strategy::FsdpNoReshard, _) => None,
            (Strategy::Fsdp1 | Strategy::Fsdp1NoReshard, Self::Accelerate | Self::Fsdp) => None,
            (Strategy::Fsdp1 | Strategy::Fsdp1NoReshard, _) => Some(format!(
                "{tool} takes FSDP1 from accelerate; export fsdp beside it, or plan with --keep strategy"
            )),
            (
                Strategy::Deepspeed0 | Strategy::Deepspeed1 | Strategy::Deepspeed2 | Strategy::Deepspeed3,
                Self::Deepspeed,
            ) => None,
            (Strategy::Deepspeed0 | Strategy::Deepspeed1 | Strategy::Deepspeed2 | Strategy::Deepspeed3, _) => {
                Some(format!("{tool} takes DeepSpeed's file; export deepspeed"))
            }
        }
    }
}

/// A plan, and the one of its setups that is exported.
struct Exported<'a> {
    plan: &'a Plan,
    choice: &'a Choice,
}

impl Exported<'_> {
    fn setup(&self) -> &Setup {
        &self.choice.setup
    }

    fn parallel(&self) -> Option<&Parallel> {
        self.choice.parallel.as_ref()
    }

    fn is_sharded(&self) -> bool {
        self.parallel()
            .is_some_and(|parallel| parallel.strategy.shards_parameters() || parallel.strategy.is_fsdp1())
    }

    fn is_tensor_parallel(&self) -> bool {
        self.parallel()
            .is_some_and(|parallel| parallel.strategy == Strategy::Tensor)
    }

    /// transformers' name for the optimizer.
    fn optim(&self) -> Result<&'static str, String> {
        use Optimizer as O;
        match self.setup().optim {
            // With tensor parallelism `Trainer` updates one parameter after the other.
            O::AdamwLoop if self.is_tensor_parallel() => Ok("adamw_torch"),
            O::Sgd | O::Sgdm if self.is_tensor_parallel() => Err(no_optimizer(
                "SGD over parameters of which some are whole and some are sharded",
                "adamw_fused",
            )),
            optim => optimizers::of_transformers(optim).map_err(|(what, instead)| no_optimizer(what, instead.name())),
        }
    }

    /// transformers' name for the attention implementation, which is also the setting's own.
    fn attn(&self) -> &'static str {
        self.setup().attn.name()
    }

    /// Dtype in which weights are loaded.
    fn weights(&self) -> &'static str {
        match self.setup().precision.weights() {
            DType::Bf16 => "bfloat16",
            DType::F16 => "float16",
            _ => "float32",
        }
    }

    /// Flags `bf16` and `fp16` of a trainer: true for the dtype to which autocast casts.
    fn autocast(&self) -> [bool; 2] {
        let precision = self.setup().precision;
        [DType::Bf16, DType::F16].map(|low| precision.autocast() == Some(low))
    }

    fn has_adapters(&self) -> bool {
        matches!(self.setup().freeze, Freeze::Lora | Freeze::Qlora)
    }

    /// Modules that train in full beside the adapters (`modules_to_save`).
    fn saved_modules(&self) -> Option<&[String]> {
        let setup = self.setup();
        setup.trains_saved_modules().then(|| setup.saved_modules.names())
    }

    /// The model's ID on the hub, or a placeholder that the reader replaces.
    fn model_id(&self) -> &str {
        self.known_id().unwrap_or(PLACEHOLDER)
    }

    /// The model's ID on the hub, or its folder, if its name is one; both have a slash, and no `model_type` has.
    fn known_id(&self) -> Option<&str> {
        let name = self.plan.model.as_str();
        hub_id(name).or_else(|| (name.contains('/') && !name.contains('@')).then_some(name))
    }

    /// Python lines for settings of the loaded model that the tool's file lacks.
    fn preparation(&self) -> Vec<String> {
        lines::preparation(self.setup())
    }

    /// NEFTune's setting of transformers' `TrainingArguments`; no memory depends on how large the noise is.
    fn noise(&self) -> Option<(&'static str, serde_json::Value)> {
        self.setup().neftune.then(|| ("neftune_noise_alpha", 5.into()))
    }

    /// Norm to which gradients are clipped; 0 without clipping.
    fn max_grad_norm(&self) -> f64 {
        f64::from(u8::from(self.setup().clip))
    }

    /// Returns true if any block is checkpointed.
    fn checkpoints(&self) -> bool {
        self.setup().ckpt != Checkpointing::None
    }

    /// Comments with facts about the plan that no entry of the tool's file states. `with_loading` adds how to load the
    /// model, for a file that does not say it.
    fn notes(&self, with_loading: bool) -> Vec<String> {
        let setup = self.setup();
        let mut notes = vec![format!(
            "{} on {}: micro-batches of {}, {} per step{}; made by vramscope plan",
            self.plan.model,
            self.plan.card.as_deref().unwrap_or("an allocator's limit"),
            setup.batch,
            setup.accum,
            if self.plan.gpus > 1 {
                format!(", {} GPUs", self.plan.gpus)
            } else {
                String::new()
            },
        )];
        if self.is_tensor_parallel() {
            notes.push(format!(
                "start the script with torchrun --nproc-per-node {gpus}, and load the model with \
                 distributed_config=DistributedConfig(tp_size={gpus}) of transformers.distributed: all GPUs train one \
                 micro-batch together",
                gpus = self.plan.gpus
            ));
        }
        if self.known_id().is_none() {
            notes.push(format!("the hub has no checkpoint of exactly this configuration: replace {PLACEHOLDER} with the folder or the hub id of yours"));
        }
        if with_loading {
            notes.push(format!(
                "load the weights in {}, attn_implementation {}",
                self.weights(),
                self.attn()
            ));
            match setup.freeze {
                Freeze::Parts(_) => {}
                Freeze::Lora => notes.push(format!("LoRA of rank {}, {}", setup.rank, self.adapted_modules())),
                Freeze::Qlora => notes.push(format!(
                    "weights in 4 bits (NF4, double quantisation), LoRA of rank {}, {}",
                    setup.rank,
                    self.adapted_modules()
                )),
            }
        }
        let missing: Vec<String> = self.settings_without_entry().collect();
        if !missing.is_empty() {
            notes.push(format!(
                "the file has no entry for {}: set it in the training script",
                missing.join(", ")
            ));
        }
        notes
    }

    /// peft's arguments for the modules that get adapters, for a note.
    fn adapted_modules(&self) -> String {
        let targets = &self.setup().lora_targets;
        let excluded = targets::exclude_modules(targets).map(|pattern| format!(", exclude_modules \"{pattern}\""));
        let modules = targets::target_modules(targets);
        format!("target_modules {modules}{}", excluded.unwrap_or_default())
    }

    /// Settings that no tool has a name for, if they differ from their defaults, as `key value`.
    fn settings_without_entry(&self) -> impl Iterator<Item = String> {
        let (setup, default) = (self.setup(), Setup::default());
        Setting::by_group()
            .filter(|setting| setting.declaration().export == Export::Noted)
            .filter(|setting| setting.declaration().depends.met_by(setup))
            .map(move |setting| (setting, setting.of(setup), setting.of(&default)))
            .filter(|(_, value, default)| value != default)
            .map(|(setting, value, _)| format!("{} {}", setting.key(), value.text()))
    }

    /// The share by which transformers' Trainer, and what is made of it, smooths labels.
    fn smoothing(&self) -> Option<(&'static str, serde_json::Value)> {
        // Paper and transformers' documentation take a tenth; no memory depends on it.
        (self.setup().loss == Loss::Smoothed).then(|| ("label_smoothing_factor", 0.1.into()))
    }

    /// Returns true if the plan uses Liger's loss or other kernels of it.
    fn has_liger(&self) -> bool {
        self.setup().loss == Loss::FusedLinear || !self.setup().liger.is_empty()
    }

    /// A note if the plan uses Liger and not all of it, for a tool whose `key` switches on all of its kernels.
    fn liger_notes(&self, key: &str) -> Vec<String> {
        let LigerKernels { rope, norms, mlps, .. } = self.setup().liger;
        let is_used = self.has_liger() && !(rope && norms && mlps);
        let note =
            || format!("{key} also replaces norms, rotary embeddings and MLPs, which the plan's figures leave out");
        is_used.then(note).into_iter().collect()
    }

    /// The notes, and after them the Python lines that prepare the loaded model.
    fn notes_with_lines(&self, with_loading: bool) -> Vec<String> {
        let mut notes = self.notes(with_loading);
        let lines = self.preparation();
        if !lines.is_empty() {
            notes.push("in the training script, once the model is loaded and its adapters are in place:".to_owned());
            notes.extend(lines.iter().map(|line| format!("  {line}")));
        }
        notes
    }
}

/// Message for an optimizer that the tool lacks.
fn no_optimizer(what: &str, instead: &str) -> String {
    format!("the tool has no name for {what}; plan again with --optim {instead}")
}

/// accelerate's name for a parallel strategy.
const fn distributed_type(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Ddp | Strategy::DdpView | Strategy::Zero1 => "MULTI_GPU",
        Strategy::Tensor | Strategy::Pipeline | Strategy::PipelineGpipe => "MULTI_GPU",
        Strategy::Fsdp | Strategy::FsdpNoReshard | Strategy::Fsdp1 | Strategy::Fsdp1NoReshard => "FSDP",
        Strategy::Deepspeed0 | Strategy::Deepspeed1 | Strategy::Deepspeed2 | Strategy::Deepspeed3 => "DEEPSPEED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_without_an_entry_for_a_parallel_strategy_refuse_it() {
        let supporters = |strategy| {
            let supports = |format: &ExportFormat| format.refusal(strategy).is_none();
            ExportFormat::ALL
                .into_iter()
                .filter(supports)
                .map(ExportFormat::name)
                .collect::<Vec<_>>()
        };
        assert_eq!(supporters(Strategy::Ddp).len(), ExportFormat::ALL.len());
        assert_eq!(supporters(Strategy::Zero1), ["deepspeed"]);
        assert_eq!(
            supporters(Strategy::Fsdp),
            ["accelerate", "deepspeed", "fsdp", "lightning"]
        );
        assert_eq!(supporters(Strategy::Tensor), ["hf-python", "hf-yaml"]);
        assert_eq!(supporters(Strategy::Pipeline), [""; 0]);
        let why = ExportFormat::Accelerate.refusal(Strategy::Zero1).unwrap();
        assert!(why.contains("accelerate") && why.contains("export deepspeed"), "{why}");
    }
}
