//! `Mamba2Mixer` and its variants, as transformers runs them without mamba-ssm and causal-conv1d.

use super::config::{Gating, Mamba2Config};
use super::conv::{Conv, masked};
use super::scan::{ChunkScanCall, chunk_scan};
use crate::dtype::DType;
use crate::nn::{Builder, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `Mamba2Mixer`, `BambaMixer`, `NemotronHMamba2Mixer`, `FalconH1Mixer`.
pub struct Mixer2 {
    module: Module,
    dt_bias: Tensor,
    a_log: Tensor,
    d: Tensor,
    conv: Conv,
    in_proj: Linear,
    norm: Option<GatedNorm>,
    out_proj: Linear,
    /// Factor of each element of the projection, [1, 1, elements] (Falcon H1).
    mup_vector: Option<Tensor>,
    config: Mamba2Config,
}

/// A norm beside the gate.
struct GatedNorm {
    module: Module,
    weight: Tensor,
    gating: Gating,
}

impl Mixer2 {
    pub fn new(b: &Builder, c: &Mamba2Config) -> Self {
        let (t, sizes) = (b.tape(), &c.sizes);
        let (inner, channels) = (sizes.inner(), sizes.channels());
        let maps = || {
            let conv = Conv::new(b, channels, c.conv);
            let elements = inner + channels + sizes.heads;
            (conv, Linear::new(b, "in_proj", c.hidden, elements, c.in_bias))
        };
        // Parameters of the module itself come before those of its modules, which are made first.
        let ((conv, in_proj), [dt_bias, a_log, d]) = b.early(maps, || {
            ["dt_bias", "A_log", "D"].map(|name| b.weight(name, [sizes.heads]))
        });
        let norm = (c.gating != Gating::Alone).then(|| {
            t.scope("norm", || GatedNorm {
                module: b.module(),
                weight: b.weight("weight", [inner]),
                gating: c.gating,
            })
        });
        Self {
            module: b.module(),
            dt_bias,
            a_log,
            d,
            conv,
            in_proj,
            norm,
            out_proj: Linear::new(b, "out_proj", inner, c.hidden, c.out_bias),
            mup_vector: None,
            config: *c,
        }
    }

    /// Makes the factors of the projection, which the model does once all its layers are made.
    pub fn with_multipliers(self, b: &Builder) -> Self {
        let sizes = &self.config.sizes;
        let elements = sizes.inner() + sizes.channels() + sizes.heads;
        let mup_vector = b.buffer("mup_vector", [1, 1, elements], b.dtype());
        Self {
            mup_vector: Some(mup_vector),
            ..self
        }
    }

    /// [batch, seq, hidden] and a mask [batch, seq] → [batch, seq, hidden].
    pub fn call(&self, t: &Tape, mask: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, mask, cache, x))
    }

    fn forward(&self, t: &Tape, mask: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        let (dtype, s) = (x.dtype(), &self.config.sizes);
        let [batch, seq] = [x.size(0), x.size(1)];
        let mut input = masked(t, x, mask);
        if self.config.has_multipliers {
            input = t.scale(&input);
        }
        let mut projected = self.in_proj.call(t, &input);
        if let Some(factors) = &self.mup_vector {
            projected = t.mul(&projected, factors);
        }
        let a = {
            let exponential = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exponential)
        };
        let parts = t.split(&projected, 2, &[s.inner(), s.channels(), s.heads]);
        let mut h = t.transpose(&parts[1], 1, 2);
        if let Some(cache) = cache {
            let shape = [batch, s.channels(), self.config.conv.kernel];
            cache.keep(t.empty(shape, h.dtype(), "convolution state"));
        }
        h = self.conv.forward(t, &h);
        if cache.is_some() {
            h = t.narrow(&h, 2, seq);
        }
        h = masked(t, &t.transpose(&h, 1, 2), mask);
        let states = s.groups * s.state;
        let mixed = t.split(&h, 2, &[s.inner(), states, states]);
        // The variable that held the mixer's input holds what the heads get.
        drop(input);
        let grouped = |part: &Tensor| t.view(part, [batch, seq, s.groups, s.state]);
        // The mixer names the result, which therefore lives until it returns.
        let (scanned, _final_state) = chunk_scan(
            t,
            &ChunkScanCall {
                x: &t.view(&mixed[0], [batch, seq, s.heads, s.head_dim]),
                step: &parts[2],
                a: &a,
                b: &grouped(&mixed[1]),
                c: &grouped(&mixed[2]),
                d: &self.d,
                step_bias: &self.dt_bias,
                chunk: s.chunk,
            },
            cache.is_some(),
        );
        if let (Some(cache), Some(state)) = (cache, &_final_state) {
            cache.keep(t.empty_like(state, state.dtype(), "recurrent state"));
        }
        let flat = t.reshape(&scanned, [batch, seq, s.inner()]);
        let out = match &self.norm {
            Some(norm) => norm.call(t, &flat, &parts[0]),
            None => {
                let activated = t.activation("SiluBackward0", &parts[0], "silu");
                t.mul(&flat, &activated)
            }
        };
        let narrow = t.to_dtype(&out, dtype);
        self.out_proj.call(t, &narrow)
    }
}

