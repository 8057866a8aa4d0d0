//! The host's pace: CPU time to issue operations, each measured individually.

use std::collections::BTreeMap;

use super::timeline::Phase;
use vramscope_engine::tape::SdpaBackend;
use vramscope_engine::tape::work::{Class, HostOp, Launch};

/// Microseconds of each operation of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// Microseconds by name of the operation or other host work.
    pub us: BTreeMap<String, f64>,
    /// Different values for operations that are issued right after a wait: no modules in between, warm caches.
    pub alone_us: BTreeMap<String, f64>,
    /// Different values for optimizers on FSDP2's shards.
    pub sharded_us: BTreeMap<String, f64>,
    /// Microseconds from the host's call to the start of the kernel on an idle GPU.
    pub latency_us: f64,
}

impl Pace {
    /// The pace of operations that are issued right after a wait.
    #[must_use]
    pub fn alone(&self) -> Self {
        let mut us = self.us.clone();
        us.extend(self.alone_us.iter().map(|(name, us)| (name.clone(), *us)));
        Self { us, ..self.clone() }
    }

    /// Microseconds of an operation; if the whole name is unknown, of its first word.
    fn known(&self, name: &str) -> Option<f64> {
        let word = || name.split(' ').next().and_then(|word| self.us.get(word));
        self.us.get(name).or_else(word).copied()
    }

    /// The pace of a host that takes `times` as long for everything.
    #[must_use]
    pub(super) fn slower(&self, times: f64) -> Self {
        let slower = |us: &BTreeMap<String, f64>| us.iter().map(|(name, us)| (name.clone(), us * times)).collect();
        Self {
            us: slower(&self.us),
            alone_us: slower(&self.alone_us),
            sharded_us: slower(&self.sharded_us),
            latency_us: self.latency_us * times,
        }
    }

    /// The pace of an optimizer whose parameters are `DTensor`s, FSDP2's shards.
    #[must_use]
    pub fn sharded(&self) -> Self {
        let mut us = self.us.clone();
        us.extend(self.sharded_us.iter().map(|(name, us)| (name.clone(), *us)));
        Self { us, ..self.clone() }
    }

    /// Seconds of the operation with this name; 0 if it is unknown.
    pub fn named(&self, name: &str) -> f64 {
        self.known(name).unwrap_or(0.0) / 1e6
    }

    /// Seconds for the host to issue a kernel's operation.
    pub fn launch(&self, launch: &Launch) -> f64 {
        let name = operation(launch);
        let of = |name: &str| self.us.get(&format!("{name} gradient"));
        let gradients = || of(name).or_else(|| of(name.split(' ').next()?));
        let gradients = launch.gradient.then(gradients).flatten();
        gradients.map_or_else(|| self.named(name), |us| us / 1e6)
    }

    /// Seconds at the start of a phase in addition to its operations: a model's work around its modules.
    pub fn phase(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Forward => self.named("forward"),
            Phase::Backward | Phase::Optimizer => 0.0,
        }
    }

    /// Seconds of host work other than a launch.
    pub fn host_op(&self, host_op: HostOp) -> f64 {
        match host_op {
            HostOp::View => self.named("view"),
            HostOp::Record => self.named("record"),
            HostOp::Module => self.named("module"),
            HostOp::Backward => self.named("backward"),
            HostOp::Choose => self.named("choose"),
            // A node is run, and freed with the loss.
            HostOp::Node => self.named("node") + self.named("freed node"),
            HostOp::Accumulate(_) => self.named("accumulate"),
            HostOp::Pack => self.named("pack"),
            HostOp::Unpack => self.named("unpack"),
            HostOp::Wait => self.named("wait"),
            HostOp::Hook(name, times) => self.named(name) * f64::from(times),
            HostOp::OnHost(name, elements) => self.named(name) * elements as f64,
            HostOp::Collective(..) | HostOp::Copied(..) | HostOp::Beside(_) => 0.0,
            HostOp::Event(_) | HostOp::Join(_) | HostOp::Await(_) => 0.0,
            HostOp::DTensor { gradient: false } => self.named("shared map"),
            HostOp::DTensor { gradient: true } => self.named("shared map gradient"),
            HostOp::Step(name) => self.us.get(&format!("{name} step")).copied().unwrap_or(0.0) / 1e6,
            HostOp::Parameter(name, matrix) => {
                let kind = if matrix { "matrix" } else { "vector" };
                self.us.get(&format!("{name} {kind}")).copied().unwrap_or(0.0) / 1e6
            }
        }
    }

    /// Seconds from a call to the start of its kernel.
    pub fn latency(&self) -> f64 {
        self.latency_us / 1e6
    }
}

/// Name of the host operation that launches a kernel.
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
