//! Reads the files that start a run, for `estimate --launch`.

use clap::Args;
use vramscope_engine::Case;
use vramscope_launch::{Launch, Resolved, Source as LaunchSource, read};

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
        if self.launch.is_empty() {
            return Ok(None);
        }
        let all = self
            .launch
            .iter()
            .map(|source| Ok((source.to_string(), source.read_text()?)));
        let all = all.collect::<Result<Vec<_>, Failure>>()?;
        let sources: Vec<LaunchSource<'_>> = all.iter().map(|(name, text)| LaunchSource { name, text }).collect();
        read(&sources).map(Some).map_err(Failure::input)
    }

    /// Returns the case of a launch, resolved for its model, with the name of a model only if it has one.
    ///
    /// # Errors
    /// If something in it is not simulated and may not be ignored, or the case is none that the engine takes.
    pub fn case(&self, resolved: &Resolved) -> Result<Case, Failure> {
        let open = &resolved.not_simulated;
        if !open.is_empty() && !self.ignore_not_simulated {
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
}
