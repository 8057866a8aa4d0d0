//! Result of reading a launch: the setup that is simulated, and the assumptions of it.

use serde_json::{Map, Value};

use crate::images::ImageRules;
use crate::left_out::{Grade, LeftOut};
use crate::remark::{Note, Remark};

/// The setup that a launch asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resolved {
    /// The setup as a case, which [`vramscope_engine::Case`] reads; it holds the model's name if a line gives one.
    pub case: Map<String, Value>,
    /// Assumptions of the case.
    pub assumed: Vec<Remark>,
    /// Settings that have to be given for an estimate, or make it sharper.
    pub missing: Vec<Remark>,
    /// Everything that changes memory and is not simulated, or not known: lines first.
    pub not_simulated: Vec<Remark>,
    /// The same, of lines too, as what it is to an estimate of the case.
    pub not_this_run: Vec<LeftOut>,
    /// What is done with images whose sizes are given.
    pub images: ImageRules,
    /// Share of the card's memory that vLLM takes for itself in the training process.
    pub vllm_share: Option<f64>,
    /// GPUs over which one process spreads the layers; the case is of one that holds all of them.
    pub layers_over: Option<u64>,
}

impl Resolved {
    /// A setting of the case that is a whole number.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.case.get(key)?.as_u64()
    }

    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.case.insert(key.to_owned(), value.into());
    }

    /// Drops what is said of the length of samples, which something beside the launch tells.
    pub fn forget_lengths(&mut self) {
        let is_of_lengths =
            |remark: &Remark| matches!(remark.note, Note::LongestSamples | Note::AllPositions | Note::NoLength);
        self.assumed.retain(|remark| !is_of_lengths(remark));
        self.missing.retain(|remark| !is_of_lengths(remark));
    }

    /// What an estimate of the case is of the run's own figure.
    pub fn grade(&self) -> Grade {
        Grade::of(&self.not_this_run)
    }

    /// What of it makes the case another run, of which no estimate is of use.
    pub fn another_run(&self) -> impl Iterator<Item = &LeftOut> {
        self.not_this_run.iter().filter(|left| left.is_another_run())
    }
}
