//! Files as the tools' own examples write them, and what becomes of each line.

use serde_json::json;
use vramscope_engine::Case;
use vramscope_engine::setup::{
    Checkpointing, Freeze, FrozenType, LigerKernels, Loss, Optimizer, Precision, Strategy, Targets,
};

use super::*;

/// Reads files with their names.
pub(crate) fn launch_named(files: &[(&str, &str)]) -> Launch {
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    read(&sources).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn launch(texts: &[&str]) -> Launch {
    let sources: Vec<Source<'_>> = texts.iter().map(|text| Source { name: "file", text }).collect();
    read(&sources).unwrap_or_else(|error| panic!("{error}"))
}

/// The setup for a model with images.
fn resolved(launch: &Launch) -> Resolved {
    launch.resolve(ModelFacts::UNKNOWN)
}

pub(crate) fn open(launch: &Launch) -> Vec<String> {
    resolved(launch).not_simulated.iter().map(ToString::to_string).collect()
}

/// The case as the engine reads it; the model is left out, since names of hubs are not all known.
pub(crate) fn case(launch: &Launch) -> Case {
    case_of(&resolved(launch))
}

pub(crate) fn case_of(resolved: &Resolved) -> Case {
    let mut case = resolved.case.clone();
    case.insert("model".to_owned(), json!("x"));
    Case::from_json(&Value::Object(case).to_string())
        .unwrap_or_else(|error| panic!("{error}: {:?}", resolved.case))
        .expect("it is not empty")
}

fn fate<'a>(launch: &'a Launch, key: &str) -> &'a Fate {
    let line = launch.lines.iter().find(|line| line.entry.key == key);
    &line.unwrap_or_else(|| panic!("{key}: {:?}", launch.lines)).fate
}

const LLAMA_FACTORY: &str = "### model
model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct
image_max_pixels: 262144
video_max_pixels: 16384
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all

### dataset
dataset: mllm_demo,identity,alpaca_en_demo
template: qwen2_vl
cutoff_len: 2048
max_samples: 1000
preprocessing_num_workers: 16

### output
output_dir: saves/qwen2_5vl-7b/lora/sft
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
report_to: none

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
";

#[test]
fn a_file_of_llama_factory_is_lora_in_bf16_with_checkpoints() {
    let launch = launch(&[LLAMA_FACTORY]);
    assert_eq!(launch.tool, Tool::LlamaFactory);
    let setup = case(&launch).setup;
    assert_eq!((setup.batch, setup.accum, setup.seq, setup.rank), (1, 8, 2048, 8));
    assert_eq!(
        (setup.freeze, setup.ckpt, setup.precision),
        (Freeze::Lora, Checkpointing::Trained, Precision::Bf16Amp)
    );
    assert_eq!((setup.optim, setup.clip), (Optimizer::AdamwFused, true));
    // The frozen tower gets no adapters.
    assert_eq!(setup.lora_targets, Targets::LanguageModel);
    assert_eq!(launch.model(), Some("Qwen/Qwen2.5-VL-7B-Instruct"));
    assert!(
        resolved(&launch)
            .missing
            .iter()
            .any(|remark| remark.to_string().contains("--image-sizes 512x512")),
        "{:?}",
        resolved(&launch).missing
    );
    assert_eq!(fate(&launch, "learning_rate"), &Fate::NoEffect(NoEffect::Numbers));
    assert_eq!(fate(&launch, "cutoff_len"), &Fate::Simulated);
    // Videos are told of where it is asked how large samples are.
    assert_eq!(fate(&launch, "video_max_pixels"), &Fate::Simulated);
    assert!(
        resolved(&launch)
            .missing
            .iter()
            .any(|text| text.to_string().contains("16384 pixels each")),
        "{:?}",
        resolved(&launch).missing
    );
    assert!(
        !launch.lines.iter().any(|line| matches!(line.fate, Fate::Unknown(_))),
        "{:?}",
        launch.lines
    );
    assert!(
        launch
            .defaults
            .iter()
            .any(|default| default.key == "freeze_vision_tower")
    );
}

