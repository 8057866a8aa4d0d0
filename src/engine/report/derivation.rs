//! Derivations of the numbers that frontends show: a formula, its numbers, its source, and whether the result is
//! simulated, measured, stated or estimated.

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

/// A number that a frontend shows.
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
    /// One of the largest tensors live at an instant, by its rank among them.
    Tensor(Instant, usize),
    /// Highest reserved bytes.
    PeakReserved,
    /// Reserved bytes that no tensor holds at the peak.
    Reserve,
    /// Bytes outside PyTorch's allocator.
    OutsideTorch,
    /// One term of the bytes outside PyTorch's allocator.
    Outside(Outside),
    /// Memory that the run needs of the card.
    Needed,
    /// Memory of the card.
    Room,
    /// Memory that stays free.
    Spare,
    /// Memory that is missing.
    Short,
    /// Weights of the model.
    Params,
    /// Weights of one part of the model.
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
    /// Keys and values that a model which does not train keeps.
    Cache,
    /// Difference that a change of the setup makes to the reserved peak.
    Change,
    /// A number of the changed run.
    Changed(Box<Quantity>),
}

/// Unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Weights, positions: things without a unit.
    Count,
}

/// Evidence that a number rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// From simulating the step.
    Simulated,
    /// Counted from the model's configuration and the setup.
    Counted,
    /// Entered by the user.
    Entered,
    /// Stated by a vendor.
    Stated,
    /// Measured.
    Measured,
    /// Estimated, with a lowest and a highest value.
    Estimated([u64; 2]),
}

/// Source of a formula. Frontends have the words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The simulated step: eager PyTorch 2.11, transformers 5.17.
    Step,
    /// PyTorch's rounding of requests: `round_size` in `CUDACachingAllocator.cpp`.
    Blocks,
    /// PyTorch's sizes of segments: `get_allocation_size` in `CUDACachingAllocator.cpp`.
    Segments,
    /// The model's `config.json`, as transformers builds it.
    Config,
    /// The setup that the user entered.
    Setup,
    /// Sum of numbers shown in the tables of the page.
    Sum,
    /// A term outside PyTorch's allocator, and the measurement or document behind it.
    Outside(Outside, String),
    /// A document or a measurement, by its title.
    Document(String),
}

/// Derivation of a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derivation {
    /// The formula with its numbers; its value is the number that is shown.
    pub formula: Formula,
    /// Unit of the number.
    pub unit: Unit,
    /// Source of the formula.
    pub source: Source,
    /// Evidence for the number.
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

/// A run and its context, from which numbers are derived.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The model.
    pub model: &'a Model,
    /// The setup.
    pub setup: &'a Setup,
    /// Result of simulating the setup.
    pub report: &'a Report,
    /// The memory that the run is given and the verdict, if there is any.
    pub room: Option<(Room<'a>, &'a Fit)>,
}

impl Subject<'_> {
    /// Derives a number; `None` if this run has no such number.
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
            // These need two runs.
            Q::Change | Q::Changed(_) => None,
        }
    }
}
