//! `vramscope`: predicts the GPU memory of training a vision-language model, in a terminal.
//!
//! Each command reads its input, has another crate compute, or measures the GPU, and passes the result to [`output`].
//! No prediction is computed here.

// The lint forbids what a browser lacks, such as files and clocks (`clippy.toml`).
#![allow(clippy::disallowed_methods, reason = "runs natively only")]

mod backends;
mod clock;
mod commands;
mod data_folder;
mod failure;
mod input;
mod judged;
mod kernels;
#[cfg(feature = "mcp")]
mod mcp;
mod outcome;
mod output;
mod parallel;
mod phrases;
mod predict;
mod recorder;
mod records;
#[cfg(feature = "server")]
mod server;
#[cfg(test)]
mod tests;
mod upload;

use std::process::ExitCode;

use clap::Parser;

use commands::{Command, examples};

/// Searches make and drop millions of small objects; in the C library's allocator they spent a quarter of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// The doc comment is the first line of `--help`. `--color` comes last in the list of options, hence 900.
/// See where the GPU memory of training a vision-language model goes, before you rent or crash.
#[derive(Debug, Parser)]
#[command(name = "vramscope", version, after_help = examples(EXAMPLES), mut_arg("color", |color| color.display_order(900)))]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    color: colorchoice_clap::Color,
}

/// End of `--help`: pairs of a command and what it shows, then the exit codes.
const EXAMPLES: &str = "  vramscope estimate llava-1.5-7b --batch 4 --seq 2048 --gpu H200
      what one training step holds, and whether it fits the card
  vramscope estimate --config config.json --freeze lora --ckpt full
      any Hugging Face config.json
  vramscope estimate Qwen/Qwen3-VL-8B-Thinking --freeze lora
      any id of the Hugging Face Hub; of one that is not known, the hub is asked for the names of its
      small files (vramscope models --help)
  vramscope max-batch llava-1.5-7b --ckpt full --freeze lora --gpu 4090
      the largest micro-batch that trains there
  vramscope plan qwen2.5-vl-7b --gpu 4090 --effective 32
      settings that train there, the fastest nearest to what is asked, and why
  vramscope cost qwen2.5-vl-7b --freeze lora --prices prices.csv
      what the run costs on each card and on several, the cheapest first
  vramscope estimate --recording run.vram.gz
      a run of your own, once `vramscope dry-run -o run.vram.gz COMMAND` has run it without a GPU
  vramscope diagnose train.log snapshot.pickle
      why a run is out of memory, or slow
  vramscope check train.yaml of_b.sh --gpu H200
      a verdict as an exit code, for scripts and continuous integration
  vramscope replay gpt2-bf16.trace.json.gz
      a recorded allocator trace through the simulated allocator
  vramscope watch run.jsonl
      a run's memory and time beside the prediction, while it goes on
  vramscope bench --list
      what can be measured on this machine's GPU
  vramscope upload h200.json --to https://vramscope.example --dry-run
      what would be sent of a measured card
  vramscope export data h200.json
      records as static files, for a page to read
  vramscope models
      every model known by name
  vramscope gpus
      every card known by name

  vramscope doctor
      what was found here, what is missing, and what to do

Exit codes: 0 done, 1 failure, 2 bad input; check and dry-run have more.";

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.color.write_global();
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
