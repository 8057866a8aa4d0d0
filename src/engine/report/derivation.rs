//! How each number that a face shows comes about: a formula, the numbers in it, where they come
//! from, and whether they are simulated, measured, stated or estimated.

mod beside;
mod card;
mod formula;
mod inputs;
mod outputs;
mod parameters;
mod peaks;
mod tensors;

use serde::{Deserialize, Serialize};

pub use formula::{Formula, Term};

use super::{Instant, Outside, Phase, Report};
use crate::tape::{Component, Kind};
use crate::verdict::{Fit, Room};
use crate::{Model, Setup};

/// A number that a face shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Highest allocated bytes of the steady step.
    PeakAllocated,
    /// Highest allocated bytes of one phase.
    PhasePeak(Phase),
    /// Live bytes of one kind at the peak.
    Kind(Kind),
    /// A line of the breakdown, by the names from the top.
    Row(Vec<String>),
    /// Live bytes at an instant.
    Live(Instant),
    /// One of the largest tensors live at an instant, by its place among them.
    Tensor(Instant, usize),
    /// Highest reserved bytes.
    PeakReserved,
    /// Reserved bytes that no tensor holds at the peak.
    Reserve,
    /// Bytes outside PyTorch's allocator.
    OutsideTorch,
    /// One term of them.
    Outside(Outside),
    /// What the run needs of the card.
    Needed,
    /// What the card has.
    Room,
    /// What stays free.
    Spare,
    /// What is missing.
    Short,
    /// Weights of the model.
    Params,
    /// Weights of one part of it.
    PartParams(Component),
    /// Weights that are trained.
    Trainable,
    /// Weights of one part that are trained.
    PartTrainable(Component),
    /// Positions that a micro-batch runs.
    Positions,
    /// Positions of one sample that its images take.
    ImageTokens,
    /// The head's output.
    Logits,
    /// Bytes of the model before anything runs.
    AfterModel,
    /// Bytes while a model that does not train holds its outputs.
    WithOutputs,
    /// Keys and values that it keeps.
    Cache,
    /// What a change of the setup does to the reserved peak.
    Change,
    /// A number of the changed run.
    Changed(Box<Quantity>),
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Weights, positions: things without a unit.
    Count,
}

/// How sure a number is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From simulating the step.
    Simulated,
    /// Counted from the model's configuration and the setup.
    Counted,
    /// As the person entered it.
    Entered,
    /// Stated by a vendor.
    Stated,
    /// Measured.
    Measured,
    /// Between two amounts.
    Estimated([u64; 2]),
}

/// Where a formula comes from. Faces have the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The simulated step: eager PyTorch 2.11, transformers 5.17.
    Step,
    /// How PyTorch's allocator rounds requests: `round_size` in `CUDACachingAllocator.cpp`.
    Blocks,
    /// What it asks of the driver: `get_allocation_size`, same file.
    Segments,
    /// The model's `config.json`, as transformers builds it.
    Config,
    /// What was entered.
    Setup,
    /// What the tables of this page say, added up.
    Sum,
    /// What is known of a term outside PyTorch's allocator, and where it was seen.
    Outside(Outside, String),
    /// A document or a measurement, by its title.
    Document(String),
}

/// How a number comes about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derivation {
    /// The formula with its numbers; its value is the number that is shown.
    pub formula: Formula,
    /// What it counts.
    pub unit: Unit,
    /// Where the formula comes from.
    pub source: Source,
    /// How sure it is.
    pub basis: Basis,
}

impl Derivation {
    fn bytes(formula: Formula, source: Source) -> Self {
        Self {
            formula,
            unit: Unit::Bytes,
            source,
            basis: Basis::Simulated,
        }
    }

    fn count(formula: Formula, source: Source) -> Self {
        Self {
            formula,
            unit: Unit::Count,
            source,
            basis: Basis::Counted,
        }
    }
}

/// A run whose numbers are asked about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a Model,
    /// The setup.
    pub setup: &'a Setup,
    /// What came of them.
    pub report: &'a Report,
    /// The memory that the run is given and how it fits, where there is any.
    pub room: Option<(Room<'a>, &'a Fit)>,
}

impl Subject<'_> {
    /// How a number comes about; `None` where this run has no such number.
    pub fn derivation(self, of: &Quantity) -> Option<Derivation> {
        use Quantity as Q;
        match of {
            Q::PeakAllocated => Some(self.peak_allocated()),
            Q::PhasePeak(phase) => self.phase_peak(*phase),
            Q::Kind(kind) => Some(self.kind(*kind)),
            Q::Row(path) => self.row(path),
            Q::Live(instant) => Some(self.live(*instant)),
            Q::Tensor(instant, place) => self.tensor(*instant, *place),
            Q::PeakReserved => Some(self.peak_reserved()),
            Q::Reserve => Some(self.reserve()),
            Q::OutsideTorch => self.outside(),
            Q::Outside(name) => self.outside_term(*name),
            Q::Needed => self.needed(),
            Q::Room => self.room(),
            Q::Spare => self.spare(),
            Q::Short => self.short(),
            Q::Params => Some(self.params()),
            Q::PartParams(part) => self.part_params(*part),
            Q::Trainable => Some(self.trainable()),
            Q::PartTrainable(part) => self.part_trainable(*part),
            Q::Positions => self.positions(),
            Q::ImageTokens => self.image_tokens(),
            Q::Logits => self.logits(),
            Q::AfterModel => self.after_model(),
            Q::WithOutputs => self.with_outputs(),
            Q::Cache => self.cache(),
            // These are of two runs.
            Q::Change | Q::Changed(_) => None,
        }
    }
}
