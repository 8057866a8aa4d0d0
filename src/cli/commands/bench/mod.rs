//! `vramscope bench`: measures the kernels of a card.

mod bar;
mod compare;
mod file;
mod found;
mod host;
mod measure;
mod plot;
mod pytorch;
mod run;
mod show;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vramscope_benchmark::Record;

use crate::commands::examples;
use crate::commands::upload::Upload;
use crate::failure::Failure;
use crate::output;
use crate::records::Checked;
use crate::upload::Destination;

/// Measure this machine's GPU with the kernels that training is made of, and its host
///
/// Copies, matrix products, softmax, norms, activations, cross-entropy, AdamW and attention: each result
/// is compared with a reference on the CPU before its time counts, every sample is kept, and what cannot
/// run says why. The host is measured with the PyTorch of your Python, if there is one: how fast it issues
/// such kernels decides the time of small steps. Results are written as they come; an interrupted run can
/// be resumed.
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Bench {
    /// Only kernels whose name holds these words, such as "gemm bf16" or "attention 8192"; "=" before a
    /// name takes it alone
    filters: Vec<String>,
    /// Fewer shapes and samples: half a minute, and what PyTorch takes to start for the first time
    #[arg(long)]
    quick: bool,
    /// Say what was found, what is missing and why, and which kernels would run; measure nothing
    #[arg(long, conflicts_with_all = ["resume", "show", "compare"])]
    list: bool,
    /// With --list: the name of every kernel instead of a line for each class
    #[arg(long, requires = "list")]
    all: bool,
    /// Which interface to the GPU [default: NVIDIA's, else a GPU's by the portable one]
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true)]
    backend: Interface,
    /// Where the record is written [default: vramscope-bench-<date>.json]
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["resume", "show", "list"])]
    output: Option<PathBuf>,
    /// Python whose PyTorch the host is measured with, or the folder of its environment [default: the active
    /// environment, or python3 of PATH]
    #[arg(long, value_name = "PATH", conflicts_with = "show")]
    python: Option<PathBuf>,
    /// Resume an incomplete record
    #[arg(long, value_name = "FILE", conflicts_with = "show")]
    resume: Option<PathBuf>,
    /// Show a record instead of measuring
    #[arg(long, value_name = "FILE")]
    show: Option<PathBuf>,
    /// Then say what changed since an older record, beyond noise
    #[arg(long, value_name = "OLD")]
    compare: Option<PathBuf>,
    /// Then send the record to this server, as `upload` does
    #[arg(long, value_name = "URL", conflicts_with = "list")]
    upload: Option<Destination>,
    /// Send without asking
    #[arg(long, requires = "upload")]
    yes: bool,
    /// Output format on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

const EXAMPLES: &str = "  vramscope bench --list
      what would run here, and what is missing
  vramscope bench --quick
      the most telling kernels in half a minute
  vramscope bench \"gemm bf16\" attention --output card.json
      only some kernels, into a file of your choice
  vramscope bench --resume card.json
      after an interruption
  vramscope bench --show card.json --compare last-week.json
      what changed, without measuring";

/// The form of a record on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables and a plot for people
    Text,
    /// The record itself
    Json,
    /// One line a kernel
    Csv,
}

/// An interface to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Interface {
    /// NVIDIA's, else a GPU's by the portable one
    Auto,
    /// NVIDIA's libraries
    Cuda,
    /// Vulkan, Metal or DirectX 12, including software (CPU) implementations
    Portable,
}

impl Bench {
    /// Runs a measurement, lists kernels, or shows a record.
    ///
    /// # Errors
    /// If there is no GPU, a file cannot be read or written, or no kernel matches the given words.
    pub fn run(self) -> Result<(), Failure> {
        // Read this file first, so that a long run does not end with a missing file.
        let old = self.compare.as_deref().map(file::read).transpose()?;
        if self.list {
            return found::list(&self);
        }
        let record = match &self.show {
            Some(path) => file::read(path)?,
            None => run::run(&self)?,
        };
        match self.format {
            Form::Json => output::print_json(&record)?,
            Form::Csv => output::print(&show::csv(&record))?,
            Form::Text => output::print(&self.text(&record, old.as_ref()))?,
        }
        match self.upload {
            Some(to) => Upload::to(to, self.yes).send(&[Checked::of(record).map_err(Failure::broken)?]),
            None => Ok(()),
        }
    }

    fn text(&self, record: &Record, old: Option<&Record>) -> String {
        let mut text = show::text(record);
        if let Some(plot) = plot::attention(record) {
            text += &plot;
        }
        if let Some(old) = old {
            text += &compare::text(old, record);
        }
        text
    }
}
