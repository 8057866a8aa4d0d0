//! Normalisation layers.

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// `torch.nn.LayerNorm` over the last dimension.
pub struct LayerNorm {
    weight: Option<Tensor>,
    bias: Option<Tensor>,
}

impl LayerNorm {
    /// Makes a norm with weight and bias of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: Some(b.weight("weight", [width])),
            bias: Some(b.weight("bias", [width])),
        })
    }

    /// Makes a norm with a weight of `width` alone (`bias=False`).
    pub fn without_bias(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: Some(b.weight("weight", [width])),
            bias: None,
        })
    }

    /// Makes a norm whose bias its caller removes once it is made (`norm.bias = None`).
    pub fn with_removed_bias(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || {
            let weight = Some(b.weight("weight", [width]));
            drop(b.tape().empty([width], b.dtype(), "bias"));
            Self { weight, bias: None }
        })
    }

    /// Makes a norm without parameters (`elementwise_affine=False`).
    pub fn plain() -> Self {
        Self {
            weight: None,
            bias: None,
        }
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.layer_norm(x, self.weight.as_ref(), self.bias.as_ref())
    }
}

/// Factor that an RMS norm multiplies the normalised values by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RmsScale {
    /// The weight, after the values are back in their own type (Llama).
    Weight,
    /// The weight, before the values are back in their own type (OLMo 2).
    WeightFirst,
    /// One and the weight, in fp32 (Gemma).
    OnePlusWeight,
}

/// transformers' RMS norms, operation by operation in fp32.
pub struct RmsNorm {
    weight: Tensor,
    scale: RmsScale,
}

impl RmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        Self::scaled(b, name, width, RmsScale::Weight)
    }

    /// Makes a norm with a weight of `width`, applied as `scale` says.
    pub fn scaled(b: &Builder, name: &'static str, width: u64, scale: RmsScale) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [width]),
            scale,
        })
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let h = t.to_dtype(x, DType::F32);
        let variance = {
            let squares = t.pow(&h);
            t.mean_last(&squares)
        };
        let shifted = t.shift(&variance);
        // All but Gemma's forward name the variance, which therefore lives until the call returns.
        let _variance = (self.scale != RmsScale::OnePlusWeight).then_some(variance);
        let inverse = t.rsqrt(&shifted);
        drop(shifted);
        let normed = t.mul(&h, &inverse);
        drop((inverse, h));
        match self.scale {
            RmsScale::Weight => {
                let narrowed = t.to_dtype(&normed, x.dtype());
                t.mul(&self.weight, &narrowed)
            }
            RmsScale::WeightFirst => {
                let scaled = t.mul(&self.weight, &normed);
                t.to_dtype(&scaled, x.dtype())
            }
            RmsScale::OnePlusWeight => {
                let factor = t.shift(&t.to_dtype(&self.weight, DType::F32));
                let scaled = t.mul(&normed, &factor);
                drop((factor, normed));
                t.to_dtype(&scaled, x.dtype())
            }
        }
    }
}

/// `T5LayerNorm`: an RMS norm whose factor alone is computed in fp32.
pub struct T5LayerNorm(Tensor);

impl T5LayerNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self(b.weight("weight", [width])))
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let variance = {
            let squares = {
                let wide = t.to_dtype(x, DType::F32);
                t.pow(&wide)
            };
            t.mean_last(&squares)
        };
        let mut h = {
            let inverse = {
                let shifted = t.shift(&variance);
                t.rsqrt(&shifted)
            };
            t.mul(x, &inverse)
        };
        if self.0.dtype() != DType::F32 {
            h = t.to_dtype(&h, self.0.dtype());
        }
        let out = t.mul(&self.0, &h);
        drop((h, variance));
        out
    }
}

/// A layer norm, operation by operation in fp32 (`CohereLayerNorm`).
pub struct PlainLayerNorm(Tensor);

impl PlainLayerNorm {
    /// Makes a norm with a weight of `width` and no bias.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self(b.weight("weight", [width])))
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.to_dtype(x, DType::F32);
        let mean = t.mean_last(&h);
        let _variance = {
            let squares = {
                let centred = t.sub(&h, &mean);
                t.pow(&centred)
            };
            t.mean_last(&squares)
        };
        h = {
            let centred = t.sub(&h, &mean);
            let inverse = {
                let shifted = t.shift(&_variance);
                t.rsqrt(&shifted)
            };
            t.mul(&centred, &inverse)
        };
        h = {
            let weight = t.to_dtype(&self.0, DType::F32);
            t.mul(&weight, &h)
        };
        t.to_dtype(&h, x.dtype())
    }
}

/// `NemotronLayerNorm1P`: a layer norm whose weight is one more than the parameter.
pub struct ShiftedLayerNorm {
    weight: Tensor,
    bias: Tensor,
}

