//! Settings as tools put them, before they become a setup: one meaning for each, whatever a tool calls it.

use serde_json::{Map, Value};
use vramscope_engine::setup::{Loss, ParameterNames};

use super::values::{
    attention, bits, checkpoints, count, deepspeed_optimizer, distributed, gpus, host, names, nodes, number, stand_in,
    targets, text, trl_option, truth, visible, weights, whole,
};
use crate::fsdp::Fsdp;
pub(crate) use crate::given::{Fault, Set, Targets, Weights};
use crate::launcher::Launcher;
use crate::loss::OtherLoss;
use crate::parameter_names::{beginning_with, unfrozen};

/// Settings that were given or are a tool's defaults; `None` where nothing is said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Draft {
    pub model: Option<String>,
    pub batch: Option<u64>,
    pub accum: Option<u64>,
    /// Samples of a step on all GPUs.
    pub total_batch: Option<u64>,
    pub seq: Option<u64>,
    pub optim: Option<String>,
    pub clip: Option<bool>,
    pub checkpoints: Option<bool>,
    pub vision_checkpoints: Option<bool>,
    pub reentrant: Option<bool>,
    pub attention: Option<&'static str>,
    /// FlexAttention, in whose place another is simulated.
    pub flex_attention: Option<bool>,
    pub bf16: Option<bool>,
    pub fp16: Option<bool>,
    /// No line says whether bf16 is used.
    pub takes_default_bf16: Option<bool>,
    /// Options that transformers has no more since 5 are among the lines.
    pub is_before_5: Option<bool>,
    pub weights: Option<Weights>,
    pub pure_bf16: Option<bool>,
    pub adapters: Option<bool>,
    pub bits: Option<u64>,
    pub double_quant: Option<bool>,
    /// Type in which 4-bit weights are multiplied.
    pub compute: Option<Weights>,
    /// peft casts what is not in 4 bits to fp32, as a script asks it to.
    pub prepared: Option<bool>,
    /// The program was written for transformers up to 4.47, whose models copy logits for the loss.
    pub old_loss: Option<bool>,
    /// The loss that a key asks for; the usual one where it says that it asks for none.
    pub asked_loss: Option<Loss>,
    /// unsloth patches the model.
    pub unsloth: Option<bool>,
    pub rank: Option<u64>,
    pub dropout: Option<f64>,
    pub dora: Option<bool>,
    /// Noise on the embeddings of tokens.
    pub neftune: Option<bool>,
    pub targets: Option<Targets>,
    pub lora_dtype: Option<Weights>,
    /// Patterns of the names of parameters that are frozen.
    pub frozen_names: Option<Vec<String>>,
    /// Patterns of the names of parameters that are trained whatever else is frozen.
    pub trained_names: Option<Vec<String>>,
    pub freeze_vision: Option<bool>,
    pub freeze_connector: Option<bool>,
    pub freeze_language: Option<bool>,
    /// The talker of a model that speaks is loaded too.
    pub talker: Option<bool>,
    /// Vision tower that a program puts before a language model.
    pub tower: Option<String>,
    pub liger: Option<bool>,
    pub liger_rope: Option<bool>,
    pub liger_norms: Option<bool>,
    pub liger_mlps: Option<bool>,
    pub use_cache: Option<bool>,
    /// The loss is computed without logits (Cut Cross-Entropy).
    pub cuts_loss: Option<bool>,
    /// Logits of positions without labels are made too.
    pub all_logits: Option<bool>,
    /// Preferences are learnt with ms-swift's DPO.
    pub is_dpo: Option<bool>,
    /// Name of the model whose weights are stored in few bits, for which one in 16 bits stands.
    pub few_bits: Option<String>,
    /// Weights are in 8 bits.
    pub in_8_bits: Option<bool>,
    /// GRPO's tokens of a prompt, at most.
    pub prompt: Option<u64>,
    /// A loss for which a larger step stands in.
    pub other_loss: Option<OtherLoss>,
    /// The cross-entropy of chosen answers is added to the loss.
    pub has_cross_entropy: Option<bool>,
    /// A reference model of another name.
    pub other_model: Option<String>,
    pub teacher: Option<String>,
    /// Negatives of each sample.
    pub negatives: Option<u64>,
    /// The teacher has settings of DeepSpeed of its own.
    pub is_teacher_apart: Option<bool>,
    /// Modules that train in full beside adapters.
    pub saved: Option<Vec<String>>,
    pub compile: Option<bool>,
    pub precomputed: Option<bool>,
    /// GRPO's weight of the divergence from the reference model.
    pub beta: Option<f64>,
    /// GRPO's tokens of a completion, at most.
    pub completion: Option<u64>,
    pub num_iterations: Option<u64>,
    pub steps_per_generation: Option<u64>,
    /// Completions of one generation of GRPO on all GPUs.
    pub generation_batch: Option<u64>,
    pub vllm: Option<bool>,
    /// vLLM runs in the training process.
    pub is_colocated: Option<bool>,
    /// Share of the card that vLLM takes.
    pub vllm_share: Option<f64>,
    /// Pixels of an image, at most; positions of an image, at most.
    pub pixels: Option<u64>,
    /// Pixels that a Qwen-VL processor leaves an image, at most.
    pub processor_pixels: Option<u64>,
    /// The processor is asked for tiles.
    pub crops: Option<bool>,
    pub image_tokens: Option<u64>,
    /// Pixels of a frame and frames of a video, at most, and frames of a second.
    pub video: [Option<f64>; 3],
    /// Processes of a machine, as a launcher is told.
    pub gpus: Option<u64>,
    /// What a launcher is told for a number that no line holds.
    pub open_gpus: Option<String>,
    /// GPUs that a process may see.
    pub visible: Option<u64>,
    pub launcher: Option<Launcher>,
    pub nodes: Option<u64>,
    /// DeepSpeed runs, as accelerate was told.
    pub is_deepspeed: Option<bool>,
    pub zero_stage: Option<u64>,
    /// DeepSpeed's keys of `zero_optimization`.
    pub zero: Map<String, Value>,
    /// What DeepSpeed keeps in the memory of the host: the optimizer, parameters.
    pub host: [Option<bool>; 2],
    pub fsdp: Fsdp,
    pub bucket: Option<f64>,
    pub is_expandable: Option<bool>,
    /// The program that pads each sample to the limit of lengths, if it is one.
    pub pads_to_limit: Option<&'static str>,
    /// The script loads the model on the host, and its trainer moves it to the GPU.
    pub is_moved: Option<bool>,
    /// Batches are of samples of about one length.
    pub groups_by_length: Option<bool>,
    /// Samples are packed into rows that are filled up to the limit of lengths.
    pub fills_rows: Option<bool>,
    /// What is trained on are texts alone, without questions.
    pub pretrains: Option<bool>,
    /// Special tokens are named, which may be none of the vocabulary's.
    pub names_tokens: Option<bool>,
}