#[test]
fn full_fine_tuning_in_llama_factory_trains_fp32_weights_unless_it_is_pure() {
    let full = LLAMA_FACTORY.replace("finetuning_type: lora", "finetuning_type: full");
    let unfrozen = full.clone() + "freeze_vision_tower: false\nfreeze_multi_modal_projector: false\n";
    let read = launch(&[&unfrozen]);
    assert_eq!(
        (case(&read).setup.precision, case(&read).setup.freeze),
        (Precision::AmpBf16, Freeze::NONE)
    );
    let pure = launch(&[&(unfrozen + "pure_bf16: true\n")]);
    assert_eq!(case(&pure).setup.precision, Precision::Bf16Amp);
    // By default the tower and the connector are frozen, and stay in 16 bits.
    let frozen = launch(&[&full]);
    assert_eq!(open(&frozen), Vec::<String>::new());
    let setup = case(&frozen).setup;
    assert_eq!(
        (setup.freeze, setup.precision, setup.frozen_weights),
        (Freeze::ALL_BUT_LANGUAGE, Precision::AmpBf16, FrozenType::Autocast)
    );
    let pure = launch(&[&(full + "pure_bf16: true\n")]);
    assert_eq!(case(&pure).setup.frozen_weights, FrozenType::AsTrained);
}

const SWIFT: &str = "# 2 * 24GiB
PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \\
CUDA_VISIBLE_DEVICES=0,1 \\
NPROC_PER_NODE=2 \\
MAX_PIXELS=1003520 \\
swift sft \\
    --model Qwen/Qwen2.5-VL-7B-Instruct \\
    --dataset 'AI-ModelScope/LaTeX_OCR:human_handwrite#20000' \\
    --tuner_type lora \\
    --torch_dtype bfloat16 \\
    --per_device_train_batch_size 2 \\
    --learning_rate 1e-4 \\
    --lora_rank 16 \\
    --target_modules all-linear \\
    --freeze_vit true \\
    --max_length 4096 \\
    --deepspeed zero2 \\
    --split_dataset_ratio 0.01
";

#[test]
fn a_command_of_ms_swift_accumulates_to_sixteen_samples() {
    let launch = launch(&[SWIFT]);
    assert_eq!(launch.tool, Tool::MsSwift);
    let case = case(&launch);
    assert_eq!((case.setup.batch, case.setup.accum, case.setup.seq), (2, 4, 4096));
    assert_eq!(
        (case.setup.freeze, case.setup.rank, case.setup.lora_dropout),
        (Freeze::Lora, 16, 0.05)
    );
    let parallel = case.parallel.expect("two GPUs");
    assert_eq!((parallel.world, parallel.strategy), (2, Strategy::Deepspeed2));
    assert!(
        resolved(&launch)
            .assumed
            .iter()
            .any(|remark| remark.note == Note::Expandable)
    );
    assert_eq!(launch.lines[0].entry.line, 2);
}

const AXOLOTL: &str = "base_model: NousResearch/Llama-3.2-1B
load_in_4bit: true
datasets:
  - path: teknium/GPT4-LLM-Cleaned
    type: alpaca
val_set_size: 0.1
output_dir: ./outputs/qlora-out
adapter: qlora
sequence_len: 2048
sample_packing: false
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_modules:
  - gate_proj
  - down_proj
  - q_proj
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 0.0002
bf16: auto
tf32: false
gradient_checkpointing: true
flash_attention: true
saves_per_epoch: 1
weight_decay: 0.0
special_tokens:
  pad_token: \"<|end_of_text|>\"
";

#[test]
fn a_file_of_axolotl_is_qlora_with_its_modules() {
    let launch = launch(&[AXOLOTL]);
    assert_eq!(launch.tool, Tool::Axolotl);
    let setup = case(&launch).setup;
    assert_eq!(
        (setup.freeze, setup.optim, setup.rank),
        (Freeze::Qlora, Optimizer::Adamw8bit, 32)
    );
    assert_eq!(setup.attn, vramscope_engine::setup::Attention::FlashAttention2);
    assert_eq!(
        setup.lora_targets,
        Targets::parse("gate_proj,down_proj,q_proj").unwrap()
    );
    assert_eq!(fate(&launch, "sample_packing"), &Fate::Off(NotSimulated::Lengths));
    assert_eq!(fate(&launch, "special_tokens.pad_token"), &Fate::Simulated);
    assert!(open(&launch)[0].contains("QLoRA"), "{:?}", open(&launch));
    assert_eq!(open(&launch).len(), 1);
}

