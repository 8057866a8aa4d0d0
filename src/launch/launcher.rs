//! Programs that start processes.

/// How a program decides how many processes it starts where nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// One for each visible GPU: DeepSpeed, and LLaMA-Factory, which starts torchrun with as many.
    EachVisible,
    /// One for each visible GPU, or Python itself where one is asked for, which sees them all: accelerate and the tools that
    /// start it (`simple_launcher` in accelerate/commands/launch.py).
    Accelerate,
    /// One for each machine: torchrun (`--nproc_per_node` is 1).
    Torchrun,
    /// One: Python itself, and ms-swift unless `NPROC_PER_NODE` or `NNODES` is set (`get_torchrun_args`).
    One,
}

/// Modules that start others, as `python -m`.
const MODULES: [(&str, Launcher); 5] = [
    ("torch.distributed.run", Launcher::Torchrun),
    ("torch.distributed.launch", Launcher::Torchrun),
    ("accelerate.commands.launch", Launcher::Accelerate),
    ("deepspeed.launcher.runner", Launcher::EachVisible),
    ("llamafactory.cli", Launcher::EachVisible),
];

impl Launcher {
    /// Launcher of a command of these words.
    pub fn of(program: &[String]) -> Self {
        let module = program.iter().skip_while(|word| *word != "-m").nth(1);
        let started = module.and_then(|module| MODULES.iter().find(|(name, _)| name == module));
        match (program.first().map(String::as_str), started) {
            (_, Some((_, launcher))) => *launcher,
            (Some("torchrun"), _) => Self::Torchrun,
            (Some("python" | "python3" | "swift"), _) => Self::One,
            (Some("accelerate" | "trl" | "axolotl"), _) => Self::Accelerate,
            _ => Self::EachVisible,
        }
    }
}
