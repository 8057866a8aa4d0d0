//! Programs that start runs, and those that start them.

use crate::entry::Entry;

/// Programs that start a run.
pub const PROGRAMS: [&str; 9] = [
    "swift",
    "llamafactory-cli",
    "axolotl",
    "trl",
    "accelerate",
    "torchrun",
    "deepspeed",
    "python",
    "python3",
];

/// Programs that start the command behind them in the same process or as one other.
const RUNNERS: [&str; 27] = [
    "nohup",
    "time",
    "exec",
    "sudo",
    "env",
    "nice",
    "taskset",
    "numactl",
    "uv",
    "uvx",
    "poetry",
    "pdm",
    "pixi",
    "conda",
    "mamba",
    "micromamba",
    "timeout",
    "stdbuf",
    "setsid",
    "ionice",
    "command",
    "builtin",
    "singularity",
    "apptainer",
    "xvfb-run",
    "nsys",
    "py-spy",
];

/// Programs that start the command behind them once for each of several processes.
const SCHEDULERS: [&str; 4] = ["srun", "mpirun", "mpiexec", "horovodrun"];

/// Programs that train and whose steps are not simulated, with their names.
const FOREIGN: [(&str, &str); 16] = [
    ("tune", "torchtune,"),
    ("autotrain", "AutoTrain,"),
    ("megatron", "Megatron-SWIFT,"),
    ("xtuner", "XTuner,"),
    ("litgpt", "LitGPT,"),
    ("mlx_lm.lora", MLX),
    ("mlx_lm", MLX),
    ("mlx_vlm.lora", MLX),
    ("composer", "Composer,"),
    ("nemo", "NeMo,"),
    ("nemorun", "NeMo,"),
    ("oumi", "Oumi,"),
    ("ludwig", "Ludwig,"),
    ("colossalai", "ColossalAI,"),
    ("paddleformers-cli", "PaddleFormers,"),
    ("ilab", "InstructLab,"),
];

/// What trains on Apple's GPUs, which have no CUDA.
const MLX: &str = "MLX, which trains on Apple's GPUs,";

/// Frameworks whose files name the classes that are made of them, by the key that does.
const OF_CLASSES: [&str; 2] = ["_component_", "_target_"];

/// What a script starts that trains and is not simulated, by its name.
pub(crate) fn foreign(text: &str) -> Option<&'static str> {
    text.lines()
        .flat_map(|line| line.split([';', '&', '|']))
        .find_map(|command| {
            let mut words = command.split_ascii_whitespace().filter(|word| !word.contains('='));
            let mut word = words.next()?;
            while RUNNERS.contains(&program_name(word)) || word == "-m" || PROGRAMS.contains(&program_name(word)) {
                word = words.next()?;
            }
            let name = program_name(word);
            FOREIGN
                .iter()
                .find(|(program, _)| *program == name)
                .map(|(_, name)| *name)
        })
}

/// The framework of settings that name classes, as torchtune's and Hydra's do.
pub(crate) fn foreign_settings(entries: &[Entry]) -> Option<String> {
    let classes = entries.iter().filter(|entry| {
        entry
            .key
            .rsplit('.')
            .next()
            .is_some_and(|key| OF_CLASSES.contains(&key))
    });
    let mut roots = classes.filter_map(|entry| entry.value.as_str()?.split('.').next());
    let first = roots.next()?;
    Some(
        roots
            .find(|root| *root != "torch")
            .filter(|_| first == "torch")
            .unwrap_or(first)
            .to_owned()
            + ",",
    )
}

/// Keys that only files of programs have whose steps are not simulated, and the programs' names.
const FOREIGN_KEYS: [(&str, &[&str]); 3] = [
    (
        "LLaMA-Factory's version 1,",
        &[
            "dist_config.name",
            "kernel_config.name",
            "model_class",
            "batching_strategy",
        ],
    ),
    (
        "verl,",
        &[
            "worker.actor",
            "actor_rollout_ref.model",
            "actor_rollout_ref.actor",
            "worker.rollout",
        ],
    ),
    (
        "Megatron,",
        &[
            "tensor_model_parallel_size",
            "pipeline_model_parallel_size",
            "expert_model_parallel_size",
        ],
    ),
];

/// The program of settings that no tool reads here, by keys that only its files have.
pub(crate) fn foreign_keys(entries: &[Entry]) -> Option<&'static str> {
    let is_of = |entry: &Entry, key: &str| {
        let rest = entry.key.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let has = |keys: &[&str]| keys.iter().any(|key| entries.iter().any(|entry| is_of(entry, key)));
    let found = FOREIGN_KEYS.iter().find(|(_, keys)| has(keys));
    found.map(|(name, _)| *name)
}

/// Says that something is not simulated, and which command finds out.
pub(crate) fn not_simulated(does: &str, name: &str, file: &str) -> String {
    let file = if file.is_empty() { "COMMAND" } else { file };
    format!("{does} {name} whose steps are not simulated; run it dry, which needs no GPU: vramscope dry-run {file}")
}

/// Name of a program without its folder; a version of Python is Python.
fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_version = |version: &str| version.chars().all(|c| c.is_ascii_digit() || c == '.');
    match name.strip_prefix("python3") {
        Some(version) if is_version(version) => "python3",
        _ => name,
    }
}

/// The program of [`PROGRAMS`] that a command starts, and its place among the words: the first, or one behind programs that
/// start others.
pub(crate) fn started(words: &[String]) -> Option<(&'static str, usize)> {
    let known = |word: &String| PROGRAMS.into_iter().find(|program| *program == program_name(word));
    let first = words.first()?;
    if let Some(program) = known(first) {
        return Some((program, 0));
    }
    let runs = |names: &[&str]| names.contains(&program_name(first));
    if !runs(&RUNNERS) && !runs(&SCHEDULERS) {
        return None;
    }
    // Behind an option may be its value, such as an environment or a package of a program's name.
    let candidates = || (1..words.len()).filter(|&at| known(&words[at]).is_some());
    let found = candidates().find(|&at| !takes_value(&words[at - 1]));
    let found = found.or_else(|| candidates().next())?;
    Some((known(&words[found])?, found))
}

/// Options of programs that start others behind which no value stands.
const FLAGS: [&str; 9] = [
    "--live-stream",
    "--quiet",
    "--verbose",
    "--frozen",
    "--locked",
    "--isolated",
    "--active",
    "--nv",
    "--preserve-env",
];

/// Returns true for an option whose value may be the word behind it.
pub(crate) fn takes_value(word: &str) -> bool {
    let is_flag = word.starts_with("--no-") || FLAGS.contains(&word);
    word.starts_with('-') && !word.contains('=') && !is_flag
}

/// Returns true for a program that starts several processes.
pub(crate) fn is_scheduler(word: &str) -> bool {
    SCHEDULERS.contains(&program_name(word))
}

/// Returns true for a program that starts the command behind it.
pub(crate) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&program_name(word))
}
