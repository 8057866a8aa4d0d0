//! Classes of kernels, and the extents that each must state.

use serde::{Deserialize, Serialize};

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
    /// `[m, k] · [k, n] → [m, n]`, `batch` of them where that is stated.
    Gemm,
    /// Softmax of each of `rows` over `columns`; backward from its result and the gradient of that.
    Softmax,
    /// LayerNorm with weight and bias of each of `rows` over `columns`; backward from the input and each
    /// row's mean and scale.
    LayerNorm,
    /// RMSNorm with weight of each of `rows` over `columns`; backward from the input and each row's scale.
    RmsNorm,
    /// GELU by the error function, of `elements`.
    Gelu,
    /// SiLU of one tensor times another, of `elements` each; backward gives both gradients.
    SiluMul,
    /// The mean cross-entropy of `rows` logits over `columns` classes and its gradient.
    CrossEntropy,
    /// One fused AdamW step of `elements` parameters, of each of `tensors` where that is stated.
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
    /// `bytes` on the first of `devices`, copied to all.
    Broadcast,
    /// `bytes` from each of `devices` to the next, all at once.
    SendReceive,
    /// A tensor of `elements` times a number.
    Scale,
    /// The sum of two tensors of `elements`.
    Add,
    /// The product of two tensors of `elements`, one by one.
    Mul,
    /// A tensor of `elements`, zero where a mask says so.
    MaskedFill,
    /// Zeros, `elements` of them.
    Fill,
    /// `elements` from the stated precision to the other width: halves to fp32, fp32 to bf16.
    Cast,
    /// Dropout of `elements` with its mask, a byte each; a tenth is dropped.
    Dropout,
    /// GELU by its tanh formula, of `elements`.
    GeluTanh,
    /// SiLU of `elements`.
    Silu,
    /// The hyperbolic tangent of `elements`.
    Tanh,
    /// The logistic function of `elements`.
    Sigmoid,
    /// `[batch, length, heads, head_dim]` laid out as `[batch, heads, length, head_dim]`.
    TransposeCopy,
    /// The two halves of each of `rows` over `columns` exchanged, one of them negated: rotary embedding's.
    RotateHalf,
    /// Each of `rows` summed over `columns`.
    SumRows,
    /// Each of `columns` summed over `rows`: a gradient of a bias.
    SumColumns,
    /// The logarithm of softmax of each of `rows` over `columns`.
    LogSoftmax,
    /// The mean of the chosen of `columns` logarithms of each of `rows`, negated; backward alone is measured,
    /// which writes all.
    Nll,
    /// `rows` of a table of `entries` rows over `columns`; backward adds the rows' gradients into a cleared
    /// table.
    Embedding,
    /// `tensors` of `elements` each times a number, by one launch.
    ForeachScale,
    /// `tensors` of `elements` each, moved a tenth of the way towards others, by one launch.
    ForeachLerp,
    /// `tensors` of `elements` each, to which quotients of two others are added, by one launch.
    ForeachAddcdiv,
    /// The Euclidean norm of each of `tensors` of `elements`: clipping's first part.
    ForeachNorm,
    /// A patch embedding of `batch` images, a convolution whose stride is its kernel: `m` patches of `k` pixel values,
    /// three for each of a square, to `n` channels; backward gives the gradients of weight and bias.
    Convolution,
    /// `rows` over `columns`, half of which are replaced by rows of another tensor: image tokens.
    MaskedScatter,
    /// `[m, k] · [k, n]` where each of `batch` experts has a share of the `m` rows and a matrix of its own.
    GroupedGemm,
}

impl Class {
    /// All classes, in the order of a report.
    pub const ALL: [Self; 44] = [
        Self::DeviceCopy,
        Self::HostToDevice,
        Self::DeviceToHost,
        Self::PeerCopy,
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::SendReceive,
        Self::Launch,
        Self::Gemm,
        Self::GroupedGemm,
        Self::Convolution,
        Self::Attention,
        Self::Softmax,
        Self::LogSoftmax,
        Self::LayerNorm,
        Self::RmsNorm,
        Self::CrossEntropy,
        Self::Nll,
        Self::Embedding,
        Self::MaskedScatter,
        Self::Scale,
        Self::Add,
        Self::Mul,
        Self::MaskedFill,
        Self::Fill,
        Self::Cast,
        Self::Dropout,
        Self::Gelu,
        Self::GeluTanh,
        Self::Silu,
        Self::SiluMul,
        Self::Tanh,
        Self::Sigmoid,
        Self::TransposeCopy,
        Self::RotateHalf,
        Self::SumRows,
        Self::SumColumns,
        Self::Adamw,
        Self::ForeachScale,
        Self::ForeachLerp,
        Self::ForeachAddcdiv,
        Self::ForeachNorm,
    ];

