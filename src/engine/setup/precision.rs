//! Number formats of a precision.

use super::{Freeze, FrozenType, Precision, Setup};
use crate::dtype::DType;

impl Precision {
    /// Type of the weights.
    pub const fn weights(self) -> DType {
        match self {
            Self::Bf16 | Self::Bf16Amp => DType::Bf16,
            Self::Fp16 | Self::Fp16Amp => DType::F16,
            Self::Fp32 | Self::AmpBf16 | Self::AmpFp16 => DType::F32,
        }
    }

    /// Type in which autocast computes; `None` without autocast.
    pub const fn autocast(self) -> Option<DType> {
        match self {
            Self::Fp32 | Self::Bf16 | Self::Fp16 => None,
            Self::Bf16Amp | Self::AmpBf16 => Some(DType::Bf16),
            Self::AmpFp16 | Self::Fp16Amp => Some(DType::F16),
        }
    }

    /// Returns true if a `GradScaler` scales the loss: autocast to fp16 comes with one.
    pub fn has_scaler(self) -> bool {
        self.autocast() == Some(DType::F16)
    }

    /// Type of the matrix products.
    pub const fn products(self) -> DType {
        match self.autocast() {
            Some(low) => low,
            None => self.weights(),
        }
    }
}

impl Setup {
    /// Returns true if weights are in fp32 and autocast computes in 16 bits.
    pub const fn casts_weights(&self) -> bool {
        matches!(self.precision, Precision::AmpBf16 | Precision::AmpFp16)
    }

    /// Returns true if weights stay frozen in the type of `frozen_weights`; QLoRA has types of its own.
    pub const fn has_frozen_weights(&self) -> bool {
        match self.freeze {
            Freeze::Parts(frozen) => !frozen.is_empty(),
            Freeze::Lora => true,
            Freeze::Qlora => false,
        }
    }

    /// Returns true if modules train in full beside adapters.
    pub const fn trains_saved_modules(&self) -> bool {
        self.freeze.is_adapted() && !self.saved_modules.is_empty()
    }

    /// Type of weights that are not trained.
    pub const fn frozen_dtype(&self) -> DType {
        match (self.frozen_weights, self.precision.autocast()) {
            (FrozenType::Autocast, Some(low)) if self.has_frozen_weights() => low,
            _ => self.precision.weights(),
        }
    }

    /// Type of the vision tower's weights.
    pub const fn tower_dtype(&self) -> DType {
        match self.freeze.frozen().vision {
            true => self.frozen_dtype(),
            false => self.precision.weights(),
        }
    }

    /// Type of the language model's weights.
    pub const fn language_dtype(&self) -> DType {
        match self.freeze.frozen().language {
            true => self.frozen_dtype(),
            false => self.precision.weights(),
        }
    }
}
