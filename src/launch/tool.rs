//! Tools that start runs, and how their files are told apart.

use crate::author::program_of;
use crate::entry::Entry;

/// A tool whose files are read, at the version named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// transformers' `Trainer`.
    Transformers,
    /// A training loop of a script's own.
    Loop,
    /// TRL's `SFTTrainer`.
    TrlSft,
    /// TRL's `DPOTrainer`.
    TrlDpo,
    /// TRL's `GRPOTrainer`.
    TrlGrpo,
    /// LLaMA-Factory.
    LlamaFactory,
    /// ms-swift since 3.
    MsSwift,
    /// ms-swift before 3, whose options have other names and other defaults.
    MsSwift2,
    /// axolotl.
    Axolotl,
    /// DeepSpeed's JSON.
    DeepSpeed,
    /// accelerate's config file.
    Accelerate,
    /// Qwen's finetune.py.
    Qwen,
    /// Qwen-VL's qwenvl/train.
    QwenVl,
    /// InternVL's internvl_chat_finetune.py.
    InternVl,
    /// MiniCPM-V's finetune.py.
    MiniCpmV,
    /// peft's examples/sft.
    PeftSft,
    /// LLaVA's train.py.
    Llava,
    /// Qwen-VL-Series-Finetune.
    QwenVlSeries,
    /// ShowUI's train.py.
    ShowUi,
    /// GLM-4's and GLM-4V's finetune.py.
    Glm4,
    /// transformers' run_clm.py.
    RunClm,
}

/// Keys that only the files of TRL's SFT have.
const SFT_MARKS: &[&str] = &[
    "use_peft",
    "lora_r",
    "max_length",
    "load_in_4bit",
    "assistant_only_loss",
    "completion_only_loss",
];

/// Keys that only the files of TRL's DPO have.
const DPO_MARKS: &[&str] = &[
    "use_peft",
    "lora_r",
    "max_length",
    "load_in_4bit",
    "precompute_ref_log_probs",
    "disable_dropout",
    "sync_ref_model",
    "f_divergence_type",
    "loss_weights",
    "beta",
];

/// Keys that only the files of TRL's GRPO have.
const GRPO_MARKS: &[&str] = &[
    "use_peft",
    "lora_r",
    "load_in_4bit",
    "max_completion_length",
    "num_generations",
    "steps_per_generation",
    "generation_batch_size",
    "reward_funcs",
    "scale_rewards",
    "use_vllm",
];

impl Tool {
    /// All tools.
    pub const ALL: &[Self] = &[
        Self::Transformers,
        Self::Loop,
        Self::TrlSft,
        Self::TrlDpo,
        Self::TrlGrpo,
        Self::LlamaFactory,
        Self::MsSwift,
        Self::MsSwift2,
        Self::Axolotl,
        Self::DeepSpeed,
        Self::Accelerate,
        Self::Qwen,
        Self::QwenVl,
        Self::InternVl,
        Self::MiniCpmV,
        Self::PeftSft,
        Self::Llava,
        Self::QwenVlSeries,
        Self::ShowUi,
        Self::Glm4,
        Self::RunClm,
    ];