impl ShiftedLayerNorm {
    /// Makes a norm with weight and bias of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [width]),
            bias: b.weight("bias", [width]),
        })
    }

    /// [.., width] → [.., width]. Under autocast everything is cast to its type before (`_cast_if_autocast_enabled`).
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let shifted = t.shift(&self.weight);
        let low = |x: &Tensor| match t.autocast_dtype() {
            Some(low) => t.to_dtype(x, low),
            None => x.clone(),
        };
        let (x, weight, bias) = (low(x), low(&shifted), low(&self.bias));
        drop(shifted);
        t.autocast(None, || t.layer_norm(&x, Some(&weight), Some(&bias)))
    }
}

/// Kind of a block's norms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormKind {
    /// transformers' RMS norms.
    Rms(RmsScale),
    /// `torch.nn.LayerNorm`, with weight and bias.
    Layer,
    /// Cohere's layer norm.
    PlainLayer,
    /// Nemotron's layer norm.
    ShiftedLayer,
    /// OLMo's layer norm: in fp32, without parameters.
    WideLayer,
    /// nanochat's RMS norm: in fp32, without parameters.
    WideRms,
}

/// A norm of one of several kinds.
pub enum Norm {
    /// An RMS norm.
    Rms(RmsNorm),
    /// `torch.nn.LayerNorm`.
    Layer(LayerNorm),
    /// Cohere's layer norm.
    PlainLayer(PlainLayerNorm),
    /// Nemotron's layer norm.
    ShiftedLayer(ShiftedLayerNorm),
    /// OLMo's layer norm.
    WideLayer,
    /// nanochat's RMS norm.
    WideRms,
}

impl Norm {
    /// Makes a norm over `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64, kind: NormKind) -> Self {
        match kind {
            NormKind::Rms(scale) => Self::Rms(RmsNorm::scaled(b, name, width, scale)),
            NormKind::Layer => Self::Layer(LayerNorm::new(b, name, width)),
            NormKind::PlainLayer => Self::PlainLayer(PlainLayerNorm::new(b, name, width)),
            NormKind::ShiftedLayer => Self::ShiftedLayer(ShiftedLayerNorm::new(b, name, width)),
            NormKind::WideLayer => Self::WideLayer,
            NormKind::WideRms => Self::WideRms,
        }
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self {
            Self::Rms(norm) => norm.forward(t, x),
            Self::Layer(norm) => norm.forward(t, x),
            Self::PlainLayer(norm) => norm.forward(t, x),
            Self::ShiftedLayer(norm) => norm.forward(t, x),
            Self::WideLayer => {
                let normed = LayerNorm::plain().forward(t, &t.to_dtype(x, DType::F32));
                t.to_dtype(&normed, x.dtype())
            }
            Self::WideRms => {
                let normed = plain_rms(t, x);
                t.to_dtype(&normed, x.dtype())
            }
        }
    }
}

/// `x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)` in fp32 (`NanoChatRMSNorm._norm`).
fn plain_rms(t: &Tape, x: &Tensor) -> Tensor {
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
}

/// An RMS norm whose result a gate multiplies, operation by operation (`Qwen3_5RMSNormGated`).
pub struct GatedRmsNorm(Tensor);

impl GatedRmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self(b.weight("weight", [width])))
    }

    /// [.., width], and a gate of the same shape → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor, gate: &Tensor) -> Tensor {
        let mut h = t.to_dtype(x, DType::F32);
        let _variance = {
            let squares = t.pow(&h);
            t.mean_last(&squares)
        };
        let inverse = {
            let shifted = t.shift(&_variance);
            t.rsqrt(&shifted)
        };
        h = t.mul(&h, &inverse);
        drop(inverse);
        h = {
            let narrowed = t.to_dtype(&h, x.dtype());
            t.mul(&self.0, &narrowed)
        };
        h = {
            let opened = t.activation("SiluBackward0", &t.to_dtype(gate, DType::F32), "silu");
            t.mul(&h, &opened)
        };
        t.to_dtype(&h, x.dtype())
    }
}

/// RMS norm of Gemma 3n and later, operation by operation in fp32: the inverse root is a power, and the weight is
/// applied before the values are back in their own type.
pub struct PowerRmsNorm {
    weight: Option<Tensor>,
}

impl PowerRmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: Some(b.weight("weight", [width])),
        })
    }

    /// Makes a norm without a weight (`with_scale=False`).
    pub fn plain() -> Self {
        Self { weight: None }
    }

    /// [.., width] → [.., width].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut normed = {
            let h = t.to_dtype(x, DType::F32);
            let mean_squared = {
                let mean = {
                    let squares = t.pow(&h);
                    t.mean_last(&squares)
                };
                t.shift(&mean)
            };
            let inverse = t.pow(&mean_squared);
            let normed = t.mul(&h, &inverse);
            drop((inverse, mean_squared, h));
            normed
        };
        if let Some(weight) = &self.weight {
            let factor = t.to_dtype(weight, DType::F32);
            let scaled = t.mul(&normed, &factor);
            drop(factor);
            normed = scaled;
        }
        t.to_dtype(&normed, x.dtype())
    }
}