/// Keys of `zero_optimization` that transformers makes of the model's width where they are "auto"
/// (`trainer_config_finalize`): the first in all stages, the others in the third.
pub(crate) const SIZES_OF_TRAINER: [&str; 3] = [
    "reduce_bucket_size",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
];

/// Projections of a decoder like Llama's.
pub(crate) const PROJECTIONS: [&str; 7] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
];
/// Maps of Qwen's own code.
const FUSED: [&str; 4] = ["c_attn", "c_proj", "w1", "w2"];

/// Maps of transformers' GLM that stand for maps of its authors' own code: one of which holds queries, keys and values.
fn of_glm(names: &[String]) -> Vec<String> {
    let of = |name: &str| -> &[&str] {
        match name {
            "query_key_value" => &["q_proj", "k_proj", "v_proj"],
            "dense" => &["o_proj"],
            "dense_h_to_4h" => &["gate_up_proj"],
            "dense_4h_to_h" => &["down_proj"],
            _ => &[],
        }
    };
    let own = |name: &String| match of(name) {
        [] => vec![name.clone()],
        all => all.iter().map(|name| (*name).to_owned()).collect(),
    };
    names.iter().flat_map(own).collect()
}

use Fault::{NotSimulated, Wrong};

impl Draft {
    /// Returns these settings, and those of `other` where nothing is said here.
    #[expect(clippy::too_many_lines, reason = "one line for each setting")]
    pub fn over(self, other: Self) -> Self {
        Self {
            model: self.model.or(other.model),
            batch: self.batch.or(other.batch),
            accum: self.accum.or(other.accum),
            total_batch: self.total_batch.or(other.total_batch),
            seq: self.seq.or(other.seq),
            optim: self.optim.or(other.optim),
            clip: self.clip.or(other.clip),
            checkpoints: self.checkpoints.or(other.checkpoints),
            vision_checkpoints: self.vision_checkpoints.or(other.vision_checkpoints),
            reentrant: self.reentrant.or(other.reentrant),
            attention: self.attention.or(other.attention),
            flex_attention: self.flex_attention.or(other.flex_attention),
            bf16: self.bf16.or(other.bf16),
            fp16: self.fp16.or(other.fp16),
            takes_default_bf16: self.takes_default_bf16.or(other.takes_default_bf16),
            is_before_5: self.is_before_5.or(other.is_before_5),
            weights: self.weights.or(other.weights),
            pure_bf16: self.pure_bf16.or(other.pure_bf16),
            adapters: self.adapters.or(other.adapters),
            bits: self.bits.or(other.bits),
            double_quant: self.double_quant.or(other.double_quant),
            compute: self.compute.or(other.compute),
            prepared: self.prepared.or(other.prepared),
            old_loss: self.old_loss.or(other.old_loss),
            asked_loss: self.asked_loss.or(other.asked_loss),
            unsloth: self.unsloth.or(other.unsloth),
            rank: self.rank.or(other.rank),
            dropout: self.dropout.or(other.dropout),
            dora: self.dora.or(other.dora),
            neftune: self.neftune.or(other.neftune),
            targets: self.targets.or(other.targets),
            lora_dtype: self.lora_dtype.or(other.lora_dtype),
            frozen_names: self.frozen_names.or(other.frozen_names),
            trained_names: self.trained_names.or(other.trained_names),
            freeze_vision: self.freeze_vision.or(other.freeze_vision),
            freeze_connector: self.freeze_connector.or(other.freeze_connector),
            freeze_language: self.freeze_language.or(other.freeze_language),
            talker: self.talker.or(other.talker),
            tower: self.tower.or(other.tower),
            liger: self.liger.or(other.liger),
            liger_rope: self.liger_rope.or(other.liger_rope),
            liger_norms: self.liger_norms.or(other.liger_norms),
            liger_mlps: self.liger_mlps.or(other.liger_mlps),
            use_cache: self.use_cache.or(other.use_cache),
            cuts_loss: self.cuts_loss.or(other.cuts_loss),
            all_logits: self.all_logits.or(other.all_logits),
            is_dpo: self.is_dpo.or(other.is_dpo),
            few_bits: self.few_bits.or(other.few_bits),
            in_8_bits: self.in_8_bits.or(other.in_8_bits),
            prompt: self.prompt.or(other.prompt),
            other_loss: self.other_loss.or(other.other_loss),
            has_cross_entropy: self.has_cross_entropy.or(other.has_cross_entropy),
            other_model: self.other_model.or(other.other_model),
            negatives: self.negatives.or(other.negatives),
            teacher: self.teacher.or(other.teacher),
            is_teacher_apart: self.is_teacher_apart.or(other.is_teacher_apart),
            saved: self.saved.or(other.saved),
            compile: self.compile.or(other.compile),
            precomputed: self.precomputed.or(other.precomputed),
            beta: self.beta.or(other.beta),
            completion: self.completion.or(other.completion),
            num_iterations: self.num_iterations.or(other.num_iterations),
            steps_per_generation: self.steps_per_generation.or(other.steps_per_generation),
            generation_batch: self.generation_batch.or(other.generation_batch),
            vllm: self.vllm.or(other.vllm),
            is_colocated: self.is_colocated.or(other.is_colocated),
            vllm_share: self.vllm_share.or(other.vllm_share),
            pixels: self.pixels.or(other.pixels),
            processor_pixels: self.processor_pixels.or(other.processor_pixels),
            crops: self.crops.or(other.crops),
            image_tokens: self.image_tokens.or(other.image_tokens),
            video: [0, 1, 2].map(|at| self.video[at].or(other.video[at])),
            gpus: self.gpus.or(other.gpus),
            open_gpus: self.open_gpus.or(other.open_gpus),
            visible: self.visible.or(other.visible),
            launcher: self.launcher.or(other.launcher),
            nodes: self.nodes.or(other.nodes),
            is_deepspeed: self.is_deepspeed.or(other.is_deepspeed),
            zero_stage: self.zero_stage.or(other.zero_stage),
            zero: other.zero.into_iter().chain(self.zero).collect(),
            host: [0, 1].map(|at| self.host[at].or(other.host[at])),
            fsdp: self.fsdp.over(other.fsdp),
            bucket: self.bucket.or(other.bucket),
            is_expandable: self.is_expandable.or(other.is_expandable),
            pads_to_limit: self.pads_to_limit.or(other.pads_to_limit),
            is_moved: self.is_moved.or(other.is_moved),
            groups_by_length: self.groups_by_length.or(other.groups_by_length),
            fills_rows: self.fills_rows.or(other.fills_rows),
            pretrains: self.pretrains.or(other.pretrains),
            names_tokens: self.names_tokens.or(other.names_tokens),
        }
    }

