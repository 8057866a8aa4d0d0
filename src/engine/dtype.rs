//! Element types and their widths.

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float.
    F16,
    /// bfloat16: the exponent of fp32, 8 bits of precision.
    Bf16,
    /// 64-bit integer: token ids and labels.
    I64,
    /// 32-bit integer: sequence offsets.
    I32,
    /// One byte.
    U8,
    /// A boolean, stored in one byte.
    Bool,
}

impl DType {
    /// Bytes per element.
    pub const fn width(self) -> u64 {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::I64 => 8,
            Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether elements are floating point; only such tensors have gradients.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// PyTorch's short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::I64 => "int64",
            Self::I32 => "int32",
            Self::U8 => "uint8",
            Self::Bool => "bool",
        }
    }
}
