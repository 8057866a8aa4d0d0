//! Tells files and texts that start a run from all others that people drop or paste.

use vramscope_launch::PROGRAMS;

/// Endings of files that start a run. JSON may be a model's configuration too.
const ENDINGS: [&str; 8] = [".yaml", ".yml", ".sh", ".bash", ".args", ".py", ".ipynb", ".slurm"];

/// Beginnings of lines that only a program has.
const OF_PROGRAMS: [&str; 3] = ["import ", "from ", "def "];

/// Names that a program which trains has in it.
const TRAINS: [&str; 5] = [
    "Trainer(",
    "TrainingArguments(",
    "Config(",
    "optimizer",
    "FastLanguageModel",
];

/// Keys of launch files that no other file has.
const KEYS: [&str; 9] = [
    "per_device_train_batch_size",
    "micro_batch_size",
    "train_micro_batch_size_per_gpu",
    "zero_optimization",
    "finetuning_type",
    "model_name_or_path",
    "base_model",
    "distributed_type",
    "gradient_accumulation_steps",
];

/// Returns true for the name of a file that starts a run.
pub fn is_launch_name(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns true for a text that starts a run: a command, or settings with a key that only such files have. A model's
/// configuration is none.
pub fn is_launch(text: &str) -> bool {
    let is_json = text.trim_start().starts_with('{');
    if is_json && (text.contains("\"model_type\"") || text.contains("\"architectures\"")) {
        return false;
    }
    text.lines().any(is_launch_line) || is_program(text)
}

/// Returns true for a Python program that trains: it imports what it trains with.
fn is_program(text: &str) -> bool {
    let is_code = |line: &str| OF_PROGRAMS.iter().any(|word| line.starts_with(word)) && !line.ends_with('.');
    text.lines().filter(|line| line.contains("import ")).any(is_code) && TRAINS.iter().any(|name| text.contains(name))
}

fn is_launch_line(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '"' | '$' | '-' | ','));
    let is_key = |key: &&str| {
        let rest = line.strip_prefix(*key);
        rest.is_some_and(|rest| rest.starts_with([':', '"', ' ', '=']))
    };
    let mut words = line.split_whitespace().skip_while(|word| word.contains('='));
    let is_program = words.next().is_some_and(|word| PROGRAMS.contains(&word));
    // A command has options; a sentence that begins with "python" has none.
    KEYS.iter().any(is_key) || is_program && words.next().is_some_and(|_| is_command(line))
}

fn is_command(line: &str) -> bool {
    line.trim_end().ends_with('\\')
        || [" --", ".py", ".yaml", ".yml", ".json"]
            .iter()
            .any(|sign| line.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_start_a_run_are_told_from_others() {
        for text in [
            "### model\nmodel_name_or_path: x\nstage: sft\n",
            "NPROC_PER_NODE=2 \\\nswift sft \\\n  --model x \\\n",
            "CUDA_VISIBLE_DEVICES=0 llamafactory-cli train a.yaml",
            "$ accelerate launch --config_file ds.yaml train.py --bf16",
            "python3 train.py --bf16 True > log &",
            "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\n",
            "{\"zero_optimization\": {\"stage\": 3}}",
            "{\n  \"bf16\": {\"enabled\": true},\n  \"zero_optimization\": {\"stage\": 3}\n}",
            "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n",
        ] {
            assert!(is_launch(text), "{text}");
        }
        for text in [
            "{\"model_type\": \"llama\", \"hidden_size\": 4096}",
            "torch.OutOfMemoryError: CUDA out of memory.",
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "python is slow",
            "  File \"train.py\", line 4, in <module>\n    trainer.train()",
            "",
        ] {
            assert!(!is_launch(text), "{text}");
        }
        assert!(is_launch_name("train.yaml") && is_launch_name("run.sh") && !is_launch_name("run.vram.gz"));
    }
}