#[test]
fn a_command_of_trl_has_fp32_weights_and_checkpoints_by_default() {
    let launch = launch(&[
        "accelerate launch trl/scripts/sft.py --model_name_or_path Qwen/Qwen2-0.5B --dataset_name \
                           trl-lib/Capybara --learning_rate 2.0e-5 --packing False --use_peft --lora_r 32 \
                           --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --eos_token '<|im_end|>'",
    ]);
    assert_eq!(launch.tool, Tool::TrlSft);
    let setup = case(&launch).setup;
    assert_eq!(
        (setup.precision, setup.ckpt, setup.seq),
        (Precision::AmpBf16, Checkpointing::Full, 1024)
    );
    assert_eq!((setup.freeze, setup.rank, setup.batch), (Freeze::Lora, 32, 2));
    assert_eq!(setup.trainer.name(), "trl_sft");
    assert_eq!(open(&launch), Vec::<String>::new());
}

#[test]
fn dynamic_fine_tuning_is_a_loss_of_trls_sft_and_of_llama_factory() {
    let sft =
        "trl sft --model_name_or_path Qwen/Qwen2-0.5B --dataset_name x --per_device_train_batch_size 2 --loss_type dft";
    let factory =
        "model_name_or_path: Qwen/Qwen2-0.5B\nstage: sft\ndo_train: true\nfinetuning_type: full\nuse_dft_loss: true\n";
    for file in [sft, factory] {
        let read = launch(&[file]);
        assert_eq!(case(&read).setup.loss, Loss::Dft, "{file}");
        assert!(!open(&read).join("\n").contains("loss"), "{:?}", open(&read));
    }
    let off = launch(&[&factory.replace("dft_loss: true", "dft_loss: false")]);
    assert_eq!(case(&off).setup.loss, Loss::Full);
}

#[test]
fn a_command_of_trls_dpo_has_a_reference_model_unless_it_is_precomputed() {
    let command = "trl dpo --model_name_or_path Qwen/Qwen2-0.5B --dataset_name x --per_device_train_batch_size 2";
    let of = |more: &str| launch(&[&format!("{command} {more}")]);
    let plain = of("");
    assert_eq!(plain.tool, Tool::TrlDpo);
    let setup = case(&plain).setup;
    assert_eq!(
        (setup.trainer.name(), setup.reference.name()),
        ("trl_dpo", "every_step")
    );
    assert_eq!(open(&plain), Vec::<String>::new());
    let precomputed = of("--precompute_ref_log_probs True --loss_type ipo");
    assert_eq!(case(&precomputed).setup.reference.name(), "precomputed");
    assert_eq!(
        fate(&precomputed, "loss_type"),
        &Fate::NotSimulated("only the loss `sigmoid` is simulated".to_owned())
    );
}

#[test]
fn a_command_of_trls_grpo_generates_without_a_reference_model_unless_beta_asks_for_one() {
    let command = "trl grpo --model_name_or_path Qwen/Qwen2-0.5B --dataset_name x --per_device_train_batch_size 4";
    let of = |more: &str| launch(&[&format!("{command} {more}")]);
    let plain = of("");
    assert_eq!(plain.tool, Tool::TrlGrpo);
    let setup = case(&plain).setup;
    assert_eq!(
        (setup.trainer.name(), setup.reference.name(), setup.completion),
        ("trl_grpo", "none", Some(512))
    );
    assert_eq!(setup.generation.name(), "transformers");
    assert_eq!(open(&plain), Vec::<String>::new());
    let compared = of("--beta 0.04 --num_iterations 2 --generation_batch_size 16 --max_completion_length 256");
    let setup = case(&compared).setup;
    assert_eq!((setup.reference.name(), setup.num_iterations), ("every_step", 2));
    assert_eq!((setup.steps_per_generation, setup.completion), (Some(4), Some(256)));
    let other = of("--loss_type grpo --use_vllm True --temperature 0.9");
    assert_eq!(case(&other).setup.generation.name(), "vllm");
    let assumed = resolved(&other).assumed;
    assert!(assumed.iter().any(|remark| remark.note == Note::Vllm), "{assumed:?}");
    let open = open(&other).join("\n");
    for named in ["loss_type", "temperature"] {
        assert!(open.contains(named), "{open}");
    }
    let server = of("--use_vllm True --vllm_mode server");
    assert_eq!(super::tests::open(&server), Vec::<String>::new());
}

