//! Normalisation layers.

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{Module, Tape, Tensor};

/// `torch.nn.LayerNorm` over the last dimension.
pub struct LayerNorm {
    module: Module,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    /// True if Liger replaces it.
    liger: bool,
}

impl LayerNorm {
    /// Makes a norm with weight and bias of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Some(b.weight("weight", [width])),
            bias: Some(b.weight("bias", [width])),
            liger: b.liger_norm(name).is_some(),
        })
    }

    /// Makes a norm with a weight of `width` alone as the module under construction, such as an element of a list.
    pub fn unnamed(b: &Builder, width: u64) -> Self {
        Self {
            module: b.module(),
            weight: Some(b.weight("weight", [width])),
            bias: None,
            liger: false,
        }
    }

    /// Makes a norm with weight and bias of `width` as the module under construction, an element of a list.
    pub fn of_list(b: &Builder, width: u64) -> Self {
        let norm = Self::unnamed(b, width);
        Self {
            bias: Some(b.weight("bias", [width])),
            ..norm
        }
    }

    /// Makes a norm with a weight of `width` alone (`bias=False`).
    pub fn without_bias(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Some(b.weight("weight", [width])),
            bias: None,
            liger: false,
        })
    }

    /// Makes a norm whose bias its caller removes once it is made (`norm.bias = None`).
    pub fn with_removed_bias(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || {
            let weight = Some(b.weight("weight", [width]));
            drop(b.tape().empty([width], b.dtype(), "bias"));
            Self {
                module: b.module(),
                weight,
                bias: None,
                liger: false,
            }
        })
    }

    /// Makes a norm without parameters (`elementwise_affine=False`).
    pub const fn plain(name: &'static str) -> Self {
        Self {
            module: Module::without_parameters(name),
            weight: None,
            bias: None,
            liger: false,
        }
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || match (&self.weight, &self.bias) {
            (Some(weight), Some(bias)) if self.liger => t.liger_layer_norm(x, weight, bias),
            (weight, bias) => t.layer_norm(x, weight.as_ref(), bias.as_ref()),
        })
    }

    /// [images, channels, rows, columns] → the same, over the channels (`data_format="channels_first"`).
    pub fn call_over_channels(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let last = t.permute(&x, &[0, 2, 3, 1]);
            let normed = t.layer_norm(&last, self.weight.as_ref(), self.bias.as_ref());
            drop((last, x));
            t.permute(&normed, &[0, 3, 1, 2])
        })
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
    /// The weight in fp32, before the values are back in their own type (Moshi).
    WideWeight,
}

/// transformers' RMS norms, operation by operation in fp32.
pub struct RmsNorm {
    module: Module,
    weight: Tensor,
    scale: RmsScale,
    /// How Liger replaces it: true if backward writes over the incoming gradient.
    liger: Option<bool>,
}

impl RmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        Self::scaled(b, name, width, RmsScale::Weight)
    }

    /// Makes a norm with a weight of `width` as the module under construction, an element of a list.
    pub fn of_list(b: &Builder, width: u64) -> Self {
        Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
            scale: RmsScale::Weight,
            liger: None,
        }
    }

    /// Makes a norm with a weight of `width`, applied as `scale` says.
    pub fn scaled(b: &Builder, name: &'static str, width: u64, scale: RmsScale) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
            scale,
            liger: b.liger_norm(name),
        })
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            if let Some(in_place) = self.liger {
                return t.liger_rms_norm(x, &self.weight, in_place);
            }
            let h = t.to_dtype(x, DType::F32);
            let variance = {
                let squares = t.pow(&h);
                t.mean_last(&squares)
            };
            let shifted = t.shift(&variance);
            // All but Gemma's and Moshi's forward name the variance, which therefore lives until the call returns.
            let names = !matches!(self.scale, RmsScale::OnePlusWeight | RmsScale::WideWeight);
            let _variance = names.then_some(variance);
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
                RmsScale::OnePlusWeight | RmsScale::WideWeight => {
                    let mut factor = t.to_dtype(&self.weight, DType::F32);
                    if self.scale == RmsScale::OnePlusWeight {
                        factor = t.shift(&factor);
                    }
                    let scaled = t.mul(&normed, &factor);
                    drop((factor, normed));
                    t.to_dtype(&scaled, x.dtype())
                }
            }
        })
    }
}

/// `T5LayerNorm`: an RMS norm whose factor alone is computed in fp32.
pub struct T5LayerNorm {
    module: Module,
    weight: Tensor,
}

impl T5LayerNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
        })
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
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
            if self.weight.dtype() != DType::F32 {
                h = t.to_dtype(&h, self.weight.dtype());
            }
            let out = t.mul(&self.weight, &h);
            drop((h, variance));
            out
        })
    }
}

/// A layer norm, operation by operation in fp32 (`CohereLayerNorm`).
pub struct PlainLayerNorm {
    module: Module,
    weight: Tensor,
}

