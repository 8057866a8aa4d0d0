//! Command `dry-run`: runs a training command without a GPU, and shows what it takes.

mod environment;
#[cfg(feature = "server")]
mod open;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use vramscope_engine::device::Device;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;
use vramscope_time::Feed;

use crate::commands::estimate::recorded::{compare, judged, show_one};
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::room::RoomFlags;
use crate::input::source::Source;
use crate::input::time_flags::TimeFlags;
use crate::outcome::Outcome;
use crate::output::{self, Format};
use crate::recorder;

/// Run a training command without a GPU, and show what its steps take
///
/// Put it before the command that trains, or give the file that starts it: the real tool runs with the real file, in your
/// Python, on a card that is not there. No GPU, no weights, no network; nothing is written, logged or sent. Launchers
/// (torchrun, accelerate, deepspeed) are understood, and one of their ranks is run. The loader's batches are walked ahead,
/// and the heaviest are recorded beside a typical one.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope dry-run [OPTIONS] <COMMAND> [ITS ARGUMENTS]\n       vramscope dry-run [OPTIONS] <FILE.sh | FILE.py | FILE.ipynb | FILE.yaml>",
    after_help = examples(EXAMPLES),
)]
pub struct DryRun {
    /// The Python to run, or the folder of its environment [default: the one that the command runs in, else the active
    /// environment, else python3 of PATH]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Runs in an environment of these packages, which is made and kept: `ms-swift==4.6`, `trl`, a requirements.txt; several
    /// with commas between them
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',')]
    with: Vec<String>,
    /// Runs once more with these packages in place of those of --with, or of those at hand, and shows where the memory differs
    #[arg(long, value_name = "PACKAGES", value_delimiter = ',', conflicts_with_all = ["max", "vary", "out"])]
    against: Vec<String>,
    #[command(flatten)]
    room: RoomFlags,
    /// Steps to record [default: the first, and those of the heaviest batches]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Micro-batches that the loader is walked ahead [default: 200, or 2 where all samples are made up alike]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batches: Option<u32>,
    /// Samples in place of the command's data: `made-up:tokens=2048,images=1x1280x720,labels=0.3` (text tokens, pixels, share
    /// of the text that is the answer; samples=128, columns=question+answer), or `made-up:lengths=FILE`
    ///
    /// As for `estimate`, read=4,decode=9,workers=8 says how long the run's own data takes to come.
    #[arg(long, value_name = "SAMPLES|STAGES", value_parser = Data::read)]
    data: Option<Data>,
    /// Ask nothing of the network for a model that the command names by its id
    #[arg(long)]
    offline: bool,
    /// Ranks, where the command starts none itself: records one of so many, as torchrun starts it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    world: u32,
    /// The rank to record, of those that the launcher or --world starts
    #[arg(long, value_name = "R", default_value_t = 0)]
    rank: u32,
    /// Cards that this machine would have [default: those that CUDA_VISIBLE_DEVICES names, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    cards: Option<u32>,
    /// Which of a script's commands to run, where several may train
    #[arg(long, value_name = "K")]
    run: Option<u32>,
    /// Finds the largest value with which the run still fits --gpu or --limit-gib, by dry runs: `batch`, `length`, or a flag
    /// of the command
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, conflicts_with = "out")]
    max: Option<String>,
    /// Dry-runs once for each value of a size or a flag of the command, and lists the peaks: `batch:1,2,4`,
    /// `--my-flag:1,2,4`, `batch=--my-batch:1,2,4`
    #[arg(long, value_name = "SIZE:VALUES", allow_hyphen_values = true, value_parser = values, conflicts_with_all = ["max", "out"])]
    vary: Option<Vary>,
    /// Packages of the machine that trains: a list, or a file (`pip freeze`, uv.lock, poetry.lock). What is missing here is
    /// stood in for or named
    #[arg(long, value_name = "LIST|FILE")]
    packages: Option<PathBuf>,
    /// Shows the steps that were recorded before the command failed
    #[arg(long)]
    keep_going: bool,
    /// Keeps the recording, which `vramscope estimate --recording` and the page show again
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[cfg(feature = "server")]
    #[command(flatten)]
    open: open::Open,
    /// Output format [default: text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Shows what the command itself says, as it comes
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    time: TimeFlags,
    /// The command that trains, with its own arguments, or the file that starts it
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    words: Vec<OsString>,
}

