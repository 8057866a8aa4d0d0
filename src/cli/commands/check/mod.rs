//! `vramscope check`: whether runs fit a card, as an exit code and in the formats that continuous integration reads.

mod base;
mod judge;

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use self::base::Base;
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::budget::Budget;
use crate::input::hub::HubFlags;
use crate::input::parallel_flags::ParallelFlags;
use crate::input::room::RoomFlags;
use crate::input::run::Run;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::judged::Judged;
use crate::outcome::Outcome;
use crate::output::reports::{CheckDocument, CheckedRun};
use crate::output::{self, reports, terminal};

/// Tell whether runs fit a card, as an exit code
///
/// A RUN is whatever `estimate` takes: a file that starts it, a case (its file or its JSON), a recording, a config.json, or
/// the name of a model; or give the command that starts it behind `--`. For scripts, hooks and continuous integration.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope check <RUN>.. --gpu <NAME> [OPTIONS]\n       vramscope check --gpu <NAME> [OPTIONS] -- <COMMAND> [ITS ARGUMENTS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("what").required(true).args(["runs", "command"]),
    group = ArgGroup::new("room").required(true).multiple(true).args(["gpu", "limit_gib"]),
)]
pub struct Check {
    /// Files that start runs, cases, recordings, or models; - for a launch on standard input
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The command that starts the run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A file that belongs to every launch among them, such as accelerate's; give it again for several
    #[arg(long, value_name = "FILE", value_parser = Source::parse)]
    also: Vec<Source>,
    #[command(flatten)]
    room: RoomFlags,
    /// The most that a run may take of the card: in GiB, or as a share of it, such as 90%. What takes more ends with exit
    /// code 3, though it fits
    #[arg(long, value_name = "GIB|SHARE", value_parser = Budget::parse)]
    budget: Option<Budget>,
    /// A commit, to whose files these are compared: says how much more each run takes than there
    #[arg(long, value_name = "COMMIT", conflicts_with = "command")]
    base: Option<String>,
    /// The runs' dataset, a file or a folder (JSON Lines, JSON, CSV, Parquet), from which lengths and images of samples come
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The tokenizer.json that counts the tokens of --data, or its folder [default: the one beside the model's config.json, or
    /// in the hub's cache]
    #[arg(long, value_name = "FILE", requires = "data")]
    tokenizer: Option<PathBuf>,
    /// Estimate the rest of a launch though some of what changes memory in it is not simulated
    #[arg(long)]
    ignore_not_simulated: bool,
    /// Outcomes that end with exit code 0 too
    #[arg(long, value_enum, value_name = "OUTCOME,..", value_delimiter = ',')]
    allow: Vec<Allowed>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: CheckFormat,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    parallel: ParallelFlags,
    #[command(flatten)]
    setup: SetupFlags,
}

/// An outcome that a user may let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Allowed {
    /// Less than 5% of the room stays free
    Tight,
    /// Nothing says whether it fits
    NotKnown,
}

impl Allowed {
    const fn outcome(self) -> Outcome {
        match self {
            Self::Tight => Outcome::Tight,
            Self::NotKnown => Outcome::NotKnown,
        }
    }
}

/// Format of the result of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    /// A line for each run
    Text,
    /// One JSON document (`vramscope schema check`)
    Json,
    /// A report of tests, which most systems of continuous integration show
    Junit,
    /// SARIF 2.1.0, whose findings hosts of code show beside the file
    Sarif,
    /// A table for a comment on a change
    Markdown,
}

const EXAMPLES: &str = "  vramscope check train.yaml --gpu 4090
  vramscope check of_a.yaml of_b.sh --gpu H100 --budget 90% --format junit
  vramscope check train.yaml --data train.jsonl --gpu 4090
  vramscope check run.vram.gz --gpu H200
  vramscope check '{\"model\": \"gpt2\", \"batch\": 8}' --limit-gib 23
  vramscope check --gpu 4090 -- swift sft --model qwen2.5-0.5b --max_length 512
  vramscope check train.yaml --gpu H100 --base main --format markdown

Exit codes: 0 fits, 5 tight, 3 does not fit or takes more than the budget, 4 not known, 2 bad input. Of several runs the
worst counts: bad input, does not fit, not known, tight.";

impl Check {
    /// Judges all runs and writes the result.
    ///
    /// # Errors
    /// If no room is named, standard output cannot be written, or as the exit code says.
    pub fn run(self) -> Result<(), Failure> {
        let target = self.room.target()?.ok_or_else(no_room)?;
        let base = self.base.as_deref().map(Base::of).transpose()?;
        let names = match self.command.is_empty() {
            true => self.runs.clone(),
            false => vec![self.command_line()?],
        };
        let mut runs = Vec::new();
        for name in &names {
            let given = match self.command.is_empty() {
                true => Run::of(name),
                false => Ok(Run::Launch(Source::Command(name.clone()))),
            };
            let judged = given.and_then(|run| self.judge(run));
            let before = base.as_ref().map(|base| self.judge_before(base, name));
            runs.push(CheckedRun::of(name, (judged, before), (&target, self.budget)));
        }
        let allowed: Vec<Outcome> = self.allow.iter().map(|allowed| allowed.outcome()).collect();
        let document = CheckDocument::of((&target, self.budget), &allowed, runs);
        match self.format {
            CheckFormat::Text => output::print(&reports::check_text(&document, terminal::width())),
            CheckFormat::Json => output::print_json(&document),
            CheckFormat::Junit => output::print_exactly(&reports::junit(&document)),
            CheckFormat::Sarif => output::print_json(&reports::sarif(&document)),
            CheckFormat::Markdown => output::print_exactly(&reports::markdown(&document)),
        }?;
        match document.exit_code {
            0 => Ok(()),
            code => Err(Failure::Verdict(code)),
        }
    }

    /// The command behind `--`, as a shell reads it.
    fn command_line(&self) -> Result<String, Failure> {
        let words = self.command.iter().map(String::as_str);
        shlex::try_join(words).map_err(|_| Failure::Input("a word of the command holds a zero byte".into()))
    }

    /// Judges a run as the base has it; `None` if the base has no such file.
    fn judge_before(&self, base: &Base, name: &str) -> Option<Result<Judged, Failure>> {
        match base.file(name) {
            Ok(Some(path)) => {
                let path = path.display().to_string();
                let judged = Run::of(&path).and_then(|run| self.judge(run));
                Some(judged.map_err(|failure| base.named(failure)))
            }
            Ok(None) => None,
            Err(failure) => Some(Err(failure)),
        }
    }
}

fn no_room() -> Failure {
    Failure::Input("check needs what the run has to fit: name a card with --gpu, or --limit-gib".into())
}
