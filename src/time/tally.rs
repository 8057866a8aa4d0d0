//! Sums up the kernels of a step by kind and part of the model.

use std::collections::BTreeMap;

use super::rates::flops;
use super::step::{Share, StepTime};
use super::timeline::{Phase, PhaseTime};
use vramscope_engine::tape::Component;
use vramscope_engine::tape::log::Log;
use vramscope_engine::tape::work::{Class, Launch};

/// Number of components of a model.
const COMPONENTS: usize = Component::ALL.len();

/// Running sums over the kernels of a step, of which there are tens of thousands; indexed by [`LABELS`] and
/// [`Component::ALL`] for speed.
#[derive(Default)]
pub(super) struct Tally {
    /// Time of each phase.
    pub phases: BTreeMap<Phase, PhaseTime>,
    by_class: [Share; LABELS.len()],
    by_component: [Share; COMPONENTS],
    operations: [[Share; COMPONENTS]; LABELS.len()],
    all: Share,
}

impl Tally {
    /// Counts a kernel of `seconds` that runs `times` times.
    pub fn count(&mut self, log: &Log, phase: Phase, launch: &Launch, (seconds, times): (f64, u64)) {
        let component = match phase {
            Phase::Optimizer => Component::Run,
            _ => log
                .scopes
                .get(launch.scope as usize)
                .map_or(Component::Run, |s| s.component),
        };
        let (label, component) = (kind(launch.class), component as usize);
        let share = Share {
            seconds: seconds * times as f64,
            launches: times,
            flops: flops(launch) * times as f64,
            bytes: (launch.bytes() * times) as f64,
        };
        self.by_class[label].add(&share);
        self.by_component[component].add(&share);
        self.operations[label][component].add(&share);
        self.all.add(&share);
    }

    /// Returns the time of the counted step.
    pub fn step(self) -> StepTime {
        let mut operations = Vec::new();
        for (label, shares) in LABELS.into_iter().zip(&self.operations) {
            let parts = counted(Component::ALL, shares);
            operations.extend(parts.map(|(component, share)| ((label, component), share)));
        }
        StepTime {
            phases: self.phases,
            by_class: counted(LABELS, &self.by_class).collect(),
            by_component: counted(Component::ALL, &self.by_component).collect(),
            operations,
            all: self.all,
        }
    }
}

/// The keys that have kernels, with their shares.
fn counted<K, const N: usize>(keys: [K; N], shares: &[Share; N]) -> impl Iterator<Item = (K, Share)> {
    keys.into_iter().zip(*shares).filter(|(_, share)| share.launches > 0)
}

impl Share {
    fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.launches += other.launches;
        self.flops += other.flops;
        self.bytes += other.bytes;
    }
}

/// Number of kinds of kernels.
pub(super) const KINDS: usize = 12;

/// Kinds of kernels in a report, in sorted order.
pub(super) const LABELS: [&str; KINDS] = [
    "convolution",
    "copies",
    "elementwise",
    "embedding",
    "fused attention",
    "layer norm",
    "loss",
    "matrix products",
    "optimizer",
    "reductions",
    "softmax",
    "top-k",
];

/// Index into [`LABELS`] of a kernel's kind.
pub(super) const fn kind(class: Class) -> usize {
    match class {
        Class::Convolution | Class::ConvolutionBackward => 0,
        Class::Cat | Class::Gather | Class::MaskedScatter | Class::HostCopy => 1,
        Class::Pointwise | Class::Strided => 2,
        Class::EmbeddingBackward => 3,
        Class::Attention(_) => 4,
        Class::LayerNorm | Class::LayerNormBackward | Class::LayerNormInputBackward => 5,
        Class::LogSoftmax | Class::LogSoftmaxBackward | Class::Nll | Class::NllBackward => 6,
        Class::Matmul(_) => 7,
        Class::Foreach | Class::FusedAdamw | Class::ForeachNorm => 8,
        Class::ReduceRows | Class::ReduceColumns => 9,
        Class::Softmax | Class::SoftmaxBackward => 10,
        Class::TopK | Class::Scatter | Class::GatherLast => 11,
    }
}