    /// Sets what a key of a table stands for. `null`, and DeepSpeed's "auto", leave the setting as it is.
    pub fn set(&mut self, knob: &str, value: &Value) -> Set {
        let takes_auto = matches!(knob, "weights" | "attention" | "bf16" | "fp16") || knob.starts_with("zero.");
        if value.is_null() && knob == "seq" {
            self.seq = None;
        }
        if value.is_null() || *value == "auto" && !takes_auto {
            return Ok(());
        }
        match knob {
            "model" => self.model = Some(text(value)?),
            // The tool's own name of a model, which counts where no path does.
            "model_type" => self.model = self.model.take().or(Some(text(value)?)),
            "batch" => self.batch = Some(count(value)?),
            "accum" => self.accum = Some(count(value)?),
            "total_batch" => self.total_batch = Some(count(value)?),
            "seq" => self.seq = Some(count(value)?),
            "rank" => self.rank = Some(count(value)?),
            "gpus" => {
                self.gpus = gpus(value)?;
                self.open_gpus = value.as_str().filter(|_| self.gpus.is_none()).map(str::to_owned);
            }
            "nodes" => self.nodes = nodes(value)?,
            "pixels" => self.pixels = Some(count(value)?),
            "processor_pixels" => self.processor_pixels = Some(count(value)?),
            "crop_to_patches" => self.crops = Some(truth(value)?),
            "image_tokens" => self.image_tokens = Some(count(value)?),
            "video_pixels" => self.video[0] = Some(number(value)?),
            "video_frames" => self.video[1] = Some(number(value)?),
            "video_fps" => self.video[2] = Some(number(value)?),
            "offload_optimizer" => self.host[0] = Some(host(value)?),
            "offload_param" => self.host[1] = Some(host(value)?),
            "zero_stage" => self.zero_stage = Some(whole(value)?),
            "bits" => self.bits = bits(value)?,
            "dropout" => self.dropout = Some(number(value)?),
            "bucket" => self.bucket = Some(number(value)?),
            "clip" => self.clip = Some(number(value)? > 0.0),
            "smoothed" => self.ask_loss(Loss::Smoothed, number(value)? > 0.0),
            "dft" => self.ask_loss(Loss::Dft, truth(value)?),
            "use_deepspeed" => self.is_deepspeed = Some(truth(value)?),
            "rlhf" => match value.as_str() {
                Some("dpo") => self.is_dpo = Some(true),
                _ => self.loss(value, NotSimulated("of `swift rlhf` DPO alone is simulated"))?,
            },
            "logits_to_keep" => self.all_logits = Some(!truth(value)?),
            "fills_rows" => self.fills_rows = Some(truth(value)?),
            "groups_by_length" => self.groups_by_length = Some(truth(value)?),
            "reentrant" => self.reentrant = Some(truth(value)?),
            "use_cache" => self.use_cache = Some(truth(value)?),
            "compile" => self.compile = Some(truth(value)?),
            "pure_bf16" => self.pure_bf16 = Some(truth(value)?),
            "liger" => self.liger = Some(truth(value)?),
            "liger_rope" => self.liger_rope = Some(truth(value)?),
            "liger_norms" => self.liger_norms = Some(truth(value)?),
            "liger_mlps" => self.liger_mlps = Some(truth(value)?),
            "vision_checkpointing" => self.vision_checkpoints = Some(truth(value)?),
            "freeze_vision" => self.freeze_vision = Some(truth(value)?),
            "freeze_connector" => self.freeze_connector = Some(truth(value)?),
            "freeze_language" => self.freeze_language = Some(truth(value)?),
            _ => return self.set_word(knob, value),
        }
        Ok(())
    }

