//! The commands, one file each.

mod bench;
mod check;
mod completions;
mod cost;
mod diagnose;
mod doctor;
mod dry_run;
mod estimate;
mod export;
mod gpus;
mod man;
mod max;
mod max_batch;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod plan;
mod record;
mod replay;
mod schema;
#[cfg(feature = "server")]
mod serve;
mod upload;
pub mod watch;

use anstyle::Style;
use clap::Subcommand;

use crate::failure::Failure;

/// Formats examples as the last part of a help text, with a heading in clap's style.
pub fn examples(lines: &str) -> String {
    let heading = Style::new().bold().underline();
    format!("{heading}Examples:{heading:#}\n{lines}")
}

/// What `vramscope` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Estimate(Box<estimate::Estimate>),
    Check(Box<check::Check>),
    Max(Box<max::Max>),
    MaxBatch(Box<max_batch::MaxBatch>),
    Plan(Box<plan::Plan>),
    Cost(Box<cost::Cost>),
    Record(record::Record),
    DryRun(Box<dry_run::DryRun>),
    Diagnose(Box<diagnose::Diagnose>),
    Replay(replay::Replay),
    Watch(watch::Watch),
    Bench(Box<bench::Bench>),
    Upload(Box<upload::Upload>),
    #[cfg(feature = "server")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Mcp),
    Export(export::Export),
    Models(models::Models),
    Gpus(gpus::Gpus),
    Doctor(doctor::Doctor),
    Schema(schema::SchemaOf),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Estimate(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Max(command) => command.run(),
            Self::MaxBatch(command) => command.run(),
            Self::Plan(command) => command.run(),
            Self::Cost(command) => command.run(),
            Self::Record(command) => command.run(),
            Self::DryRun(command) => command.run(),
            Self::Diagnose(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Watch(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Upload(command) => command.run(),
            #[cfg(feature = "server")]
            Self::Serve(command) => command.run(),
            #[cfg(feature = "mcp")]
            Self::Mcp(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Models(command) => command.run(),
            Self::Gpus(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Schema(command) => command.run(),
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
        }
    }
}
