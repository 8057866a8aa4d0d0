//! Figures of a run as the page shows them: plain data. The tensors stay with the host.

use serde::{Deserialize, Serialize};
use vramscope_engine::Report;
use vramscope_engine::device::Device;
use vramscope_engine::model::Takes;
use vramscope_engine::report::{
    BreakdownNode, Difference, Instant, LiveTensor, Part, Phase, SegmentLayout, StepBytes, Timeline, Warning,
};
use vramscope_engine::simulate::Inference;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room, Verdict};
use vramscope_launch::{Grade, LeftOut};
use vramscope_plan::{Now, Refusal};

use super::run::Ran;
use crate::state::Draft;

/// Maximum number of columns; more would not be visible on any screen.
const COLUMNS: usize = 900;

/// Number of largest tensors that fit beside the curve.
const LARGEST: usize = 7;

/// A simulated run compared with a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Identifies the run in questions about it.
    pub id: u32,
    /// Peaks and other single figures.
    pub figures: Figures,
    /// Memory of a model that does not train; `None` for training.
    pub pass: Option<Inference>,
    /// Inputs of the model, and the sizes that the setup gives them.
    pub inputs: Inputs,
    /// The card, or the reason why there is none and hence no verdict.
    pub card: Result<Card, String>,
    /// Memory of the run by part, including memory outside the allocator.
    pub parts: Vec<(Part, Bytes)>,
    /// Warnings, each with a remedy.
    pub warnings: Vec<Warning>,
}

/// Parts of a run that take longer to send and draw than its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// Memory live at the steady peak: component → kind → layer → tensor.
    pub breakdown: BreakdownNode,
    /// The steady step as a curve.
    pub curve: Curve,
    /// Largest tensors at the peak.
    pub at_peak: Live,
}

/// Figures of a run that are shown when setups are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Peaks and other single figures.
    pub figures: Figures,
    /// The card, or the reason why there is none and hence no verdict.
    pub card: Result<Card, String>,
    /// Memory of the run by part, including memory outside the allocator.
    pub parts: Vec<(Part, Bytes)>,
}

/// Two setups and the difference between their memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Figures of each, or the reason for having none.
    pub sides: [Result<Summary, Refusal>; 2],
    /// The difference, if both run.
    pub difference: Option<Difference>,
}

/// Figures of a run, each equal to the field of the same name in the engine's [`Report`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Parameters of the model (elements).
    pub params: u64,
    /// Parameters that train (elements).
    pub trainable: u64,
    /// Allocated bytes after the model is created.
    pub after_model: Bytes,
    /// The first step.
    pub first: StepBytes,
    /// Every later step.
    pub steady: StepBytes,
    /// Highest allocated bytes of the steady step.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes of the run.
    pub peak_reserved: Bytes,
    /// The segment layout that reserves least, if it makes a difference.
    pub least_reserved: Option<(SegmentLayout, Bytes)>,
    /// Reserved bytes that no tensor holds at the steady peak.
    pub fragmentation: Bytes,
    /// The phase that holds the steady peak.
    pub peak_phase: Phase,
}

/// Inputs of a model, and the sizes that the setup gives them; `None` where the model has no such input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Settings that the model takes.
    pub takes: Takes,
    /// Sequence length: the one entered, or else the model's own (0 of a recorded step).
    pub seq: u64,
    /// Positions per micro-batch.
    pub positions: Option<u64>,
    /// Positions of a sample taken up by its images.
    pub image_tokens: Option<u64>,
    /// Bytes of the head's output.
    pub logits: Option<Bytes>,
}

/// A card and the fit of the run on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Common name.
    pub name: String,
    /// Bytes that the allocator may reserve, if the user limits them.
    pub limit: Option<Bytes>,
    /// Number of such cards that share the run, of which the fit is one's.
    pub gpus: u64,
    /// Fit of the run.
    pub fit: Fit,
    /// What the fit leaves out of the run that was given: with something left out, it is no promise.
    pub left_out: Vec<LeftOut>,
}

impl Card {
    /// Compares the report of one of `gpus` GPUs with a device, or with the part of it that the allocator may reserve.
    pub fn of((device, room): (&'static Device, Room<'static>), report: &Report, gpus: u64) -> Self {
        Self {
            name: device.name.to_owned(),
            limit: match room {
                Room::Allocator(limit) => Some(limit),
                Room::Card(_) | Room::BesideVllm(..) => None,
            },
            gpus,
            fit: Fit::of_each(report, room, gpus),
            left_out: Vec::new(),
        }
    }