    /// Sets what has words of its own.
    #[expect(clippy::too_many_lines, reason = "one arm for each setting")]
    fn set_word(&mut self, knob: &str, value: &Value) -> Set {
        if let Some(key) = knob.strip_prefix("zero.") {
            self.zero.insert(key.to_owned(), value.clone());
            return Ok(());
        }
        if let Some(knob) = knob.strip_prefix("fsdp.") {
            return self.fsdp.set(knob, value);
        }
        if knob.starts_with("new_tokens.") {
            self.names_tokens = Some(true);
            return Ok(());
        }
        match knob {
            "optim" => self.optim = Some(text(value)?.to_ascii_lowercase()),
            "ds_optim" => self.optim = Some(deepspeed_optimizer(value)?.to_owned()),
            "checkpointing" => self.checkpoints = Some(checkpoints(value)?),
            "no_checkpointing" => self.checkpoints = Some(!truth(value)?),
            "attention" => {
                self.flex_attention = (*value == "flex_attention").then_some(true);
                self.attention = attention(value).inspect_err(|_| self.attention = stand_in(value))?;
            }
            "flex_attention" if truth(value)? => {
                (self.flex_attention, self.attention) = (Some(true), Some("sdpa"));
                return Err(NotSimulated("sdpa, eager and flash_attention_2 are simulated"));
            }
            "flex_attention" => {}
            "flash_attention" if truth(value)? => self.attention = Some("flash_attention_2"),
            "sdp_attention" if truth(value)? => self.attention = Some("sdpa"),
            "eager_attention" if truth(value)? => self.attention = Some("eager"),
            "flash_attention" | "sdp_attention" | "eager_attention" => {}
            // axolotl's "auto" is what the card can do.
            "bf16" | "ds_bf16" => self.bf16 = Some(*value == "auto" || *value == "full" || truth(value)?),
            "fp16" | "ds_fp16" => self.fp16 = Some(*value != "auto" && truth(value)?),
            "mixed_precision" => self.mixed_precision(&text(value)?)?,
            "weights" => self.weights = Some(weights(value)?),
            "weights_float32" if truth(value)? => self.weights = Some(Weights::Fp32),
            "weights_float32" => {}
            "neftune" => self.neftune = Some(number(value)? > 0.0),
            "dora" => self.dora = Some(truth(value)?),
            "lora_dtype" => self.lora_dtype = Some(weights(value)?),
            "stage" if text(value)? != "sft" && text(value)? != "pt" => {
                self.loss(
                    value,
                    NotSimulated("only supervised fine-tuning (sft, pt) is simulated"),
                )?;
            }
            "stage" => self.pretrains = Some(text(value)? == "pt"),
            "loss" => self.loss(
                value,
                NotSimulated("only supervised fine-tuning (sft, pt) is simulated"),
            )?,
            "reward" if truth(value)? => self.other_loss = Some(OtherLoss::Reward),
            "reward" => {}
            "classes" => self.other_loss = self.other_loss.or(Some(OtherLoss::Classes)),
            "pref_loss" if matches!(text(value)?.as_str(), "orpo" | "simpo") => self.has_cross_entropy = Some(true),
            "pref_loss" => {}
            "cross_entropy" => self.has_cross_entropy = Some(number(value)? > 0.0),
            "negatives" => self.negatives = Some(whole(value)?),
            "teacher" => self.teacher = Some(text(value)?),
            "teacher_deepspeed" => self.is_teacher_apart = Some(true),
            "other_model" => self.other_model = Some(text(value)?),
            "trl_loss" if text(value)? == "dft" => self.ask_loss(Loss::Dft, true),
            "trl_loss" | "dpo_loss" | "divergence" | "disable_dropout" => trl_option(knob, value)?,
            "precomputed" => self.precomputed = Some(truth(value)?),
            "beta" => self.beta = Some(number(value)?),
            "prompt_length" => self.prompt = Some(count(value)?),
            "completion" => self.completion = Some(count(value)?),
            "num_iterations" => self.num_iterations = Some(count(value)?),
            "steps_per_generation" => self.steps_per_generation = Some(count(value)?),
            "generation_batch" => self.generation_batch = Some(count(value)?),
            "vllm" => self.vllm = Some(truth(value)?),
            "vllm_share" => self.vllm_share = Some(number(value)?),
            // It has GPUs of its own.
            "vllm_server" => self.is_colocated = Some(false),
            "vllm_mode" => self.is_colocated = Some(text(value)? == "colocate"),
            "deepspeed" => self.deepspeed(&text(value)?),
            "accelerate_config" => self.accelerate_config(&text(value)?)?,
            "distributed" => {
                let word = text(value)?;
                distributed(&word)?;
                self.is_deepspeed = Some(word == "DEEPSPEED");
                self.fsdp.is_on = Some(word == "FSDP");
            }
            "devices" => self.visible = visible(&text(value)?),
            "allocator" => {
                self.is_expandable = Some(text(value)?.replace(' ', "").contains("expandable_segments:True"))
            }
            _ => return self.set_adapters(knob, value),
        }
        Ok(())
    }