    /// Stable name, as in the record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeviceCopy => "device_copy",
            Self::HostToDevice => "host_to_device",
            Self::DeviceToHost => "device_to_host",
            Self::PeerCopy => "peer_copy",
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::SendReceive => "send_receive",
            Self::Launch => "launch",
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log_softmax",
            Self::LayerNorm => "layer_norm",
            Self::RmsNorm => "rms_norm",
            Self::CrossEntropy => "cross_entropy",
            Self::Nll => "nll",
            Self::Embedding => "embedding",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Mul => "mul",
            Self::MaskedFill => "masked_fill",
            Self::Fill => "fill",
            Self::Cast => "cast",
            Self::Dropout => "dropout",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Silu => "silu",
            Self::SiluMul => "silu_mul",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::TransposeCopy => "transpose_copy",
            Self::RotateHalf => "rotate_half",
            Self::SumRows => "sum_rows",
            Self::SumColumns => "sum_columns",
            Self::Adamw => "adamw",
            Self::ForeachScale => "foreach_scale",
            Self::ForeachLerp => "foreach_lerp",
            Self::ForeachAddcdiv => "foreach_addcdiv",
            Self::ForeachNorm => "foreach_norm",
            Self::Convolution => "convolution",
            Self::MaskedScatter => "masked_scatter",
            Self::GroupedGemm => "grouped_gemm",
        }
    }

    /// Names of the extents that a kernel of this class must state.
    pub const fn extents(self) -> &'static [&'static str] {
        match self {
            Self::DeviceCopy | Self::HostToDevice | Self::DeviceToHost | Self::PeerCopy => &["bytes"],
            Self::Launch => &[],
            Self::Gemm => &["m", "n", "k"],
            Self::Convolution | Self::GroupedGemm => &["batch", "m", "n", "k"],
            Self::Softmax
            | Self::LogSoftmax
            | Self::LayerNorm
            | Self::RmsNorm
            | Self::CrossEntropy
            | Self::Nll
            | Self::RotateHalf
            | Self::SumRows
            | Self::SumColumns
            | Self::MaskedScatter => &["rows", "columns"],
            Self::Embedding => &["rows", "columns", "entries"],
            Self::Gelu
            | Self::GeluTanh
            | Self::Silu
            | Self::SiluMul
            | Self::Tanh
            | Self::Sigmoid
            | Self::Scale
            | Self::Add
            | Self::Mul
            | Self::MaskedFill
            | Self::Fill
            | Self::Cast
            | Self::Dropout
            | Self::Adamw => &["elements"],
            Self::TransposeCopy => &["length", "heads", "head_dim"],
            Self::Attention => &["length"],
            Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::Broadcast | Self::SendReceive => {
                &["bytes", "devices"]
            }
            Self::ForeachScale | Self::ForeachLerp | Self::ForeachAddcdiv | Self::ForeachNorm => {
                &["tensors", "elements"]
            }
        }
    }

    /// Returns true if PyTorch alone has such kernels, so that a Python with it must run them.
    pub const fn is_of_pytorch(self) -> bool {
        matches!(self, Self::Convolution | Self::MaskedScatter | Self::GroupedGemm)
    }

    /// Returns true if several cards take part.
    pub const fn is_collective(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::Broadcast | Self::SendReceive
        )
    }

    /// Bytes over each card's link in one direction, per byte of a collective's size, on `devices` cards. This factor
    /// converts algorithm bandwidth to bus bandwidth, which compares with the link's rate for every collective
    /// (NVIDIA's nccl-tests, `doc/PERFORMANCE.md`).
    pub fn bus_share(self, devices: u64) -> f64 {
        let n = devices.max(1) as f64;
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather | Self::ReduceScatter => (n - 1.0) / n,
            _ => 1.0,
        }
    }
}
