//! What the page shows of a run: plain data. Tensors stay with the host.

use serde::{Deserialize, Serialize};
use vramscope_engine::Report;
use vramscope_engine::report::{
    BreakdownNode, Instant, LiveTensor, Part, Phase, SegmentLayout, StepBytes, Timeline, Warning,
};
use vramscope_engine::simulate::Inference;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;
use vramscope_plan::Now;

use super::run::Ran;

/// More columns than this say no more on any screen.
const COLUMNS: usize = 900;

/// As many of the largest tensors as fit beside the curve.
const LARGEST: usize = 7;

/// A simulated run, held against a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Names the run in questions about it.
    pub id: u32,
    /// Its peaks and what else is one figure.
    pub figures: Figures,
    /// What a model holds that does not train; nothing of one that does.
    pub pass: Option<Inference>,
    /// What the setup makes the model run.
    pub inputs: Inputs,
    /// The card; or why there is none, and then no verdict.
    pub card: Result<Card, String>,
    /// What the run takes, part by part, outside the allocator too.
    pub parts: Vec<(Part, Bytes)>,
    /// What to know and what to do.
    pub warnings: Vec<Warning>,
}

/// What of a run takes longer to send and to draw than its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// What is live at the steady peak: component → kind → layer → tensor.
    pub breakdown: BreakdownNode,
    /// The steady step as a curve.
    pub curve: Curve,
    /// The largest tensors at the peak.
    pub at_peak: Live,
}

/// As much of a run as stands beside others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its peaks and what else is one figure.
    pub figures: Figures,
    /// The card; or why there is none, and then no verdict.
    pub card: Result<Card, String>,
    /// What the run takes, part by part, outside the allocator too.
    pub parts: Vec<(Part, Bytes)>,
}

/// The figures of a run; each is that of the engine's [`Report`] of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Parameters of the model (elements).
    pub params: u64,
    /// Parameters that are trained (elements).
    pub trainable: u64,
    /// Allocated bytes once the model is made.
    pub after_model: Bytes,
    /// The first step.
    pub first: StepBytes,
    /// Every later step.
    pub steady: StepBytes,
    /// Highest allocated bytes of the steady step.
    pub peak_allocated: Bytes,
    /// Highest reserved bytes of the run.
    pub peak_reserved: Bytes,
    /// The layout of segments that reserves least, where it matters.
    pub least_reserved: Option<(SegmentLayout, Bytes)>,
    /// Reserved bytes that no tensor holds at the steady peak.
    pub fragmentation: Bytes,
    /// The phase that holds the steady peak.
    pub peak_phase: Phase,
}

/// What the setup makes the model run; nothing where it has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Positions of a micro-batch.
    pub positions: Option<u64>,
    /// Positions of a sample that its images take.
    pub image_tokens: Option<u64>,
    /// The head's output.
    pub logits: Option<Bytes>,
}

/// A card and how the run fits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// What people call it.
    pub name: String,
    /// What the allocator may reserve of it, where that is less than there is.
    pub limit: Option<Bytes>,
    /// How the run fits.
    pub fit: Fit,
}

/// Live bytes over one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// Number of events.
    pub len: Instant,
    /// Instants with live bytes by kind, in time order; at most 900, and no peak is lost.
    pub columns: Vec<(Instant, [Bytes; Kind::COUNT])>,
    /// Where each phase begins, in order.
    pub phases: Vec<(Phase, Instant)>,
    /// The instant of the highest total.
    pub peak: Instant,
}

/// What lives at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// When.
    pub instant: Instant,
    /// How many tensors.
    pub count: usize,
    /// Their bytes.
    pub total: Bytes,
    /// The largest, largest first.
    pub largest: Vec<LiveTensor>,
}

impl Run {
    /// The number of a run that no host keeps: questions about it have no answer.
    pub const NOT_KEPT: u32 = 0;

    /// What the page shows of a report.
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
    /// Those of a report.
    pub fn of(report: &Report) -> Self {
        Self {
            breakdown: (*report.breakdown).clone(),
            curve: Curve::of(&report.timeline),
            at_peak: Live::of(&report.timeline, report.timeline.peak_instant()),
        }
    }
}

impl Summary {
    /// What the run takes from the card; without a card, from its allocator.
    pub fn needed(&self) -> Bytes {
        self.card
            .as_ref()
            .map_or(self.figures.peak_reserved, |card| card.fit.needed)
    }

    /// A report held against a card.
    pub fn of(report: &Report, card: Result<Card, String>) -> Self {
        let outside = card.as_ref().map_or(&[][..], |card| &card.fit.outside);
        Self {
            figures: Figures::of(report),
            parts: report.footprint(outside),
            card,
        }
    }
}

impl From<&Run> for Summary {
    fn from(run: &Run) -> Self {
        Self {
            figures: run.figures.clone(),
            card: run.card.clone(),
            parts: run.parts.clone(),
        }
    }
}

impl Figures {
    /// What changes are held against.
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
    /// What lives at an instant of a step.
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