    /// Sets adapters, what they are added to, and what is frozen.
    fn set_adapters(&mut self, knob: &str, value: &Value) -> Set {
        match knob {
            "adapter" => self.adapter(&text(value)?.to_ascii_lowercase())?,
            "use_peft" => self.adapters = Some(truth(value)?),
            "load_in_8bit" => self.in_8_bits = Some(truth(value)?),
            "load_in_4bit" => self.bits = truth(value)?.then_some(4),
            "quant_method" if !matches!(text(value)?.as_str(), "bnb" | "bitsandbytes") => {
                return Err(NotSimulated("only bitsandbytes' NF4 is simulated"));
            }
            "quant_type" if text(value)? != "nf4" => return Err(NotSimulated("only NF4 is simulated")),
            "quant_method" | "quant_type" => {}
            "double_quant" => self.double_quant = Some(truth(value)?),
            "compute" => self.compute = Some(weights(value)?),
            "prepared" => self.prepared = Some(truth(value)?),
            "unsloth" => self.unsloth = Some(truth(value)?),
            "targets" => self.targets = Some(targets(value)?),
            "frozen_prefixes" => add(&mut self.frozen_names, beginning_with(&names(value)?))?,
            "trained_prefixes" => add(&mut self.trained_names, beginning_with(&names(value)?))?,
            "frozen_regex" => add(&mut self.frozen_names, vec![text(value)?])?,
            "trained_regex" => add(&mut self.trained_names, vec![text(value)?])?,
            "only_trained" => {
                add(&mut self.frozen_names, vec![".".to_owned()])?;
                add(&mut self.trained_names, unfrozen(&names(value)?))?;
            }
            "saved" => self.saved = Some(names(value)?),
            "target_linear" if truth(value)? => self.targets = Some(Targets::AllLinear),
            "target_linear" => {}
            "freeze_vision_and_connector" => {
                let is_frozen = truth(value)?;
                (self.freeze_vision, self.freeze_connector) = (Some(is_frozen), Some(is_frozen));
            }
            _ => return self.set_author(knob, value),
        }
        Ok(())
    }