    /// Name of its table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Transformers => "transformers",
            Self::Loop => "loop",
            Self::TrlSft => "trl_sft",
            Self::TrlDpo => "trl_dpo",
            Self::TrlGrpo => "trl_grpo",
            Self::LlamaFactory => "llama_factory",
            Self::MsSwift => "ms_swift",
            Self::MsSwift2 => "ms_swift2",
            Self::Axolotl => "axolotl",
            Self::DeepSpeed => "deepspeed",
            Self::Accelerate => "accelerate",
            Self::Qwen => "qwen",
            Self::QwenVl => "qwen_vl",
            Self::InternVl => "internvl",
            Self::MiniCpmV => "minicpm_v",
            Self::PeftSft => "peft_sft",
            Self::Llava => "llava",
            Self::QwenVlSeries => "qwen_vl_series",
            Self::ShowUi => "showui",
            Self::Glm4 => "glm4",
            Self::RunClm => "run_clm",
        }
    }

    /// Name and version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transformers => "transformers 5.17 (Trainer)",
            Self::Loop => "PyTorch (a loop)",
            Self::TrlSft => "TRL 1.16 (SFT)",
            Self::TrlDpo => "TRL 1.16 (DPO)",
            Self::TrlGrpo => "TRL 1.16 (GRPO)",
            Self::LlamaFactory => "LLaMA-Factory 0.9.5",
            Self::MsSwift => "ms-swift 4.6",
            Self::MsSwift2 => "ms-swift 2",
            Self::Axolotl => "axolotl 0.19",
            Self::DeepSpeed => "DeepSpeed 0.19",
            Self::Accelerate => "accelerate 1.15",
            Self::Qwen => "Qwen's finetune.py",
            Self::QwenVl => "Qwen-VL's qwenvl/train",
            Self::InternVl => "InternVL's internvl_chat_finetune.py",
            Self::MiniCpmV => "MiniCPM-V's finetune.py",
            Self::PeftSft => "peft's examples/sft",
            Self::Llava => "LLaVA's train.py",
            Self::QwenVlSeries => "Qwen-VL-Series-Finetune",
            Self::ShowUi => "ShowUI's train.py",
            Self::Glm4 => "GLM-4's finetune.py",
            Self::RunClm => "transformers' run_clm.py",
        }
    }

    /// Keys that only this tool's files have.
    const fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Transformers => &["per_device_train_batch_size", "output_dir"],
            // Nothing but its own code tells it.
            Self::Loop => &[],
            Self::TrlSft => SFT_MARKS,
            Self::TrlDpo => DPO_MARKS,
            Self::TrlGrpo => GRPO_MARKS,
            Self::LlamaFactory => &["stage", "finetuning_type", "cutoff_len", "template", "lora_target"],
            Self::MsSwift => &[
                "tuner_type",
                "train_type",
                "freeze_vit",
                "freeze_aligner",
                "attn_impl",
                "split_dataset_ratio",
            ],
            Self::MsSwift2 => &[
                "sft_type",
                "model_id_or_path",
                "quantization_bit",
                "lora_target_modules",
                "check_dataset_strategy",
                "dataset_test_ratio",
            ],
            Self::Axolotl => &[
                "base_model",
                "micro_batch_size",
                "sequence_len",
                "adapter",
                "dataset_prepared_path",
            ],
            Self::DeepSpeed => &[
                "zero_optimization",
                "train_micro_batch_size_per_gpu",
                "train_batch_size",
            ],
            Self::Accelerate => &[
                "distributed_type",
                "num_processes",
                "compute_environment",
                "main_training_function",
            ],
            Self::Glm4 => &["training_args", "peft_config", "data_config", "max_input_length"],
            // Their commands are told apart in `author`.
            Self::Qwen
            | Self::QwenVl
            | Self::InternVl
            | Self::MiniCpmV
            | Self::PeftSft
            | Self::Llava
            | Self::QwenVlSeries
            | Self::ShowUi
            | Self::RunClm => &[],
        }
    }

    /// Finds the tool of a file by its keys; `None` if none of them is a tool's own.
    pub(crate) fn of_entries(entries: &[Entry]) -> Option<Self> {
        Self::among(Self::ALL, entries)
    }

    /// The one of these whose own keys most entries have.
    fn among(tools: &[Self], entries: &[Entry]) -> Option<Self> {
        let own = |entry: &Entry, mark: &str| entry.key == mark || entry.key.split('.').next() == Some(mark);
        let score = |tool: Self| {
            tool.marks()
                .iter()
                .filter(|mark| entries.iter().any(|e| own(e, mark)))
                .count()
        };
        // Other tools' files hold transformers' keys too.
        let others = tools.iter().copied().rev().filter(|tool| *tool != Self::Transformers);
        let found = others.max_by_key(|tool| score(*tool)).filter(|tool| score(*tool) > 0);
        found.or((score(Self::Transformers) > 0).then_some(Self::Transformers))
    }

    /// The same for a file of settings; TRL's name their data set beside transformers' keys. One that names its model as
    /// both do, and no key that tells more, is of either.
    pub(crate) fn of_file(entries: &[Entry]) -> Option<Self> {
        let has = |key: &str| entries.iter().any(|entry| entry.key == key);
        // No other tool has these, whose files share others with TRL's.
        if has("model") && (has("train_type") || has("tuner_type")) {
            return Some(Self::MsSwift);
        }
        match Self::of_entries(entries) {
            None if !has("model_name_or_path") => None,
            None | Some(Self::Transformers) if has("dataset_name") => Some(Self::TrlSft),
            None => Some(Self::Transformers),
            found => found,
        }
    }

    /// Finds the tool of a command by its program, or else by its options.
    pub(crate) fn of_command(program: &[String], entries: &[Entry]) -> Option<Self> {
        let words: Vec<&str> = program.iter().map(String::as_str).collect();
        let starts_script = words.iter().any(|word| word.ends_with(".py") || *word == "-m");
        if let Some(tool) = program_of(&words, entries).filter(|_| starts_script) {
            return Some(tool);
        }
        match words.as_slice() {
            ["swift", ..] => Some(Self::swift(entries)),
            ["llamafactory-cli", ..] => Some(Self::LlamaFactory),
            ["axolotl", ..] => Some(Self::Axolotl),
            ["trl", "sft", ..] => Some(Self::TrlSft),
            ["trl", "dpo", ..] => Some(Self::TrlDpo),
            ["trl", "grpo", ..] => Some(Self::TrlGrpo),
            ["trl", "kto" | "reward", ..] => Some(Self::TrlDpo),
            ["trl", ..] => None,
            // `accelerate launch $(which llamafactory-cli) train`.
            words if words.iter().any(|word| word.ends_with("llamafactory-cli")) => Some(Self::LlamaFactory),
            words if words.iter().any(|word| word.contains("swift/cli/")) => Some(Self::swift(entries)),
            words if words.contains(&"axolotl.cli.train") => Some(Self::Axolotl),
            // ms-swift 1's scripts: llm_sft.py and so on.
            words if is_script(words, "llm_") && Self::swift(entries) == Self::MsSwift2 => Some(Self::MsSwift2),
            // TRL's scripts: sft.py, sft_vlm.py and so on.
            words if is_script(words, "sft") => Some(Self::TrlSft),
            words if is_script(words, "dpo") => Some(Self::TrlDpo),
            words if is_script(words, "grpo") => Some(Self::TrlGrpo),
            words if loss_of_command(words).is_some() => Some(Self::TrlDpo),
            // The options of a launcher are accelerate's and DeepSpeed's, and what it starts is another program.
            _ => {
                let tools: Vec<Self> = Self::ALL.iter().copied().filter(|tool| !tool.is_addition()).collect();
                Self::among(&tools, entries).or(Some(Self::Transformers))
            }
        }
    }

    /// The tool whose trainer it is, of an author's program.
    pub(crate) const fn trainer(self) -> Self {
        match self {
            Self::PeftSft => Self::TrlSft,
            Self::Qwen
            | Self::QwenVl
            | Self::InternVl
            | Self::MiniCpmV
            | Self::Llava
            | Self::QwenVlSeries
            | Self::ShowUi
            | Self::Glm4
            | Self::RunClm => Self::Transformers,
            other => other,
        }
    }

    /// ms-swift of the version whose options a command has.
    fn swift(entries: &[Entry]) -> Self {
        let has = |names: &[&str]| entries.iter().any(|entry| names.contains(&entry.key.as_str()));
        match has(Self::MsSwift2.marks()) && !has(&["model", "train_type", "tuner_type"]) {
            true => Self::MsSwift2,
            false => Self::MsSwift,
        }
    }

    /// Returns true for ms-swift of any version.
    pub const fn is_swift(self) -> bool {
        matches!(self, Self::MsSwift | Self::MsSwift2)
    }

    /// Returns true for TRL's scripts.
    pub(crate) const fn is_trl(self) -> bool {
        matches!(self, Self::TrlSft | Self::TrlDpo | Self::TrlGrpo)
    }

    /// Returns true if its files only add to another tool's.
    pub(crate) const fn is_addition(self) -> bool {
        matches!(self, Self::DeepSpeed | Self::Accelerate)
    }
}

