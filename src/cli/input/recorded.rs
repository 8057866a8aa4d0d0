//! Recordings of training steps, and the sizes requested from them.

use std::io::BufReader;

use clap::Args;
use vramscope_engine::recording::{self, Opened, OptimizerForm, Overrides, RecordingError};
use vramscope_engine::tape::Gpu;

use super::count;
use super::source::Source;
use crate::failure::Failure;

/// Settings that replace those of a recording.
#[derive(Debug, Default, Args)]
pub struct OverrideFlags {
    /// Replays the recording as if PYTORCH_CUDA_ALLOC_CONF set expandable_segments so [default: as recorded]
    #[arg(
        long,
        value_name = "BOOL",
        requires = "recording",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true
    )]
    expandable_segments: Option<bool>,
    /// Form of the optimizer's update, if the recording's is AdamW or Adam: foreach, fused or for-loop [default: as
    /// recorded]
    #[arg(long, value_name = "FORM", requires = "recording", value_parser = form)]
    optimizer_form: Option<OptimizerForm>,
}

/// Parses the form of an optimizer.
fn form(text: &str) -> Result<OptimizerForm, String> {
    let names = || OptimizerForm::ALL.map(OptimizerForm::name).join(", ");
    OptimizerForm::named(text).ok_or_else(|| format!("give one of {}", names()))
}

impl OverrideFlags {
    /// Returns the settings that were given.
    pub const fn of(&self) -> Overrides {
        Overrides {
            expandable_segments: self.expandable_segments,
            optimizer: self.optimizer_form,
        }
    }
}

/// Sizes by name, such as `batch=4,seq=1024`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<(String, u64)>);

impl Sizes {
    /// Parses a command-line value.
    ///
    /// # Errors
    /// If the value names no sizes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let one = |words: &str| {
            let (name, value) = words.split_once('=')?;
            let name = name.trim();
            (!name.is_empty()).then_some((name.to_owned(), count::size(value).ok().filter(|value| *value > 0)?))
        };
        let sizes: Option<Vec<_>> = text.split(',').map(one).collect();
        sizes
            .map(Self)
            .ok_or_else(|| "give sizes as NAME=N,NAME=N, such as batch=4,seq=1024".into())
    }
}

/// Returns the failure for a recording's error, with the name of the file.
pub fn failed(source: &Source, error: &RecordingError) -> Failure {
    Failure::Input(format!("{source}: {error}"))
}

/// Opens a file of the recorder, for a card with these properties if one is given.
///
/// # Errors
/// If the file cannot be read or is no recording.
pub fn open(source: &Source, gpu: Option<Gpu>) -> Result<Opened, Failure> {
    let (input, _) = source.unpacked()?;
    recording::open(BufReader::new(input), gpu).map_err(|error| failed(source, &error))
}

/// Returns the failure for sizes requested of a recording of one run.
pub fn holds_one(source: &Source) -> Failure {
    Failure::Input(format!(
        "{source}: the recording holds its own setup, at its own sizes; leave the flags of the training setup out, record \
         again with other arguments of the script, or all sizes with `vramscope record --vary`"
    ))
}
