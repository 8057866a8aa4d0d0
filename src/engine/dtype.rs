//! Element types and their widths.

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// 64-bit IEEE float.
    F64,
    /// 8-bit float with 4 bits of exponent, without infinities.
    F8e4m3,
    /// 8-bit float with 5 bits of exponent.
    F8e5m2,
    /// 8-bit float with 4 bits of exponent, without infinities and negative zero.
    F8e4m3fnuz,
    /// 8-bit float with 5 bits of exponent, without infinities and negative zero.
    F8e5m2fnuz,
    /// 16-bit integer.
    I16,
    /// 8-bit integer.
    I8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// A complex number of two 32-bit floats.
    C64,
    /// A complex number of two 64-bit floats.
    C128,
}

impl DType {
    /// Bytes per element.
    pub const fn width(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool | Self::F8e4m3 | Self::F8e5m2 | Self::F8e4m3fnuz | Self::F8e5m2fnuz => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Returns true for floating-point elements; only such tensors have gradients.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F32
                | Self::F16
                | Self::Bf16
                | Self::F64
                | Self::F8e4m3
                | Self::F8e5m2
                | Self::F8e4m3fnuz
                | Self::F8e5m2fnuz
        )
    }

    /// Returns true for 16-bit floats: fp16 and bf16.
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
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
            Self::F64 => "float64",
            Self::F8e4m3 => "float8_e4m3fn",
            Self::F8e5m2 => "float8_e5m2",
            Self::F8e4m3fnuz => "float8_e4m3fnuz",
            Self::F8e5m2fnuz => "float8_e5m2fnuz",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }
}