    /// Sets what only programs of models' authors have.
    #[expect(clippy::too_many_lines, reason = "one arm for each setting")]
    fn set_author(&mut self, knob: &str, value: &Value) -> Set {
        match knob {
            "tune_vision" => self.freeze_vision = Some(!truth(value)?),
            "tune_connector" => self.freeze_connector = Some(!truth(value)?),
            "tune_language" => self.freeze_language = Some(!truth(value)?),
            "talker" => self.talker = Some(truth(value)?),
            "tower" => self.tower = Some(text(value)?),
            "connector_alone" if truth(value)? => self.freeze_all_but(&["mm_mlp_adapter"]),
            "connector_alone" => {}
            "tunable_parts" => self.freeze_all_but(&text(value)?.split(',').map(str::trim).collect::<Vec<_>>()),
            // A rank, or 0 for none.
            "llm_lora" => {
                let rank = whole(value)?;
                self.adapters = Some(rank > 0);
                if rank > 0 {
                    self.rank = Some(rank);
                    self.targets = Some(Targets::InLanguageModel(PROJECTIONS.map(str::to_owned).into()));
                }
            }
            "adapter_rank" => {
                let rank = whole(value)?;
                (self.adapters, self.rank) = (Some(rank > 0), (rank > 0).then_some(rank));
            }
            // All maps of a language model, by the names of the authors' own code, in which some are one map.
            "fused_targets" => match targets(value)? {
                Targets::Named(names) if FUSED.iter().all(|name| names.iter().any(|own| own.ends_with(name))) => {
                    self.targets = Some(Targets::AllLinear);
                }
                Targets::Named(_) => return Err(NotSimulated("adapters on some of the maps of the authors' own code")),
                all => self.targets = Some(all),
            },
            // All maps of the language model but those named, which are none of its projections.
            "excluded_targets" => {
                let text = text(value)?;
                if PROJECTIONS.iter().any(|name| text.contains(name)) {
                    return Err(NotSimulated("adapters on some of the projections"));
                }
                self.targets = Some(Targets::InLanguageModel(PROJECTIONS.map(str::to_owned).into()));
            }
            // Tiles of an image, and a thumbnail, of 256 positions each.
            "tiles" => self.image_tokens = Some(count(value)?.saturating_add(1).saturating_mul(256)),
            // What goes in, what comes out, and a token that ends it.
            "input_length" | "output_length" => {
                self.seq = Some(count(value)?.saturating_add(self.seq.unwrap_or(1)));
            }
            "glm_targets" => {
                self.targets = Some(match targets(value)? {
                    Targets::Named(names) => Targets::Named(of_glm(&names)),
                    all => all,
                });
            }
            "flash_or_eager" => self.attention = Some(if truth(value)? { "flash_attention_2" } else { "eager" }),
            "no_flash_attention" => self.attention = Some(if truth(value)? { "sdpa" } else { "flash_attention_2" }),
            // The type in which 4-bit weights are stored is that of the others, if it is one of fractions.
            "storage" => {
                self.weights = Some(match weights(value) {
                    Ok(weights) => weights,
                    Err(_) => Weights::Fp32,
                });
            }
            "plain_precision" => match text(value)?.as_str() {
                "bf16" => (self.weights, self.bf16) = (Some(Weights::Bf16), Some(true)),
                "fp16" => (self.weights, self.fp16) = (Some(Weights::Fp16), Some(true)),
                "fp32" => self.weights = Some(Weights::Fp32),
                _ => return Err(Wrong("fp32, bf16 or fp16")),
            },
            "zero_named" => {
                let text = text(value)?;
                let stage = text.strip_prefix("zero").and_then(|stage| stage.parse().ok());
                self.zero_stage = Some(
                    stage
                        .filter(|stage| *stage <= 3)
                        .ok_or(Wrong("zero1, zero2 or zero3"))?,
                );
            }
            _ => return Err(Wrong("a setting that is known here")),
        }
        Ok(())
    }

