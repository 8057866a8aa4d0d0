//! Normalisation.

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// `torch.nn.LayerNorm` over the last dimension.
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl LayerNorm {
    /// Weight and bias of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [width]),
            bias: b.weight("bias", [width]),
        })
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.layer_norm(x, Some(&self.weight), Some(&self.bias))
    }
}

/// transformers' RMS norm of the Llama line, operation by operation in fp32.
pub struct RmsNorm {
    weight: Tensor,
}

impl RmsNorm {
    /// Weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [width]),
        })
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let dtype = x.dtype();
        let mut h = t.to_dtype(x, DType::F32);
        let variance = {
            let squares = t.pow(&h);
            t.mean_last(&squares)
        };
        let scale = {
            let shifted = t.shift(&variance);
            t.rsqrt(&shifted)
        };
        h = t.mul(&h, &scale);
        drop(scale);
        let narrowed = t.to_dtype(&h, dtype);
        t.mul(&self.weight, &narrowed)
    }
}