/// Returns true for the path of a script that TRL brings along: sft.py, sft_vlm.py and so on.
pub(crate) fn is_of_trl(script: &str) -> bool {
    let is_of = |stem: &&str| is_script(&[script], stem);
    ["sft", "dpo", "grpo"].iter().chain(&OTHER_SCRIPTS).any(is_of)
}

/// Returns true for the path of a script of TRL that loads the model by itself, on the host, and gives it to the trainer
/// (`examples/scripts` of TRL 1.16).
pub(crate) fn moves_model(script: &str) -> bool {
    const SCRIPTS: [&str; 5] = [
        "dpo_vlm.py",
        "sft_vlm.py",
        "sft_vlm_gemma3.py",
        "sft_vlm_smol_vlm.py",
        "sft_gemma3.py",
    ];
    let name = script.rsplit('/').next().unwrap_or(script);
    SCRIPTS.contains(&name)
}

/// Beginnings of the names of TRL's scripts of other losses, whose settings are those of its DPO.
const OTHER_SCRIPTS: [&str; 6] = ["kto", "orpo", "cpo", "simpo", "gkd", "reward"];

/// Other loss of a command of TRL, by its name in a tool.
pub(crate) fn loss_of_command(words: &[&str]) -> Option<&'static str> {
    let named = OTHER_SCRIPTS.into_iter();
    match words {
        ["trl", sub, ..] => named.into_iter().find(|name| name == sub),
        _ => named.into_iter().find(|name| is_script(words, name)),
    }
}

/// Returns true if one of some words is a script whose name begins with `stem`.
fn is_script(words: &[&str], stem: &str) -> bool {
    let name = |word: &str| word.rsplit('/').next().is_some_and(|name| name.starts_with(stem));
    words.iter().any(|word| word.ends_with(".py") && name(word))
}