const EXAMPLES: &str = "  vramscope dry-run swift sft --model Qwen/Qwen3-VL-2B-Instruct --dataset d.json
  vramscope dry-run --gpu 4090 llamafactory-cli train qwen2_5vl_lora_sft.yaml
  vramscope dry-run trl sft --config sft.yaml
  vramscope dry-run torchrun --nproc_per_node 8 train.py --fsdp full_shard
  vramscope dry-run accelerate launch --config_file fsdp.yaml train.py
  vramscope dry-run --json train.sh
  vramscope dry-run --gpu 4090 --max batch swift sft --config sft.yaml
  vramscope dry-run --open finetune.ipynb
  vramscope dry-run --with ms-swift==4.6 swift sft --config sft.yaml
  vramscope dry-run --with ms-swift --against ms-swift==4.4.2 swift sft sft.yaml
  vramscope dry-run --vary batch:1,2,4 trl sft --config sft.yaml
  vramscope dry-run --data made-up:tokens=2048,images=1x640x480 swift sft s.yaml

Exit codes with --gpu or --limit-gib: 0 fits, 5 tight, 3 does not, 4 not known; 1 the command failed, 2 bad input.";

/// The card where none is named.
const DEFAULT_CARD: &str = "H100 SXM";

/// What `--data` says: samples to make up, which the recorder reads, or the times of the run's own.
#[derive(Debug, Clone)]
enum Data {
    Samples(String),
    Feed(Feed),
}

/// Returns this program's path as it stands now: Linux names a program that an upgrade replaced meanwhile
/// "… (deleted)", and an environment may take a quarter of an hour to make.
fn own_path() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let replaced = path
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"))
        .map(PathBuf::from)
        .filter(|replaced| replaced.exists() && !path.exists());
    Ok(replaced.unwrap_or(path))
}

impl Data {
    fn read(text: &str) -> Result<Self, String> {
        match text.contains(':') || !text.contains('=') {
            true => Ok(Self::Samples(text.to_owned())),
            false => Feed::read(text).map(Self::Feed),
        }
    }
}

/// Values of a size that are tried one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vary {
    size: String,
    values: Vec<u64>,
}

/// Parses `batch:1,2,4`, `--flag:1,2,4` or `batch=--flag:1,2,4`, whose flag counts.
fn values(text: &str) -> Result<Vary, String> {
    let (size, values) = text.rsplit_once(':').unwrap_or((text, ""));
    let size = size.split_once('=').map_or(size, |(_, flag)| flag);
    let values: Option<Vec<u64>> = values.split(',').map(|value| value.trim().parse().ok()).collect();
    match values.filter(|_| !size.is_empty()) {
        Some(values) => Ok(Vary {
            size: size.to_owned(),
            values,
        }),
        None => Err("give a size or a flag with whole numbers, such as batch:1,2,4 or --my-flag:1,2,4".into()),
    }
}

/// Dry runs after which a search ends, wherever it is.
const MOST_TRIES: usize = 24;

/// A dry run of a search.
#[derive(Serialize)]
struct Try {
    value: u64,
    verdict: &'static str,
    peak_allocated: Bytes,
    peak_reserved: Bytes,
}

impl Try {
    /// A line for a person.
    fn text(&self) -> String {
        let (peak, reserved) = (gib(self.peak_allocated), gib(self.peak_reserved));
        format!(
            "{:>8}  {:<9}  {peak:>10}  reserved {reserved:>10}\n",
            self.value, self.verdict
        )
    }
}

/// The largest value of a size.
#[derive(Serialize)]
struct Largest<'a> {
    size: &'a str,
    /// The largest with which the run fits; none if the smallest does not.
    max: Option<u64>,
    /// The smallest that was tried with which it does not.
    beyond: Option<u64>,
    tries: &'a [Try],
}

impl Largest<'_> {
    /// The answer in words.
    fn text(&self) -> String {
        let mut out: String = self.tries.iter().map(Try::text).collect();
        out += &match (self.max, self.beyond) {
            (Some(max), Some(beyond)) => format!("Largest {}: {max}; {beyond} runs out of memory.\n", self.size),
            (Some(max), None) => format!("Largest {}: {max} or more; the data makes no larger step.\n", self.size),
            (None, _) => format!("No {} fits: the smallest runs out of memory.\n", self.size),
        };
        out
    }
}