#[test]
fn files_of_deepspeed_and_accelerate_add_to_a_tools_own() {
    let zero = r#"{"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
        "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": "auto"}}"#;
    let read = launch(&[
        "per_device_train_batch_size: 4\noutput_dir: x\nbf16: true\ndeepspeed: ds_z3.json\n",
        zero,
    ]);
    assert_eq!(read.tool, Tool::Transformers);
    assert_eq!(case(&read).setup.batch, 4);
    let parallel = case(&read).parallel.expect("DeepSpeed's engine");
    assert_eq!(
        (parallel.strategy, parallel.zero.overlap_comm),
        (Strategy::Deepspeed3, Some(true))
    );
    // The Trainer makes it of the width of a model that is not known here.
    assert!(open(&read)[0].contains("reduce_bucket_size: auto"), "{:?}", open(&read));
    assert_eq!(open(&read).len(), 1);
    // A file that is named and not given would make another run of it.
    let alone = launch(&["per_device_train_batch_size: 4\noutput_dir: x\ndeepspeed: ds_z3.json\n"]);
    assert!(
        open(&alone).iter().any(|text| text.contains("--launch ds_z3.json")),
        "{:?}",
        open(&alone)
    );
    let alone = launch(&["llamafactory-cli train a.yaml cutoff_len=4096"]);
    assert!(
        open(&alone).iter().any(|text| text.contains("--launch a.yaml")),
        "{:?}",
        open(&alone)
    );
    let accelerate = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\n\
                      num_machines: 1\nnum_processes: 8\n";
    let read = launch(&[
        "python train.py --per_device_train_batch_size 4 --optim adafactor --dtype float32",
        accelerate,
    ]);
    let case = case(&read);
    assert_eq!(
        (case.setup.optim, case.setup.precision),
        (Optimizer::Adafactor, Precision::AmpBf16)
    );
    assert_eq!(case.parallel.map(|parallel| parallel.world), Some(8));
    assert_eq!(open(&read), Vec::<String>::new());
}

#[test]
fn ligers_other_kernels_come_with_its_loss_unless_they_are_off() {
    let of = |more: &str| {
        launch(&[&format!(
            "output_dir: x\nper_device_train_batch_size: 1\nuse_liger_kernel: true\n{more}"
        )])
    };
    assert_eq!(open(&of("")), Vec::<String>::new());
    assert_eq!(case(&of("")).setup.liger, LigerKernels::ALL_KERNELS);
    let off = r#"liger_kernel_config: '{"rope": false, "rms_norm": false, "swiglu": false, "cross_entropy": false}'"#;
    assert_eq!(open(&of(off)), Vec::<String>::new());
    assert_eq!(case(&of(off)).setup.loss, Loss::FusedLinear);
    assert_eq!(case(&of(off)).setup.liger, LigerKernels::NONE);
}

/// ms-swift loads Gemma 3 with eager attention unless it is told otherwise.
#[test]
fn a_tools_own_attention_is_that_of_its_loader() {
    let of = |model_type, more: &str| {
        let facts = ModelFacts {
            model_type,
            ..ModelFacts::UNKNOWN
        };
        let command = format!("swift sft --model a/b --tuner_type lora --max_length 512 {more}");
        let resolved = launch(&[&command]).resolve(facts);
        resolved
            .case
            .get("attn")
            .and_then(|value| value.as_str())
            .map(str::to_owned)
    };
    assert_eq!(of("gemma3", ""), Some("eager".to_owned()));
    assert_eq!(of("gemma3", "--attn_impl sdpa"), Some("sdpa".to_owned()));
    assert_eq!(of("qwen3_vl", ""), None);
}

/// LLaMA-Factory replaces classes, and passes over models that its list has not.
#[test]
fn ligers_kernels_are_those_that_the_tool_asks_for() {
    let of = |model_type, liger| {
        let facts = ModelFacts {
            model_type,
            liger,
            ..ModelFacts::UNKNOWN
        };
        let text = "stage: sft\nmodel_name_or_path: a/b\nenable_liger_kernel: true\ncutoff_len: 512\n";
        let resolved = launch(&[text]).resolve(facts);
        let given = |key: &str| {
            resolved
                .case
                .get(key)
                .and_then(|value| value.as_str())
                .map(str::to_owned)
        };
        (given("liger"), given("loss"), resolved.not_simulated.len())
    };
    let all = (Some("before-all".to_owned()), Some("fused_linear".to_owned()), 0);
    assert_eq!(of("qwen2_5_vl", LigerKnowledge::Simulated), all);
    assert_eq!(of("internvl", LigerKnowledge::Simulated), (None, None, 0));
    assert_eq!(of("mixtral", LigerKnowledge::NotSimulated), (None, None, 1));
}

