//! Meaning of each tool's keys for memory, from the tables in `keys/`.

use std::collections::BTreeMap;

use crate::tool::Tool;

/// Meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The setup takes it, under this name of [`crate::draft`]; with the tool's default, if it has one.
    Simulated(&'static str, &'static str),
    /// It changes nothing in the memory of a step.
    NoEffect(NoEffect),
    /// It changes memory and is not simulated, unless it is off, or has the value named: the tool's default, where that is
    /// no value that switches off.
    NotSimulated(NotSimulated, &'static str),
}

macro_rules! reasons {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal, $text:literal;)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $text] $variant,)+
        }

        impl $name {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Word of the tables.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The reason in English.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

reasons! {
    /// Why a key has no effect on the memory of a training step.
    NoEffect {
        Numbers = "numbers", "changes numbers, not sizes";
        Schedule = "schedule", "decides how long training takes and how the learning rate goes";
        Data = "data", "chooses or prepares data; sizes come from the lengths that you give";
        Host = "host", "takes memory of the host, not of the GPU";
        Evaluation = "evaluation", "applies to evaluation, not to a training step";
        Saving = "saving", "applies when a checkpoint is written or read";
        Hub = "hub", "says where files come from or go to";
        Logging = "logging", "applies to logs";
        Distributed = "distributed", "says how processes find each other";
        Stage = "stage", "chooses what the tool does";
        Files = "files", "names another file, which is read if it is given too";
        Derived = "derived", "follows from other keys";
        Peak = "peak", "gives back cached memory between steps; the peak within a step stays";
        Unset = "unset", "is switched off";
        Part = "part", "is an option of another key, which says whether it counts";
        Script = "script", "is an option of the script, whose own lines say what it does";
        Name = "name", "is not known here, and has the name of what changes no memory";
    }
}

reasons! {
    /// Why a key that changes memory is not simulated.
    NotSimulated {
        Lengths = "lengths", "changes the lengths of batches; give the lengths that result with --lengths and --packing";
        Labels = "labels", "changes how many tokens the loss counts; give them with --completion";
        Sharding = "sharding", "shards the model between GPUs in a way that is not simulated";
        Zero = "zero", "is a part of DeepSpeed's ZeRO that is not simulated";
        Offload = "offload", "moves tensors to the host during the step";
        Compile = "compile", "torch.compile fuses operations, and its memory is not known";
        Kernels = "kernels", "replaces the model's operations by others";
        Loss = "loss", "changes the computation of the loss";
        Optimizer = "optimizer", "uses an optimizer that is not simulated";
        Adapters = "adapters", "trains other parameters than those that are simulated";
        Quantization = "quantization", "quantizes the weights in a way that is not simulated";
        Checkpointing = "checkpointing", "checkpoints activations in a way that is not simulated";
        Precision = "precision", "mixes types in a way that is not simulated";
        Device = "device", "runs elsewhere than on a CUDA GPU";
        Model = "model", "changes the model's own configuration or parameters";
        Generation = "generation", "changes how completions are generated in a way that is not simulated";
        Beside = "beside", "puts another model on the GPU, which is not simulated";
        Profiling = "profiling", "profiles the step, which takes memory of its own";
    }
}

/// Text of a table; empty if there is none of this name.
const TABLES: &[(&str, &str)] = &[
    ("launchers", include_str!("keys/launchers.tsv")),
    ("transformers", include_str!("keys/transformers.tsv")),
    ("trl", include_str!("keys/trl.tsv")),
    ("trl_sft", include_str!("keys/trl_sft.tsv")),
    ("trl_dpo", include_str!("keys/trl_dpo.tsv")),
    ("trl_grpo", include_str!("keys/trl_grpo.tsv")),
    ("trl_samples", include_str!("keys/trl_samples.tsv")),
    ("llama_factory", include_str!("keys/llama_factory.tsv")),
    ("ms_swift", include_str!("keys/ms_swift.tsv")),
    ("ms_swift2", include_str!("keys/ms_swift2.tsv")),
    ("ms_swift_rlhf", include_str!("keys/ms_swift_rlhf.tsv")),
    ("axolotl", include_str!("keys/axolotl.tsv")),
    ("deepspeed", include_str!("keys/deepspeed.tsv")),
    ("accelerate", include_str!("keys/accelerate.tsv")),
    ("qwen", include_str!("keys/qwen.tsv")),
    ("qwen_vl", include_str!("keys/qwen_vl.tsv")),
    ("internvl", include_str!("keys/internvl.tsv")),
    ("minicpm_v", include_str!("keys/minicpm_v.tsv")),
    ("peft_sft", include_str!("keys/peft_sft.tsv")),
    ("llava", include_str!("keys/llava.tsv")),
    ("qwen_vl_series", include_str!("keys/qwen_vl_series.tsv")),
    ("showui", include_str!("keys/showui.tsv")),
    ("glm4", include_str!("keys/glm4.tsv")),
    ("run_clm", include_str!("keys/run_clm.tsv")),
];

/// Tables of what a script says itself, and no class of a tool declares.
const SCRIPT_TABLES: &[(&str, &str)] = &[
    ("loop", include_str!("keys/loop.tsv")),
    ("script", include_str!("keys/script.tsv")),
];

/// Rows of a table: key, what it is, and a value; or `include`, and the table that is taken in.
fn rows(name: &str) -> impl Iterator<Item = [&'static str; 3]> {
    let text = TABLES
        .iter()
        .chain(SCRIPT_TABLES)
        .find(|(own, _)| *own == name)
        .map_or("", |(_, text)| *text);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut cells = line.split('\t');
        Some([cells.next()?, cells.next()?, cells.next().unwrap_or_default()])
    })
}