impl DryRun {
    /// Runs the command and shows its steps.
    ///
    /// # Errors
    /// When the command is none, or fails; and as the exit code says, when the run does not fit a named card.
    pub fn run(mut self) -> Result<(), Failure> {
        if let Some(Data::Feed(feed)) = &self.data {
            self.time.data = Some(feed.clone());
        }
        let target = self.room.target()?;
        #[cfg(feature = "server")]
        let page = self.open.page()?;
        let python = match &self.with[..] {
            [] => environment::at_hand(self.python.as_deref(), &self.words[0])?,
            specs => environment::with_packages(self.python.as_deref(), specs)?,
        };
        let scratch = tempfile::Builder::new().prefix("vramscope-dry-run-").tempdir()?;
        let out = match &self.out {
            Some(path) => std::path::absolute(path)?,
            None => scratch.path().join("run.vram.gz"),
        };
        if let Some(size) = &self.max {
            if target.is_none() {
                return Err(Failure::Input(
                    "--max needs what the run has to fit: name a card with --gpu, or --limit-gib".into(),
                ));
            }
            return self.largest(&python, size, scratch.path());
        }
        if let Some(vary) = &self.vary {
            return self.each(&python, vary, scratch.path());
        }
        self.record(&python, &out, None)?;
        let format = match (self.json, self.format) {
            (true, _) => Format::Json,
            (false, format) => format.unwrap_or(Format::Text),
        };
        if !self.against.is_empty() {
            return self.beside_another(out, scratch.path(), format);
        }
        let verdict = show_one(&Source::File(out.clone()), (&self.room, &self.time), format)?;
        #[cfg(feature = "server")]
        if let Some(page) = page {
            open::show(page, &out)?;
        }
        if target.is_none() {
            return Ok(());
        }
        match Outcome::of(verdict).exit_code() {
            0 => Ok(()),
            code => Err(Failure::Verdict(code)),
        }
    }

    /// Runs the command in another environment too, and shows both recordings beside each other.
    fn beside_another(&self, out: PathBuf, scratch: &Path, format: Format) -> Result<(), Failure> {
        let specs = environment::replaced(&self.with, &self.against);
        let other = environment::with_packages(self.python.as_deref(), &specs)?;
        let path = scratch.join("against.vram.gz");
        self.record(&other, &path, None)?;
        let name = |specs: &[String]| match specs {
            [] => "the packages at hand".to_owned(),
            specs => specs.join(" "),
        };
        let names = [name(&self.with), name(&specs)];
        let both = [Source::File(out), Source::File(path)];
        compare(&names, both, (&self.room, &self.time), format)
    }

    /// Runs the recorder on the command; what it says goes to the terminal as it comes.
    fn record(&self, python: &Path, out: &Path, size: Option<(&str, u64)>) -> Result<(), Failure> {
        let mut command = Command::new(python);
        command.arg(recorder::folder()?).arg("dry-run");
        command.arg("--out").arg(out).args(["--gpu", &self.card()?]);
        let numbers = [
            ("--steps", self.steps),
            ("--batches", self.batches),
            ("--world", Some(self.world)),
            ("--rank", Some(self.rank)),
            ("--cards", self.cards),
            ("--run", self.run),
        ];
        for (flag, number) in numbers {
            command.args(number.iter().flat_map(|number| [flag.to_owned(), number.to_string()]));
        }
        command.args(
            self.packages
                .iter()
                .flat_map(|path| [OsString::from("--packages"), path.into()]),
        );
        if let Some(Data::Samples(samples)) = &self.data {
            command.args(["--data", samples]);
        }
        command.args(self.offline.then_some("--offline"));
        // It asks this program for the models that the command names by their ids.
        command.env("VRAMSCOPE_PROGRAM", own_path()?);
        if let Some((name, value)) = size {
            command.args(["--set".into(), format!("{name}={value}")]);
        }
        command.args(self.keep_going.then_some("--keep-going"));
        command.args(self.verbose.then_some("--verbose"));
        command.arg("--").args(&self.words);
        // Nothing but the result goes to standard output; nobody is there to answer a question.
        command.stdin(Stdio::null());
        // Ctrl-C reaches the recorder too, which takes away what it has made; this program waits for it.
        let _ = ctrlc::set_handler(|| ());
        let failed = |error| Failure::Broken(format!("{} does not start: {error}", python.display()));
        let status = command.status().map_err(failed)?;
        match status.code() {
            Some(0) => Ok(()),
            Some(code) => Err(Failure::Told(u8::try_from(code).unwrap_or(1))),
            None => Err(Failure::Broken(format!(
                "the dry run was ended from outside ({status}); if the system ran out of memory, close other programs"
            ))),
        }
    }

