//! The host's pace: what the CPU takes to issue operations, measured one by one.

use std::collections::BTreeMap;

use super::timeline::Phase;
use vramscope_engine::tape::SdpaBackend;
use vramscope_engine::tape::work::{Chore, Class, Launch};

/// Microseconds of each thing that the host does.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// By name of the operation or chore.
    pub us: BTreeMap<String, f64>,
    /// The same where it differs for operations that are issued after a wait with nothing between them: no
    /// modules, warm caches.
    pub alone_us: BTreeMap<String, f64>,
    /// The same where it differs for optimizers of FSDP2's shards.
    pub sharded_us: BTreeMap<String, f64>,
    /// From the host's call to the kernel's begin on an idle GPU.
    pub latency_us: f64,
}

impl Pace {
    /// The pace of operations that are issued after a wait with nothing between them.
    #[must_use]
    pub fn alone(&self) -> Self {
        let mut us = self.us.clone();
        us.extend(self.alone_us.iter().map(|(name, us)| (name.clone(), *us)));
        Self { us, ..self.clone() }
    }

    /// Microseconds of an operation; of its first word where the whole name is not known.
    fn known(&self, name: &str) -> Option<f64> {
        let word = || name.split(' ').next().and_then(|word| self.us.get(word));
        self.us.get(name).or_else(word).copied()
    }

    /// The pace of an optimizer whose parameters are `DTensor`s, FSDP2's shards.
    #[must_use]
    pub fn sharded(&self) -> Self {
        let mut us = self.us.clone();
        us.extend(self.sharded_us.iter().map(|(name, us)| (name.clone(), *us)));
        Self { us, ..self.clone() }
    }

    /// Seconds of what is known by this name; nothing for what is not.
    pub fn named(&self, name: &str) -> f64 {
        self.known(name).unwrap_or(0.0) / 1e6
    }

    /// Seconds that the host takes to issue a kernel's operation.
    pub fn launch(&self, launch: &Launch) -> f64 {
        let name = operation(launch);
        let of = |name: &str| self.us.get(&format!("{name} gradient"));
        let gradients = || of(name).or_else(|| of(name.split(' ').next()?));
        let gradients = launch.gradient.then(gradients).flatten();
        gradients.map_or_else(|| self.named(name), |us| us / 1e6)
    }

    /// Seconds with which a phase begins, beside its operations: what a model does around its modules.
    pub fn phase(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Forward => self.named("forward"),
            Phase::Backward | Phase::Optimizer => 0.0,
        }
    }

    /// Seconds of a chore.
    pub fn chore(&self, chore: Chore) -> f64 {
        match chore {
            Chore::View => self.named("view"),
            Chore::Record => self.named("record"),
            Chore::Module => self.named("module"),
            Chore::Backward => self.named("backward"),
            Chore::Choose => self.named("choose"),
            Chore::Node => self.named("node"),
            Chore::Accumulate(_) => self.named("accumulate"),
            Chore::Pack => self.named("pack"),
            Chore::Unpack => self.named("unpack"),
            Chore::Wait => self.named("wait"),
            Chore::Shared(..) => 0.0,
            Chore::SharedMap { gradient: false } => self.named("shared map"),
            Chore::SharedMap { gradient: true } => self.named("shared map gradient"),
            Chore::Step(name) => self.us.get(&format!("{name} step")).copied().unwrap_or(0.0) / 1e6,
            Chore::Parameter(name, matrix) => {
                let kind = if matrix { "matrix" } else { "vector" };
                self.us.get(&format!("{name} {kind}")).copied().unwrap_or(0.0) / 1e6
            }
        }
    }

    /// Seconds from a call to the kernel's begin.
    pub fn latency(&self) -> f64 {
        self.latency_us / 1e6
    }
}

/// What the host calls the operation that launches a kernel.
fn operation(launch: &Launch) -> &'static str {
    match launch.class {
        Class::Pointwise | Class::Strided | Class::HostCopy => match launch.name {
            "to dtype" => "cast",
            "contiguous copy" | "clone" => "copy",
            "dropout" => "dropout",
            "copy into a part" => "copy into a part",
            "zeros" if launch.gradient => "nothing",
            name if name.contains("storage") || name.contains("workspace") => "nothing",
            _ => "pointwise",
        },
        Class::Cat => "cat",
        Class::Matmul(_) => "matmul",
        Class::ReduceRows | Class::ReduceColumns => "reduce",
        Class::LayerNorm | Class::LayerNormBackward | Class::LayerNormInputBackward => "layer_norm",
        Class::Softmax | Class::LogSoftmax => "softmax",
        Class::SoftmaxBackward | Class::LogSoftmaxBackward | Class::Nll | Class::NllBackward => "pointwise",
        Class::Gather | Class::EmbeddingBackward | Class::MaskedScatter => "gather",
        Class::Attention(fused) => match fused.backend {
            SdpaBackend::Flash => "attention flash",
            SdpaBackend::Efficient => "attention efficient",
            SdpaBackend::Cudnn => "attention cudnn",
            SdpaBackend::Math => "attention",
        },
        Class::TopK => "topk",
        Class::Scatter => "scatter",
        Class::GatherLast => "gather",
        Class::Convolution | Class::ConvolutionBackward => "convolution",
        Class::Foreach | Class::FusedAdamw | Class::ForeachNorm => "pointwise",
    }
}