/// Keys of a tool, those that it takes over from another included.
pub(crate) fn keys(tool: Tool) -> BTreeMap<&'static str, Meaning> {
    keys_of(tool.word())
}

/// Keys of lines of scripts and notebooks, whatever trains.
pub(crate) fn script_keys() -> BTreeMap<&'static str, Meaning> {
    keys_of("script")
}

/// Returns true for variables and options of what starts processes.
pub(crate) fn is_of_launcher(key: &str) -> bool {
    find(&keys_of("launchers"), key).is_some()
}

fn keys_of(name: &str) -> BTreeMap<&'static str, Meaning> {
    let mut out = BTreeMap::new();
    for [key, what, value] in rows(name) {
        match meaning(what, value) {
            Some(meaning) => _ = out.insert(key, meaning),
            None => out.extend(keys_of(what)),
        }
    }
    out
}

/// Finds the meaning of a key. That of a whole object holds for all that is in it, unless the object itself is simulated.
pub(crate) fn find(known: &BTreeMap<&'static str, Meaning>, key: &str) -> Option<Meaning> {
    if let Some(meaning) = known.get(key) {
        return Some(*meaning);
    }
    let holders = key.match_indices('.').rev().map(|(at, _)| &key[..at]);
    let found = holders.filter_map(|holder| known.get(holder)).next();
    found
        .copied()
        .filter(|meaning| !matches!(meaning, Meaning::Simulated(..)))
}

/// Parts of names of what may change memory.
const MATTERS: [&str; 96] = [
    "model",
    "llm",
    "vit",
    "tower",
    "encoder",
    "backbone",
    "projector",
    "merger",
    "connector",
    "adapter",
    "adapters",
    "lora",
    "qlora",
    "dora",
    "peft",
    "pack",
    "packing",
    "packed",
    "batch",
    "batchsize",
    "bs",
    "length",
    "len",
    "seq",
    "sequence",
    "token",
    "tokens",
    "pixels",
    "pixel",
    "resolution",
    "resize",
    "size",
    "crop",
    "tile",
    "tiles",
    "patch",
    "patches",
    "image",
    "images",
    "video",
    "videos",
    "frame",
    "frames",
    "fps",
    "freeze",
    "frozen",
    "unfreeze",
    "tune",
    "tunable",
    "trainable",
    "bits",
    "bit",
    "4bit",
    "8bit",
    "quant",
    "quantization",
    "quantize",
    "dtype",
    "precision",
    "fp16",
    "bf16",
    "fp32",
    "amp",
    "half",
    "checkpoint",
    "checkpointing",
    "recompute",
    "attn",
    "attention",
    "flash",
    "sdpa",
    "liger",
    "kernel",
    "kernels",
    "fused",
    "compile",
    "deepspeed",
    "zero",
    "ds",
    "fsdp",
    "offload",
    "parallel",
    "tp",
    "pp",
    "sp",
    "cp",
    "shard",
    "optimizer",
    "optim",
    "ema",
    "head",
    "heads",
    "layer",
    "layers",
    "depth",
    "vocab",
];