impl PlainLayerNorm {
    /// Makes a norm with a weight of `width` and no bias.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
        })
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
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
                let weight = t.to_dtype(&self.weight, DType::F32);
                t.mul(&weight, &h)
            };
            t.to_dtype(&h, x.dtype())
        })
    }
}

/// `NemotronLayerNorm1P`: a layer norm whose weight is one more than the parameter.
pub struct ShiftedLayerNorm {
    module: Module,
    weight: Tensor,
    bias: Tensor,
}

impl ShiftedLayerNorm {
    /// Makes a norm with weight and bias of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
            bias: b.weight("bias", [width]),
        })
    }

    /// [.., width] → [.., width]. Under autocast everything is cast to its type before (`_cast_if_autocast_enabled`).
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let shifted = t.shift(&self.weight);
            let low = |x: &Tensor| match t.autocast_dtype() {
                Some(low) => t.to_dtype(x, low),
                None => x.clone(),
            };
            let (x, weight, bias) = (low(x), low(&shifted), low(&self.bias));
            drop(shifted);
            t.autocast(None, || t.layer_norm(&x, Some(&weight), Some(&bias)))
        })
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
    /// The RMS norm of Gemma 3n and later.
    Power,
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
    WideLayer(Module),
    /// nanochat's RMS norm.
    WideRms(Module),
    /// The RMS norm of Gemma 3n and later.
    Power(PowerRmsNorm),
}

impl Norm {
    /// Makes a norm over `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64, kind: NormKind) -> Self {
        match kind {
            NormKind::Rms(scale) => Self::Rms(RmsNorm::scaled(b, name, width, scale)),
            NormKind::Layer => Self::Layer(LayerNorm::new(b, name, width)),
            NormKind::PlainLayer => Self::PlainLayer(PlainLayerNorm::new(b, name, width)),
            NormKind::ShiftedLayer => Self::ShiftedLayer(ShiftedLayerNorm::new(b, name, width)),
            NormKind::WideLayer => Self::WideLayer(Self::bare(b, name)),
            NormKind::WideRms => Self::WideRms(Self::bare(b, name)),
            NormKind::Power => Self::Power(PowerRmsNorm::new(b, name, width)),
        }
    }

    /// A norm without parameters.
    fn bare(b: &Builder, name: &'static str) -> Module {
        b.tape().note_bare_norm(name);
        Module::without_parameters(name)
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self {
            Self::Rms(norm) => norm.call(t, x),
            Self::Layer(norm) => norm.call(t, x),
            Self::PlainLayer(norm) => norm.call(t, x),
            Self::ShiftedLayer(norm) => norm.call(t, x),
            Self::Power(norm) => norm.call(t, x),
            Self::WideLayer(module) => module.call(t, || {
                let normed = t.layer_norm(&t.to_dtype(x, DType::F32), None, None);
                t.to_dtype(&normed, x.dtype())
            }),
            Self::WideRms(module) => module.call(t, || {
                let normed = plain_rms(t, x);
                t.to_dtype(&normed, x.dtype())
            }),
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
pub struct GatedRmsNorm {
    module: Module,
    weight: Tensor,
    /// True if the weight is applied in fp32, and the gate is a sigmoid (Kimi Linear).
    by_sigmoids: bool,
}

impl GatedRmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [width]),
            by_sigmoids: false,
        })
    }

    /// Makes a norm with a weight of `width` that is applied in fp32, before the sigmoid of a gate
    /// (`KimiLinearRMSNormGated`).
    pub fn by_sigmoids(b: &Builder, name: &'static str, width: u64) -> Self {
        Self {
            by_sigmoids: true,
            ..Self::new(b, name, width)
        }
    }

    /// [.., width], and a gate of the same shape → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor, gate: &Tensor) -> Tensor {
        self.module.call(t, || {
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
            h = match self.by_sigmoids {
                true => t.mul(&t.to_dtype(&self.weight, DType::F32), &h),
                false => {
                    let narrowed = t.to_dtype(&h, x.dtype());
                    t.mul(&self.weight, &narrowed)
                }
            };
            h = {
                let wide = t.to_dtype(gate, DType::F32);
                let activated = match self.by_sigmoids {
                    true => t.sigmoid(&wide),
                    false => t.activation("SiluBackward0", &wide, "silu"),
                };
                drop(wide);
                t.mul(&h, &activated)
            };
            t.to_dtype(&h, x.dtype())
        })
    }
}

/// RMS norm of Gemma 3n and later, operation by operation in fp32: the inverse root is a power, and the weight is
/// applied before the values are back in their own type.
pub struct PowerRmsNorm {
    module: Module,
    weight: Option<Tensor>,
}

impl PowerRmsNorm {
    /// Makes a norm with a weight of `width`.
    pub fn new(b: &Builder, name: &'static str, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Some(b.weight("weight", [width])),
        })
    }

    /// Makes a norm without a weight (`with_scale=False`).
    pub const fn plain(name: &'static str) -> Self {
        Self {
            module: Module::without_parameters(name),
            weight: None,
        }
    }

    /// [.., width] → [.., width].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
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
        })
    }
}
