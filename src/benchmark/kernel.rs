//! A kernel of a benchmark: its class, extents and variants.

use serde::{Deserialize, Serialize};

use super::class::Class;
use vramscope_engine::attention::Algorithm;
use vramscope_engine::device::PeakTeraflops;

/// What was measured: two results with the same kernel can be compared.
///
/// What an older record does not state is `None`, and agrees with everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kernel {
    /// What it computes.
    pub class: Class,
    /// Types of the numbers; absent where none is computed with, as in a launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Extents, those that [`Class::extents`] names.
    #[serde(default)]
    pub shape: Shape,
    /// Which part of a training step; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// Attention: the way it is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Attention: no query sees a later key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causal: Option<bool>,
    /// Matrix products: how the operands lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Copies from and to the host: whether the host's memory is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Backward of norms: only the input's gradient is made, because weight and bias are not trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<bool>,
    /// Copies between cards: which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Copies between cards: whether one reaches the other's memory itself; the driver goes by way of the
    /// host where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_access: Option<bool>,
}

/// Types of the numbers of a kernel; all sums and statistics are fp32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// bfloat16.
    #[serde(alias = "bfloat16")]
    Bf16,
    /// 16-bit IEEE float.
    #[serde(alias = "float16")]
    Fp16,
    /// 32-bit floats that matrix units read with 10 bits of mantissa.
    Tf32,
    /// 32-bit IEEE float throughout.
    #[serde(alias = "float32")]
    Fp32,
}

/// Which part of a training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// Forward alone.
    Forward,
    /// Backward alone.
    Backward,
    /// Forward, then backward.
    ForwardBackward,
}

/// Which way a copy between the first two cards goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the first card to the second.
    Forth,
    /// From the second card to the first.
    Back,
    /// Both at once, `bytes` each way.
    Both,
}

/// How the operands of a matrix product lie in memory, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// `[m, k] · [k, n]`: a gradient of a linear layer's input.
    Nn,
    /// `[m, k] · [n, k]ᵀ`: a linear layer.
    Nt,
    /// `[k, m]ᵀ · [k, n]`: a gradient of a linear layer's weight.
    Tn,
}

/// Extents of a kernel. Each class has its own; the others are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shape {
    /// Bytes of a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Rows of a matrix product's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<u64>,
    /// Columns of a matrix product's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// What a matrix product sums over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// Rows that are worked on one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Elements of a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u64>,
    /// Elements of each tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// Samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Query heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<u64>,
    /// Key and value heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u64>,
    /// Elements of a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<u64>,
    /// Queries and keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Sliding window: keys that a query sees at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Top-k: percent of the keys that each query keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_percent: Option<u64>,
    /// Chunked: queries at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    /// Cards that work together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u64>,
    /// Rows of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Tensors of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensors: Option<u64>,
}

impl Kernel {
    /// A kernel that states nothing except its class.
    pub fn of(class: Class) -> Self {
        Self {
            class,
            precision: None,
            shape: Shape::default(),
            pass: None,
            algorithm: None,
            causal: None,
            layout: None,
            pinned: None,
            frozen: None,
            direction: None,
            peer_access: None,
        }
    }

    /// Name of the first extent that the class requires and the kernel does not state.
    pub fn missing(&self) -> Option<&'static str> {
        let extents = self.shape.all();
        let stated = |name: &str| {
            extents
                .iter()
                .any(|(key, value)| *key == name && value.is_some_and(|n| n > 0))
        };
        match self.class.extents().iter().find(|name| !stated(name)) {
            Some(name) => Some(name),
            None if self.class == Class::Attention && self.algorithm.is_none() => Some("algorithm"),
            None => None,
        }
    }
}

impl Shape {
    /// Every extent by name, in the order of a heading.
    pub fn all(&self) -> [(&'static str, Option<u64>); 18] {
        [
            ("bytes", self.bytes),
            ("m", self.m),
            ("n", self.n),
            ("k", self.k),
            ("rows", self.rows),
            ("columns", self.columns),
            ("elements", self.elements),
            ("batch", self.batch),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("length", self.length),
            ("window", self.window),
            ("kept_percent", self.kept_percent),
            ("chunk", self.chunk),
            ("devices", self.devices),
            ("entries", self.entries),
            ("tensors", self.tensors),
        ]
    }
}

impl Precision {
    /// Stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Tf32 => "tf32",
            Self::Fp32 => "fp32",
        }
    }

    /// The data sheet's rate of products in this type, in TFLOP/s.
    pub const fn peak(self, sheet: &PeakTeraflops) -> Option<f64> {
        match self {
            Self::Bf16 => sheet.bf16,
            Self::Fp16 => sheet.fp16,
            Self::Tf32 => sheet.tf32,
            Self::Fp32 => sheet.fp32,
        }
    }

    /// Bytes per element.
    pub const fn width(self) -> u64 {
        match self {
            Self::Bf16 | Self::Fp16 => 2,
            Self::Tf32 | Self::Fp32 => 4,
        }
    }
}

impl Pass {
    /// Stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ForwardBackward => "forward_backward",
        }
    }
}
