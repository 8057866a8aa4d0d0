//! Programs that start runs, and those that start them.

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

/// Returns true for an option whose value may be the word behind it.
pub(crate) fn takes_value(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=')
}

/// Returns true for a program that starts several processes.
pub(crate) fn is_scheduler(word: &str) -> bool {
    SCHEDULERS.contains(&program_name(word))
}

/// Returns true for a program that starts the command behind it.
pub(crate) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&program_name(word))
}
