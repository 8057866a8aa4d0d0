//! Number formats of a precision.

use super::Precision;
use crate::dtype::DType;

impl Precision {
    /// Type of the weights.
    pub const fn weights(self) -> DType {
        match self {
            Self::Bf16 | Self::Bf16Amp => DType::Bf16,
            Self::Fp32 | Self::AmpBf16 | Self::AmpFp16 => DType::F32,
        }
    }

    /// Type in which autocast computes; `None` without autocast.
    pub const fn autocast(self) -> Option<DType> {
        match self {
            Self::Fp32 | Self::Bf16 => None,
            Self::Bf16Amp | Self::AmpBf16 => Some(DType::Bf16),
            Self::AmpFp16 => Some(DType::F16),
        }
    }

    /// Type of the matrix products.
    pub const fn products(self) -> DType {
        match self.autocast() {
            Some(low) => low,
            None => self.weights(),
        }
    }
}