/// More of them: other models, and other devices.
const MATTERS_TOO: [&str; 34] = [
    "embedding",
    "embed",
    "ref",
    "reference",
    "reward",
    "critic",
    "teacher",
    "vllm",
    "sglang",
    "rollout",
    "generations",
    "loss",
    "mlp",
    "moe",
    "experts",
    "expert",
    "module",
    "modules",
    "target",
    "targets",
    "rank",
    "gradient",
    "grad",
    "accum",
    "accumulation",
    "tpu",
    "xla",
    "pjrt",
    "device",
    "devices",
    "gpus",
    "gpu",
    "nodes",
    "processes",
];

/// Parts of names of what changes none.
const HARMLESS: [&str; 85] = [
    "path",
    "paths",
    "dir",
    "directory",
    "file",
    "files",
    "folder",
    "root",
    "data",
    "dataset",
    "datasets",
    "name",
    "wandb",
    "log",
    "logs",
    "logging",
    "logger",
    "report",
    "tensorboard",
    "mlflow",
    "swanlab",
    "comet",
    "seed",
    "worker",
    "workers",
    "prefetch",
    "cache",
    "save",
    "saving",
    "output",
    "out",
    "run",
    "project",
    "experiment",
    "exp",
    "tracker",
    "hub",
    "key",
    "lr",
    "learning",
    "rate",
    "warmup",
    "scheduler",
    "schedule",
    "decay",
    "beta",
    "beta1",
    "beta2",
    "betas",
    "eps",
    "epsilon",
    "momentum",
    "epoch",
    "epochs",
    "step",
    "steps",
    "iters",
    "iterations",
    "timeout",
    "port",
    "addr",
    "address",
    "host",
    "ip",
    "debug",
    "verbose",
    "print",
    "version",
    "conv",
    "template",
    "prompt",
    "system",
    "format",
    "column",
    "columns",
    "field",
    "shuffle",
    "shuffled",
    "resume",
    "overwrite",
    "push",
    "tags",
    "comment",
    "threads",
    "launcher",
];

/// Ends of names that change no memory, whatever stands before them.
const HARMLESS_ENDS: [&str; 12] = [
    "lr",
    "_lr_ratio",
    "learning_rate",
    "weight_decay",
    "lora_alpha",
    "seed",
    "port",
    "image_folder",
    "video_folder",
    "image_dir",
    "video_dir",
    "image_root",
];

/// Returns true if a key that no table knows may change memory, as far as its name tells. What stands for evaluation, data,
/// logs, schedules and so on does not; of a name that tells nothing nobody knows.
pub(crate) fn may_matter(key: &str) -> bool {
    let is_variable = !key.is_empty() && !key.contains(|c: char| c.is_ascii_lowercase());
    let name = key.to_ascii_lowercase().replace(['-', '.'], "_");
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    let has = |parts: &[&str]| words.iter().any(|word| parts.contains(word));
    if name.starts_with("slurm_")
        || has(&[
            "eval",
            "evaluation",
            "val",
            "valid",
            "validation",
            "test",
            "infer",
            "inference",
            "predict",
        ])
        || HARMLESS_ENDS.iter().any(|end| name.ends_with(end))
    {
        return false;
    }
    if has(&MATTERS) || has(&MATTERS_TOO) {
        return true;
    }
    // Most variables of the environment are of the system and of libraries that compute nothing.
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    !(has(&HARMLESS) || is_variable && is_plain)
}

fn meaning(what: &'static str, value: &'static str) -> Option<Meaning> {
    let (kind, word) = what.split_at_checked(1)?;
    match kind {
        "=" => Some(Meaning::Simulated(word, value)),
        "-" => NoEffect::ALL
            .iter()
            .find(|reason| reason.word() == word)
            .map(|reason| Meaning::NoEffect(*reason)),
        "!" => {
            let found = NotSimulated::ALL.iter().find(|reason| reason.word() == word);
            found.map(|reason| Meaning::NotSimulated(*reason, value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
