//! One dry run of each training tool, in environments that are made from nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{cargo, run};
use crate::{Failure, root};

/// A dry run: its name, the flags of `vramscope dry-run`, and the command.
struct Case {
    name: &'static str,
    flags: &'static [&'static str],
    words: &'static [&'static str],
}

/// Samples of all runs: the point is that each tool takes them.
const DATA: &[&str] = &[
    "--data",
    "made-up:tokens=256,labels=0.5",
    "--gpu",
    "h100",
    "--format",
    "jsonl",
];

const CASES: &[Case] = &[
    Case {
        name: "trl",
        flags: &["--with", "trl[peft]"],
        words: &[
            "trl",
            "sft",
            "--model_name_or_path",
            "Qwen/Qwen2.5-0.5B-Instruct",
            "--dataset_name",
            "any/data",
            "--max_steps",
            "2",
            "--use_peft",
            "--output_dir",
            "out",
        ],
    },
    Case {
        name: "accelerate",
        flags: &["--with", "accelerate,transformers,datasets"],
        words: &[
            "accelerate",
            "launch",
            "--num_processes",
            "2",
            "--multi_gpu",
            "train.py",
        ],
    },
    Case {
        name: "deepspeed",
        flags: &["--with", "deepspeed,accelerate,transformers,datasets", "--cards", "2"],
        words: &["deepspeed", "--num_gpus", "2", "train.py", "--deepspeed", "zero2.json"],
    },
    Case {
        name: "ms-swift",
        flags: &["--with", "ms-swift==4.6.0"],
        words: &["swift", "sft", "swift.yaml"],
    },
    Case {
        name: "ms-swift, two versions",
        flags: &["--with", "ms-swift==4.6.0", "--against", "ms-swift==4.4.2"],
        words: &["swift", "sft", "swift.yaml"],
    },
    Case {
        name: "llamafactory",
        flags: &["--with", "llamafactory==0.9.5"],
        words: &["llamafactory-cli", "train", "llama_factory.yaml"],
    },
    Case {
        name: "axolotl",
        flags: &["--with", "axolotl"],
        words: &["axolotl", "train", "axolotl.yml"],
    },
];

const FILES: &[(&str, &str)] = &[
    (
        "train.py",
        "import sys\n\
         from datasets import load_dataset\n\
         from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments\n\
         name = 'Qwen/Qwen2.5-0.5B-Instruct'\n\
         words = ['--output_dir', 'out', '--max_steps', '2', '--per_device_train_batch_size', '1', '--bf16', 'true']\n\
         (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(words + sys.argv[1:])\n\
         tokenizer = AutoTokenizer.from_pretrained(name)\n\
         data = load_dataset('any/data', split='train')\n\
         def read(row):\n\
         \x20   ids = tokenizer(row['text'])['input_ids']\n\
         \x20   return {'input_ids': ids, 'labels': ids}\n\
         data = data.map(read, remove_columns=data.column_names)\n\
         Trainer(AutoModelForCausalLM.from_pretrained(name), args, train_dataset=data).train()\n",
    ),
    (
        "zero2.json",
        "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": \"auto\",\n\
         \"gradient_accumulation_steps\": \"auto\", \"train_batch_size\": \"auto\"}\n",
    ),
    (
        "swift.yaml",
        "model: Qwen/Qwen2.5-0.5B-Instruct\ndataset: any/data\ntuner_type: lora\nmax_steps: 2\nper_device_train_batch_size: 1\n\
         gradient_accumulation_steps: 1\ntorch_dtype: bfloat16\noutput_dir: out\n",
    ),
    (
        "llama_factory.yaml",
        "model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: lora\ndataset: any\n\
         template: qwen\ncutoff_len: 2048\noutput_dir: out\nper_device_train_batch_size: 1\nmax_steps: 2\nbf16: true\n",
    ),
    (
        "axolotl.yml",
        "base_model: Qwen/Qwen2.5-0.5B-Instruct\ndatasets:\n  - path: any/data\n    type: chat_template\n\
         sequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nlearning_rate: 0.0002\nadapter: lora\nlora_r: 16\nlora_alpha: 32\n\
         lora_target_linear: true\nmax_steps: 2\nbf16: true\noptimizer: adamw_torch_fused\noutput_dir: out\n",
    ),
];

/// Runs each tool once, in environments that `--with` makes in `target/dry_run_tools`, from nothing. Names choose some.
/// Takes gigabytes and, on two cores, up to an hour; no other command installs them.
///
/// # Errors
/// When one does not run; the others are tried first.
pub fn dry_run_tools(names: &[String]) -> Result<(), Failure> {
    if let Some(unknown) = names.iter().find(|name| !CASES.iter().any(|case| case.name == **name)) {
        let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        return Err(Failure::usage(format!(
            "there is no tool `{unknown}`; there are {}",
            known.join("; ")
        )));
    }
    run(cargo().args(["build", "--workspace", "--bin", "vramscope", "--locked"]))?;
    let home = root().join("target/dry_run_tools");
    let _ = fs::remove_dir_all(&home);
    let work = home.join("work");
    fs::create_dir_all(&work)?;
    for (name, text) in FILES {
        fs::write(work.join(name), text)?;
    }
    let wanted = CASES
        .iter()
        .filter(|case| names.is_empty() || names.iter().any(|name| name == case.name));
    let mut failed = Vec::new();
    for case in wanted {
        eprintln!(
            "\n{}: vramscope dry-run {} {}",
            case.name,
            case.flags.join(" "),
            case.words.join(" ")
        );
        if let Err(failure) = run(&mut command(case, &home, &work)) {
            eprintln!("{}: {failure}", case.name);
            failed.push(case.name);
        }
    }
    fs::remove_dir_all(&home)?;
    match &failed[..] {
        [] => Ok(()),
        failed => Err(Failure::new(format!("these did not run: {}", failed.join(", ")))),
    }
}

fn command(case: &Case, home: &Path, work: &Path) -> Command {
    let mut command = Command::new(root().join("target/debug/vramscope"));
    command.arg("dry-run").args(case.flags).args(DATA).args(case.words);
    command.current_dir(work).env("XDG_CACHE_HOME", home.join("cache"));
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"] {
        command.env_remove(variable);
    }
    command
}
