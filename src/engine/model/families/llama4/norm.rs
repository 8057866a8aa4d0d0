//! Norms of Llama 4's language model, operation by operation in fp32.

use crate::dtype::DType;
use crate::nn::Builder;
use crate::tape::{Module, Tape, Tensor};

/// `Llama4TextRMSNorm`, whose weight comes last, or without one `Llama4TextL2Norm`.
pub struct TextNorm {
    module: Module,
    weight: Option<Tensor>,
}

impl TextNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Some(b.weight("weight", [width])),
        })
    }

    /// Makes a norm without a weight.
    pub const fn plain(name: &'static str) -> Self {
        Self {
            module: Module::without_parameters(name),
            weight: None,
        }
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let normed = {
                let h = t.to_dtype(x, DType::F32);
                let inverse = {
                    let shifted = {
                        let mean = {
                            let squares = t.pow(&h);
                            t.mean_last(&squares)
                        };
                        t.shift(&mean)
                    };
                    t.rsqrt(&shifted)
                };
                let normed = t.mul(&h, &inverse);
                drop((inverse, h));
                normed
            };
            let narrowed = t.to_dtype(&normed, x.dtype());
            drop(normed);
            match &self.weight {
                Some(weight) => t.mul(&narrowed, weight),
                None => narrowed,
            }
        })
    }
}
