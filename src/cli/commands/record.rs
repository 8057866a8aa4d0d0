//! Command `record`: runs the embedded recorder in the user's Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::hub::HubFlags;
use crate::recorder;

/// Record a training script's own steps without a GPU
///
/// Runs the script in your Python, unchanged, on a CUDA card that is not there: no GPU, no weights, no
/// data on a device. Writes one file, which `vramscope estimate --recording` shows. Needs PyTorch 2.8 or
/// newer in that Python. Flags of the recorder stand before the script; `vramscope record --help` lists
/// them.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope record [--python PATH] [FLAGS] <SCRIPT | -m MODULE> [ITS ARGUMENTS]\n       vramscope record [--python PATH] [FLAGS] --model <ID|DIR|FILE>",
    disable_help_flag = true,
    after_help = examples(EXAMPLES),
)]
pub struct Record {
    /// The Python to run, or the folder of its environment, before all other flags
    ///
    /// Without it: the active virtual or conda environment, the one that vramscope is installed in, or python3 or python
    /// of PATH.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Flags of the recorder, then the script with its own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "  vramscope record train.py --its --own args
  vramscope record --gpu a100 --steps 2 -o run.vram.gz train.py
  vramscope record -m trl.scripts.sft --model_name_or_path ./model
  vramscope record --model Qwen/Qwen3-VL-4B-Instruct --batch 2
  vramscope record --model ./Qwen2-VL-7B --batch 2 --seq 2048 --lora 16
  vramscope record --vary batch=--per_device_train_batch_size:1,2,4 train.py";

impl Record {
    /// Runs the recorder that this program carries; its words and the script's go to the terminal as they come.
    ///
    /// # Errors
    /// When there is no Python or it does not start, and what the recorder ends with.
    pub fn run(self) -> Result<(), Failure> {
        let python = recorder::find(self.python.as_deref())?;
        let mut command = Command::new(&python);
        command.arg(recorder::folder()?).args(with_folder(self.words)?);
        let failed = |error| Failure::Broken(format!("{} does not start: {error}", python.display()));
        ended(&mut command).map_err(failed).and_then(|code| match code {
            0 => Ok(()),
            code => Err(Failure::Told(code)),
        })
    }
}

/// Puts the folder of a model's config.json in place of its name after `--model`: names, copies and cached models need no
/// network then. What is not found here is left to transformers, which has ways of its own.
fn with_folder(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let is_script = |word: &OsString| word == "-m" || word.to_str().is_some_and(|word| word.ends_with(".py"));
    let own = words.iter().take_while(|word| !is_script(word));
    let Some(at) = own.clone().position(|word| word == "--model").map(|at| at + 1) else {
        return Ok(words);
    };
    let name = words.get(at).and_then(|word| word.to_str());
    let Some(name) = name.filter(|name| !Path::new(name).exists()) else {
        return Ok(words);
    };
    let names = HubFlags::default().names();
    if let Some(folder) = names.folder(name)? {
        words[at] = folder.into();
    }
    Ok(words)
}

/// Runs a program to its end in this one's place, so that Ctrl-C and other signals reach it alone.
#[cfg(unix)]
fn ended(command: &mut Command) -> std::io::Result<u8> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs a program to its end; gives its exit code.
#[cfg(not(unix))]
fn ended(command: &mut Command) -> std::io::Result<u8> {
    let code = command.status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
