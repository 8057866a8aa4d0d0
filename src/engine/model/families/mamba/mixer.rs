//! `MambaMixer`, as transformers runs it without mamba-ssm and causal-conv1d.

use super::config::{Kind, MambaConfig};
use super::scan::{ScanCall, selective_scan};
use crate::dtype::DType;
use crate::model::parts::mamba2::{Conv, masked};
use crate::nn::{Builder, KvCache, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `MambaMixer`, `FalconMambaMixer`, `JambaMambaMixer`.
pub struct Mixer {
    module: Module,
    a_log: Tensor,
    d: Tensor,
    conv: Conv,
    in_proj: Linear,
    x_proj: Linear,
    /// Weight [intermediate, rank] and bias of `dt_proj`, which is never called.
    dt_proj: (Tensor, Tensor),
    out_proj: Linear,
    /// Widths of time steps and of states.
    widths: [u64; 2],
    /// Norms of time steps and states.
    norms: Norms,
}

/// Norms of time steps and states.
enum Norms {
    None,
    /// Their weights, which the torch path never reads (Falcon Mamba).
    Weightless {
        _weights: [Tensor; 3],
    },
    /// Jamba's.
    Weighted([RmsNorm; 3]),
}

impl Mixer {
    pub fn new(b: &Builder, c: &MambaConfig) -> Self {
        let t = b.tape();
        let inner = c.intermediate;
        let maps = || {
            let conv = Conv::new(b, inner, c.conv);
            let in_proj = Linear::new(b, "in_proj", c.hidden, 2 * inner, c.bias);
            let x_proj = Linear::new(b, "x_proj", inner, c.time_step_rank + 2 * c.state, false);
            let dt_proj = t.scope("dt_proj", || {
                let weight = b.weight("weight", [inner, c.time_step_rank]);
                (weight, b.weight("bias", [inner]))
            });
            (conv, in_proj, x_proj, dt_proj)
        };
        // Parameters of the module itself come before those of its modules, which are made first.
        let ((conv, in_proj, x_proj, dt_proj), (a_log, d)) = b.early(maps, || {
            let a_log = b.weight("A_log", [inner, c.state]);
            (a_log, b.weight("D", [inner]))
        });
        let out_proj = Linear::new(b, "out_proj", inner, c.hidden, c.bias);
        let names = [
            ("dt_layernorm", c.time_step_rank),
            ("b_layernorm", c.state),
            ("c_layernorm", c.state),
        ];
        let norms = match c.kind {
            Kind::FalconMamba => Norms::Weightless {
                _weights: names.map(|(name, width)| {
                    let width = if name == "dt_layernorm" { inner } else { width };
                    t.scope(name, || b.buffer("weight", [width], b.dtype()))
                }),
            },
            Kind::Jamba => Norms::Weighted(names.map(|(name, width)| RmsNorm::new(b, name, width))),
            Kind::Mamba | Kind::Mamba2(_) => Norms::None,
        };
        Self {
            module: b.module(),
            a_log,
            d,
            conv,
            in_proj,
            x_proj,
            dt_proj,
            out_proj,
            widths: [c.time_step_rank, c.state],
            norms,
        }
    }

    /// [batch, seq, hidden] and a mask [batch, seq] → [batch, seq, hidden].
    pub fn call(&self, t: &Tape, mask: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, mask, cache, x))
    }

    fn forward(&self, t: &Tape, mask: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        let dtype = x.dtype();
        let input = masked(t, x, mask);
        let projected = t.transpose(&self.in_proj.call(t, &input), 1, 2);
        let a = {
            let exponential = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exponential)
        };
        if !matches!(self.norms, Norms::Weighted(_)) {
            self.try_fused(t);
        }
        let parts = t.split(&projected, 1, &[projected.size(1) / 2; 2]);
        let (mut h, gate) = (parts[0].clone(), parts[1].clone());
        drop(parts);
        let seq = x.size(1);
        if let Some(cache) = cache {
            let shape = [x.size(0), h.size(1), self.conv.kernel()];
            cache.keep(t.empty(shape, h.dtype(), "convolution state"));
        }
        h = self.conv.forward(t, &h);
        if cache.is_some() {
            h = t.narrow(&h, 2, seq);
        }
        h = masked(t, &t.transpose(&h, 1, 2), mask);
        let [rank, state] = self.widths;
        let parts = {
            let all = self.x_proj.call(t, &h);
            t.split(&all, 2, &[rank, state, state])
        };
        let mut parts = parts.into_iter();
        let mut next = |which| parts.next().map(|part| self.normed(t, which, part));
        let (Some(low), Some(input), Some(output)) = (next(0), next(1), next(2)) else {
            unreachable!("the split has three parts")
        };
        let step = t.matmul(&self.dt_proj.0, &t.transpose(&low, 1, 2));
        drop(low);
        let step_bias = t.to_dtype(&self.dt_proj.1, DType::F32);
        let d = t.to_dtype(&self.d, DType::F32);
        let (scanned, state) = selective_scan(
            t,
            &ScanCall {
                x: &t.transpose(&h, 1, 2),
                step: &step,
                a: &a,
                b: &input,
                c: &output,
                d: &d,
                gate: &gate,
                step_bias: &step_bias,
            },
        );
        drop(d);
        if let Some(cache) = cache {
            cache.keep(t.empty_like(&state, state.dtype(), "recurrent state"));
        }
        drop(state);
        let narrow = t.to_dtype(&t.transpose(&scanned, 1, 2), dtype);
        self.out_proj.call(t, &narrow)
    }

    /// Makes what the fused kernel would get: `mamba_inner_fn` is called even where it is not there.
    fn try_fused(&self, t: &Tape) {
        if !t.is_training() {
            return;
        }
        let bias = self.out_proj.float_bias(t);
        let others = [&self.d, &self.dt_proj.1].map(|x| t.to_dtype(x, DType::F32));
        drop((bias, others));
    }

    /// Normalises time steps (0) or one of the states, if the model does: `FalconMambaWeightlessRMSNorm`, `JambaRMSNorm`.
    fn normed(&self, t: &Tape, which: usize, x: Tensor) -> Tensor {
        match &self.norms {
            Norms::None => return x,
            Norms::Weighted(norms) => return norms[which].call(t, &x),
            Norms::Weightless { .. } => {}
        }
        let wide = t.to_dtype(&x, DType::F32);
        let inverse = {
            let shifted = {
                let mean = {
                    let squares = t.pow(&wide);
                    t.mean_last(&squares)
                };
                t.shift(&mean)
            };
            t.rsqrt(&shifted)
        };
        let normed = t.mul(&wide, &inverse);
        drop((inverse, wide));
        t.to_dtype(&normed, x.dtype())
    }
}
