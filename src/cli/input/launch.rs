//! Reads the files that start a run, for `estimate --launch`.

use clap::Args;
use vramscope_engine::Case;
use vramscope_hub::Place;
use vramscope_launch::{Launch, Resolved, Source as LaunchSource, read};

use super::hub::place_of;
use super::source::Source;
use crate::failure::Failure;

/// Flags of a run that a tool's file or command describes.
#[derive(Debug, Default, PartialEq, Args)]
pub struct LaunchFlags {
    /// A file that starts the run, or a script with its command, or - for standard input: of transformers, TRL,
    /// LLaMA-Factory, ms-swift or axolotl, with DeepSpeed's and accelerate's beside it (give --launch again). Flags
    /// override it
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    launch: Vec<Source>,
    /// A second run like --launch's, to hold beside it: prints where the memory of the two differs, tensor by tensor. Flags
    /// hold for both
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse, requires = "launch")]
    against: Vec<Source>,
    /// Estimate the rest of a --launch though some of what changes memory in it is not simulated
    #[arg(long, requires = "launch")]
    ignore_not_simulated: bool,
}

impl LaunchFlags {
    /// Reads the launch; `None` if none is given.
    ///
    /// # Errors
    /// If a file can't be read, or is of no known tool.
    pub fn read(&self) -> Result<Option<Launch>, Failure> {
        read_all(&self.launch)
    }

    /// Reads the run that is held beside it; `None` if none is given.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_against(&self) -> Result<Option<Launch>, Failure> {
        read_all(&self.against)
    }

    /// Returns where the names in a launch stand.
    pub fn place(&self, launch: &Launch) -> Place {
        place_of(launch, &self.launch)
    }

    /// Returns where the names in the run that is held beside it stand.
    pub fn place_against(&self, launch: &Launch) -> Place {
        place_of(launch, &self.against)
    }

    /// Returns the names of the files of both runs.
    pub fn names(&self) -> [String; 2] {
        [&self.launch, &self.against].map(|all| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            names.join(", ")
        })
    }

    /// Returns the case of a launch, resolved for its model, with the name of a model only if it has one.
    ///
    /// # Errors
    /// If something in it is not simulated and may not be ignored, or the case is none that the engine takes.
    pub fn case(&self, resolved: &Resolved) -> Result<Case, Failure> {
        case_of(resolved, self.ignore_not_simulated)
    }
}

/// Flag for the run that an error belongs to.
#[derive(Debug, Default, Args)]
pub struct LaunchOfError {
    /// A file that started the run, as `estimate --launch` takes it (give it again for several); what is not simulated in
    /// it is noted
    #[arg(long, value_name = "FILE", value_parser = Source::parse, conflicts_with = "recording")]
    launch: Vec<Source>,
}

impl LaunchOfError {
    /// Reads the launch; `None` if none is given.
    ///
    /// # Errors
    /// If a file can't be read, or is of no known tool.
    pub fn read(&self) -> Result<Option<Launch>, Failure> {
        read_all(&self.launch)
    }

    /// Returns where the names in a launch stand.
    pub fn place(&self, launch: &Launch) -> Place {
        place_of(launch, &self.launch)
    }

    /// Returns the case of a launch, resolved for its model, and notes on standard error what is not simulated.
    ///
    /// # Errors
    /// If the case is none that the engine takes.
    pub fn case(resolved: &Resolved) -> Result<Case, Failure> {
        for remark in &resolved.not_simulated {
            anstream::eprintln!("note: not simulated: {remark}");
        }
        case_of(resolved, true)
    }
}

fn case_of(resolved: &Resolved, ignores: bool) -> Result<Case, Failure> {
    let open: Vec<String> = resolved.not_simulated.iter().map(ToString::to_string).collect();
    if !open.is_empty() && !ignores {
        return Err(Failure::Input(format!(
            "some of what this run is told changes its memory and is not simulated:\n  {}\nTake it out, or estimate \
             the rest with --ignore-not-simulated",
            open.join("\n  ")
        )));
    }
    let mut case = resolved.case.clone();
    case.entry("model").or_insert_with(|| "".into());
    let text = serde_json::Value::Object(case).to_string();
    let case = Case::from_json(&text).map_err(|e| Failure::Input(format!("the setup of --launch: {e}")))?;
    case.ok_or_else(|| Failure::Input("--launch says nothing of a setup".into()))
}

fn read_all(given: &[Source]) -> Result<Option<Launch>, Failure> {
    if given.is_empty() {
        return Ok(None);
    }
    let all = given.iter().map(|source| Ok((source.to_string(), source.read_text()?)));
    let all = all.collect::<Result<Vec<_>, Failure>>()?;
    let sources: Vec<LaunchSource<'_>> = all.iter().map(|(name, text)| LaunchSource { name, text }).collect();
    read(&sources).map(Some).map_err(Failure::input)
}