    /// Class of a verdict's colour on this card: green is for whole runs and for those that need at most as much, red for
    /// those that need at least as much too.
    pub fn colour(&self, verdict: Verdict) -> &'static str {
        match Grade::of(&self.left_out).settles(verdict) {
            Some(Verdict::Fits) => "verdict-fits",
            Some(Verdict::Tight) => "verdict-tight",
            Some(Verdict::Oom) => "verdict-oom",
            None => "verdict-partial",
        }
    }

    /// The same with what the entries leave out of the run.
    pub fn leaving_out(self, entries: &Draft) -> Self {
        let left_out = entries.left_out();
        Self { left_out, ..self }
    }
}

/// Live bytes over one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// Number of events.
    pub len: Instant,
    /// Live bytes by kind at selected instants, in time order; at most 900, with every peak kept.
    pub columns: Vec<(Instant, [Bytes; Kind::COUNT])>,
    /// Start of each phase, in order.
    pub phases: Vec<(Phase, Instant)>,
    /// The instant of the highest total.
    pub peak: Instant,
}

/// Tensors live at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Instant of the timeline.
    pub instant: Instant,
    /// Number of tensors.
    pub count: usize,
    /// Their total bytes.
    pub total: Bytes,
    /// The largest tensors, in descending order.
    pub largest: Vec<LiveTensor>,
}

impl RunView {
    /// Id of a run that no host keeps: questions about it get no answer.
    pub const NOT_KEPT: u32 = 0;

    /// Prepares a report for the page.
    pub fn of(id: u32, ran: &Ran, inputs: Inputs, card: Result<Card, String>) -> Self {
        let report = &ran.report;
        let Summary { figures, card, parts } = Summary::of(report, card);
        Self {
            id,
            figures,
            pass: ran.pass,
            inputs,
            card,
            parts,
            warnings: report.warnings.clone(),
        }
    }
}

impl Details {
    /// Prepares the details of a report.
    pub fn of(report: &Report) -> Self {
        Self {
            breakdown: (*report.breakdown).clone(),
            curve: Curve::of(&report.timeline),
            at_peak: Live::of(&report.timeline, report.timeline.peak_instant()),
        }
    }
}

impl Summary {
    /// Bytes that the run needs of the card or, without a card, of its allocator.
    pub fn needed(&self) -> Bytes {
        self.card
            .as_ref()
            .map_or(self.figures.peak_reserved, |card| card.fit.needed)
    }

    /// Compares a report with a card.
    pub fn of(report: &Report, card: Result<Card, String>) -> Self {
        let outside = card.as_ref().map_or(&[][..], |card| &card.fit.outside);
        Self {
            figures: Figures::of(report),
            parts: report.footprint(outside),
            card,
        }
    }
}

impl From<&RunView> for Summary {
    fn from(run: &RunView) -> Self {
        Self {
            figures: run.figures.clone(),
            card: run.card.clone(),
            parts: run.parts.clone(),
        }
    }
}

impl Figures {
    /// Figures that changes are compared with.
    pub const fn now(&self) -> Now {
        Now {
            reserved: self.peak_reserved,
            steady: self.steady,
        }
    }

    fn of(report: &Report) -> Self {
        Self {
            params: report.params,
            trainable: report.trainable,
            after_model: report.after_model,
            first: report.first,
            steady: report.steady,
            peak_allocated: report.peak_allocated,
            peak_reserved: report.peak_reserved,
            least_reserved: report.reserved_range().map(|[least, _]| (least.layout, least.bytes)),
            fragmentation: report.fragmentation,
            peak_phase: report.peak_phase,
        }
    }
}

impl Curve {
    fn of(timeline: &Timeline) -> Self {
        Self {
            len: timeline.len(),
            columns: timeline.columns(COLUMNS),
            phases: timeline.phases().to_vec(),
            peak: timeline.peak_instant(),
        }
    }
}

impl Live {
    /// Lists the tensors live at an instant of a step.
    pub fn of(timeline: &Timeline, instant: Instant) -> Self {
        let (count, total) = timeline.total_at(instant);
        Self {
            instant,
            count,
            total,
            largest: timeline.largest_at(instant, LARGEST),
        }
    }
}