    /// Freezes all parts of LLaVA but those named.
    fn freeze_all_but(&mut self, parts: &[&str]) {
        let is_frozen = |part: &str| Some(!parts.contains(&part));
        self.freeze_vision = is_frozen("mm_vision_tower");
        self.freeze_connector = is_frozen("mm_mlp_adapter");
        self.freeze_language = is_frozen("mm_language_model");
    }

    /// Notes that a key asks for a loss of the trainer's own, or says that it does not.
    fn ask_loss(&mut self, loss: Loss, is_asked: bool) {
        match is_asked {
            true => self.asked_loss = Some(loss),
            false => _ = self.asked_loss.get_or_insert(Loss::Full),
        }
    }

    /// A loss by its name in a tool.
    fn loss(&mut self, value: &Value, unknown: Fault) -> Set {
        let word = text(value)?;
        if word == "causal_lm" {
            return Ok(());
        }
        self.other_loss = Some(OtherLoss::named(&word).ok_or(unknown)?);
        Ok(())
    }

    fn mixed_precision(&mut self, word: &str) -> Set {
        match word {
            "no" => {}
            "bf16" => self.bf16 = Some(true),
            "fp16" => self.fp16 = Some(true),
            "fp8" => return Err(NotSimulated("fp8 is not simulated")),
            _ => return Err(Wrong("no, bf16, fp16 or fp8")),
        }
        Ok(())
    }