    /// Dry-runs with each value of a size, and lists what came out.
    fn each(&self, python: &Path, vary: &Vary, scratch: &Path) -> Result<(), Failure> {
        let mut tries = Vec::new();
        for &value in &vary.values {
            let out = scratch.join(format!("{value}.vram.gz"));
            self.record(python, &out, Some((&vary.size, value)))?;
            let (fit, report) = judged(&Source::File(out), (&self.room, &self.time))?;
            let verdict = fit.map(|(_, fit)| fit.verdict);
            tries.push(Try {
                value,
                verdict: verdict.map_or("not known", Verdict::name),
                peak_allocated: report.peak_allocated,
                peak_reserved: report.peak_reserved,
            });
        }
        match self.json || matches!(self.format, Some(Format::Json | Format::Jsonl)) {
            true => output::print_json(&tries),
            false => output::print(&tries.iter().map(Try::text).collect::<String>()),
        }
    }

    /// Searches for the largest value of a size with which the run fits: doubles it, then halves the gap.
    fn largest(&self, python: &Path, name: &str, scratch: &Path) -> Result<(), Failure> {
        let mut tries: Vec<Try> = Vec::new();
        // Lengths between multiples of 64 make no difference that anyone asks for.
        let grain = if name == "length" { 64 } else { 1 };
        let (mut most, mut beyond) = (None, None);
        let mut next = grain;
        while tries.len() < MOST_TRIES {
            let out = scratch.join(format!("{next}.vram.gz"));
            self.record(python, &out, Some((name, next)))?;
            let (fit, report) = judged(&Source::File(out), (&self.room, &self.time))?;
            let verdict = fit.map(|(_, fit)| fit.verdict);
            let fits = verdict.is_some_and(|verdict| verdict != Verdict::Oom);
            let words = verdict.map_or("not known", Verdict::name);
            anstream::eprintln!(
                "vramscope dry-run: {name} {next}: {words}, {}",
                gib(report.peak_allocated)
            );
            let same = tries
                .iter()
                .any(|one| one.peak_allocated == report.peak_allocated && one.value < next);
            tries.push(Try {
                value: next,
                verdict: words,
                peak_allocated: report.peak_allocated,
                peak_reserved: report.peak_reserved,
            });
            match fits {
                // The data holds no more: a larger value is the same run.
                true if same => {
                    most = Some(next);
                    break;
                }
                true => most = Some(next),
                false => beyond = Some(next),
            }
            next = match (most, beyond) {
                (Some(most), None) => most * 2,
                (most, Some(beyond)) => (most.unwrap_or(0) + beyond) / 2 / grain * grain,
                (None, None) => break,
            };
            if next <= most.unwrap_or(0) || Some(next) == beyond {
                break;
            }
        }
        let answer = Largest {
            size: name,
            max: most,
            beyond,
            tries: &tries,
        };
        match self.json || matches!(self.format, Some(Format::Json | Format::Jsonl)) {
            true => output::print_json(&answer)?,
            false => output::print(&answer.text())?,
        }
        most.map(|_| ()).ok_or(Failure::Verdict(Outcome::Oom.exit_code()))
    }

    /// The card to emulate, as JSON: the named one, else an H100.
    fn card(&self) -> Result<String, Failure> {
        let card = match self.room.names_card() {
            true => self.room.card_or_reference()?,
            false => Device::by_name(DEFAULT_CARD).map_err(Failure::broken)?,
        };
        let (Some(capability), Some(sms)) = (card.compute_capability, card.multiprocessors) else {
            return Err(Failure::Input(format!(
                "{} is not driven by CUDA, and a dry run emulates cards that are; name one of NVIDIA's (`vramscope gpus`)",
                card.name
            )));
        };
        let l2 = card.l2().map_or(0, |bytes| bytes.get());
        let shape = json!({
            "name": card.name,
            "capability": [capability.major, capability.minor],
            "memory": card.driver_total().unwrap_or_else(|| card.memory()).get(),
            "sms": sms,
            "l2": l2,
        });
        Ok(shape.to_string())
    }
}