/// It was simulated as supervised fine-tuning, and said so nowhere.
#[test]
fn a_larger_step_stands_in_for_dpo_beside_4_bit_weights() {
    for command in [
        "trl dpo --model_name_or_path a/b --load_in_4bit --use_peft",
        "swift rlhf --rlhf_type dpo --model a/b --tuner_type lora --quant_bits 4 --quant_method bnb --max_length 512",
    ] {
        let resolved = launch(&[command]).resolve(ModelFacts::UNKNOWN);
        assert!(
            resolved
                .not_this_run
                .iter()
                .any(|left| left.why.starts_with("DPO: a larger step")),
            "{command}: {resolved:?}"
        );
    }
}

/// ms-swift loads the thinker alone where nothing is to be spoken.
#[test]
fn a_talker_that_is_not_loaded_takes_nothing() {
    let facts = ModelFacts {
        is_thinker: true,
        takes_images: false,
        ..ModelFacts::UNKNOWN
    };
    for (variable, is_open) in [
        ("", true),
        ("ENABLE_AUDIO_OUTPUT=1 ", true),
        ("ENABLE_AUDIO_OUTPUT=0 ", false),
    ] {
        let launch = launch(&[&format!("{variable}swift sft --model a/b --max_length 512")]);
        let resolved = launch.resolve(facts);
        let is_said = resolved.not_this_run.iter().any(|left| left.what == Aspect::Model);
        assert_eq!(is_said, is_open, "{variable}: {resolved:?}");
    }
}

#[test]
fn commands_prevail_and_mistakes_are_told() {
    let read = launch(&[
        "llamafactory-cli train x.yaml cutoff_len=4096",
        "stage: sft\ncutoff_len: 2048\nlora_rnk: 4\nflash_attn: fa5\nenable_liger_kernel: yes\n",
    ]);
    assert_eq!(case(&read).setup.seq, 4096);
    assert_eq!(case(&read).setup.loss, Loss::FusedLinear);
    assert_eq!(fate(&read, "cutoff_len"), &Fate::Replaced);
    assert_eq!(fate(&read, "lora_rnk"), &Fate::Unknown(Some("lora_rank")));
    assert_eq!(
        fate(&read, "flash_attn"),
        &Fate::Wrong("sdpa, eager or flash_attention_2")
    );
    assert!(resolved(&read).missing.contains(&Note::NoModel.into()));
}

/// Of each unknown key a similar one was looked for among all, which took a minute for a file of a megabyte.
#[test]
fn of_many_unknown_keys_no_similar_ones_are_looked_for() {
    let keys: Vec<String> = (0..20_000)
        .map(|at| format!("\"some_key_of_another_program_{at}\": {at}"))
        .collect();
    let text = format!("{{\"zero_optimization\": {{\"stage\": 2}}, {}}}", keys.join(", "));
    let launch = launch_named(&[("a.json", &text)]);
    assert!(
        launch
            .lines
            .iter()
            .filter(|line| line.fate == Fate::Unknown(None))
            .count()
            > 19_000
    );
}

/// Settings in an issue, with words around them and no command.
#[test]
fn settings_in_notes_are_read() {
    let text = "### Reminder\n\nI tried it all day: no luck.\n\n```yaml\n### model\nmodel_name_or_path: Qwen/Qwen2-VL-7B-Instruct\n\nstage: sft\nfinetuning_type: lora\ntemplate: qwen2_vl\ncutoff_len: 3072\nper_device_train_batch_size: 2\nbf16: true\n```\nIt fails: why?\n";
    let told = launch_named(&[("issue.md", text)]);
    assert_eq!(told.tool, Tool::LlamaFactory);
    assert_eq!(told.model(), Some("Qwen/Qwen2-VL-7B-Instruct"));
    assert_eq!(resolved(&told).number("seq"), Some(3072));
    assert_eq!(resolved(&told).number("batch"), Some(2));
}

/// What ms-swift writes beside its checkpoints shares keys with TRL's files.
#[test]
fn arguments_that_ms_swift_writes_are_its_own() {
    let text = r#"{"model": "Qwen/Qwen2.5-VL-7B-Instruct", "train_type": "lora", "max_length": 2048, "torch_dtype": "bfloat16"}"#;
    let told = launch_named(&[("args.json", text)]);
    assert_eq!(
        (told.tool, told.model()),
        (Tool::MsSwift, Some("Qwen/Qwen2.5-VL-7B-Instruct"))
    );
}