    /// A configuration that TRL brings along (`trl/accelerate_configs`), each for eight processes but `single_gpu`.
    fn accelerate_config(&mut self, name: &str) -> Set {
        let stage = match name {
            "single_gpu" => return Ok(()),
            "multi_gpu" => None,
            "zero1" => Some(1),
            "zero2" => Some(2),
            "zero3" => Some(3),
            "fsdp1" | "fsdp2" => {
                self.gpus = self.gpus.or(Some(8));
                self.fsdp = self.fsdp.clone().over(Fsdp {
                    is_on: Some(true),
                    version: Some(if name == "fsdp1" { 1 } else { 2 }),
                    prefetches: Some(true),
                    ..Fsdp::default()
                });
                return Ok(());
            }
            // A file, which is read if it is given too.
            _ => return Ok(()),
        };
        (self.gpus, self.zero_stage) = (self.gpus.or(Some(8)), self.zero_stage.or(stage));
        Ok(())
    }

    fn adapter(&mut self, word: &str) -> Set {
        match word {
            "lora" => self.adapters = Some(true),
            "qlora" => (self.adapters, self.bits) = (Some(true), Some(4)),
            "full" | "" => self.adapters = Some(false),
            "freeze" => return Err(NotSimulated("training some layers only is not simulated")),
            _ => return Err(NotSimulated("only full fine-tuning, LoRA and QLoRA are simulated")),
        }
        Ok(())
    }

    /// A file's name, or one of ms-swift's (`swift/config`): `zero0` to `zero3`, with `_offload`; before version 3,
    /// `default-zero2` and `default-zero3`, whose communication overlaps, and `zero3-offload`.
    fn deepspeed(&mut self, name: &str) {
        let own = name.strip_prefix("default-");
        let name = own.unwrap_or(name).replace('-', "_");
        let rest = name.strip_prefix("zero").unwrap_or_default();
        let (stage, is_offloaded) = match rest.split_once('_') {
            Some((stage, "offload")) => (stage, true),
            Some(_) => return,
            None => (rest, false),
        };
        let Some(stage) = stage.parse().ok().filter(|stage| *stage <= 3) else {
            return;
        };
        self.zero_stage = self.zero_stage.or(Some(stage));
        if is_offloaded {
            self.host = [Some(true), Some(stage == 3)];
        }
        let sizes: &[(&str, Value)] = match stage {
            3 => &SIZES_OF_TRAINER.map(|key| (key, "auto".into())),
            _ => &["reduce_bucket_size", "allgather_bucket_size"].map(|key| (key, 200_000_000.into())),
        };
        let overlap = ("overlap_comm", own.is_some().into());
        for (key, value) in sizes.iter().cloned().chain([overlap]) {
            self.zero.entry(key).or_insert(value);
        }
    }
}

/// Adds patterns of parameters' names to those that are there.
fn add(names: &mut Option<Vec<String>>, more: Vec<String>) -> Set {
    if ParameterNames::new(more.clone()).is_err() {
        return Err(NotSimulated(
            "regular expressions without look-around and spaces are read",
        ));
    }
    names.get_or_insert_default().extend(more);
    Ok(())
}
