use serde::{Deserialize, Serialize};

use crate::attention::Algorithm;

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
}

/// What a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// `bytes` copied within the card's memory.
    DeviceCopy,
    /// `bytes` copied from the host to the card.
    HostToDevice,
    /// `bytes` copied from the card to the host.
    DeviceToHost,
    /// An empty kernel, one after the other: what a launch costs.
    Launch,
    /// `[m, k] · [k, n] → [m, n]`.
    Gemm,
    /// Softmax of each of `rows` over `columns`.
    Softmax,
    /// LayerNorm with weight and bias of each of `rows` over `columns`.
    LayerNorm,
    /// RMSNorm with weight of each of `rows` over `columns`.
    RmsNorm,
    /// GELU by the error function, of `elements`.
    Gelu,
    /// SiLU of one tensor times another, of `elements` each.
    SiluMul,
    /// The mean cross-entropy of `rows` logits over `columns` classes and its gradient.
    CrossEntropy,
    /// One fused AdamW step of `elements` parameters.
    Adamw,
    /// Attention of `batch` × `heads` over `length` queries and keys of `head_dim`.
    Attention,
    /// `bytes` copied from one card to another.
    PeerCopy,
    /// `bytes` on each of `devices`, summed onto all.
    AllReduce,
    /// `bytes` in all, gathered onto each of `devices`.
    AllGather,
    /// `bytes` on each of `devices`, summed and scattered.
    ReduceScatter,
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
}

impl Kernel {
    /// A kernel of which nothing but its class is stated.
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
        }
    }

    /// What it must state and does not: the name of the first such field.
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
    pub fn all(&self) -> [(&'static str, Option<u64>); 16] {
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
        ]
    }
}

impl Class {
    /// All, in the order of a report.
    pub const ALL: [Self; 17] = [
        Self::DeviceCopy,
        Self::HostToDevice,
        Self::DeviceToHost,
        Self::Launch,
        Self::Gemm,
        Self::Softmax,
        Self::LayerNorm,
        Self::RmsNorm,
        Self::Gelu,
        Self::SiluMul,
        Self::CrossEntropy,
        Self::Adamw,
        Self::Attention,
        Self::PeerCopy,
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
    ];

    /// The stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeviceCopy => "device_copy",
            Self::HostToDevice => "host_to_device",
            Self::DeviceToHost => "device_to_host",
            Self::Launch => "launch",
            Self::Gemm => "gemm",
            Self::Softmax => "softmax",
            Self::LayerNorm => "layer_norm",
            Self::RmsNorm => "rms_norm",
            Self::Gelu => "gelu",
            Self::SiluMul => "silu_mul",
            Self::CrossEntropy => "cross_entropy",
            Self::Adamw => "adamw",
            Self::Attention => "attention",
            Self::PeerCopy => "peer_copy",
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
        }
    }

    /// The extents that a kernel of this class must state.
    pub const fn extents(self) -> &'static [&'static str] {
        match self {
            Self::DeviceCopy | Self::HostToDevice | Self::DeviceToHost | Self::PeerCopy => &["bytes"],
            Self::Launch => &[],
            Self::Gemm => &["m", "n", "k"],
            Self::Softmax | Self::LayerNorm | Self::RmsNorm | Self::CrossEntropy => &["rows", "columns"],
            Self::Gelu | Self::SiluMul | Self::Adamw => &["elements"],
            Self::Attention => &["length"],
            Self::AllReduce | Self::AllGather | Self::ReduceScatter => &["bytes", "devices"],
        }
    }
}

impl Precision {
    /// The stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Tf32 => "tf32",
            Self::Fp32 => "fp32",
        }
    }

    /// Bytes of an element.
    pub const fn width(self) -> u64 {
        match self {
            Self::Bf16 | Self::Fp16 => 2,
            Self::Tf32 | Self::Fp32 => 4,
        }
    }
}

impl Pass {
    /// The stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ForwardBackward => "forward_backward",
        }
    }
}