impl GatedNorm {
    /// [.., width], and a gate of the same shape → [.., width].
    fn call(&self, t: &Tape, x: &Tensor, gate: &Tensor) -> Tensor {
        self.module.call(t, || match self.gating {
            Gating::BesideNorm { groups, norm_first } => self.beside(t, x, gate, (groups, norm_first)),
            Gating::BeforeNormOf(groups) => self.after(t, x, gate, groups),
            Gating::BeforeNorm | Gating::Alone => self.after(t, x, gate, 1),
        })
    }

    /// `MambaRMSNormGated`; `Zamba2RMSNormGated` over groups.
    fn after(&self, t: &Tape, x: &Tensor, gate: &Tensor, groups: u64) -> Tensor {
        let mut h = t.to_dtype(x, DType::F32);
        h = gated(t, &h, gate);
        let shape = *h.shape();
        let of_groups = match self.gating {
            Gating::BeforeNormOf(_) => t.view(&h, [shape[0], shape[1], groups, h.last() / groups]),
            _ => h.clone(),
        };
        let (_variance, normed) = normalised(t, &of_groups);
        drop(of_groups);
        h = t.view(&normed, shape);
        let narrowed = t.to_dtype(&h, x.dtype());
        t.mul(&self.weight, &narrowed)
    }

    /// `FalconH1RMSNormGated`.
    fn beside(&self, t: &Tape, x: &Tensor, gate: &Tensor, (groups, norm_first): (u64, bool)) -> Tensor {
        let (dtype, shape) = (x.dtype(), *x.shape());
        let mut h = x.clone();
        if !norm_first {
            h = gated(t, &h, gate);
        }
        h = t.to_dtype(&h, DType::F32);
        let width = h.last() / groups;
        h = t.view(&h, [shape[0], shape[1], groups, width]);
        let (_variance, normed) = normalised(t, &h);
        h = normed;
        h = t.mul(&t.view(&self.weight, [groups, width]), &h);
        h = t.view(&h, shape);
        if norm_first {
            h = gated(t, &h, gate);
        }
        t.to_dtype(&h, dtype)
    }
}

/// Multiplies by the gate's SiLU in fp32.
fn gated(t: &Tape, x: &Tensor, gate: &Tensor) -> Tensor {
    let activated = t.activation("SiluBackward0", &t.to_dtype(gate, DType::F32), "silu");
    t.mul(x, &activated)
}

/// Mean of the squares of the last dimension, and the values over its root.
fn normalised(t: &Tape, x: &Tensor) -> (Tensor, Tensor) {
    let variance = {
        let squares = t.pow(x);
        t.mean_last(&squares)
    };
    let normed = {
        let inverse = {
            let shifted = t.shift(&variance);
            t.rsqrt(&shifted)
        };
        t.mul(x, &inverse)
    };
    (variance, normed)
}
