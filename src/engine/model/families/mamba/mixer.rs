//! `MambaMixer`, as transformers runs it without mamba-ssm and causal-conv1d.

use super::config::{ConvSizes, Kind, MambaConfig};
use super::scan::{ScanCall, selective_scan};
use crate::dtype::DType;
use crate::nn::{Activation, Builder, Linear, activate};
use crate::tape::{Tape, Tensor};

/// `MambaMixer`, `FalconMambaMixer`.
pub struct Mixer {
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
    /// Weights of the norms of time steps and states, which the torch path never reads (Falcon Mamba).
    norms: Option<[Tensor; 3]>,
}

impl Mixer {
    pub fn new(b: &Builder, c: &MambaConfig) -> Self {
        let t = b.tape();
        let inner = c.intermediate;
        let conv = Conv::new(b, inner, c.conv);
        let in_proj = Linear::new(b, "in_proj", c.hidden, 2 * inner, c.bias);
        let x_proj = Linear::new(b, "x_proj", inner, c.time_step_rank + 2 * c.state, false);
        let dt_proj = t.scope("dt_proj", || {
            let weight = b.weight("weight", [inner, c.time_step_rank]);
            (weight, b.weight("bias", [inner]))
        });
        let (a_log, d) = (b.weight("A_log", [inner, c.state]), b.weight("D", [inner]));
        let out_proj = Linear::new(b, "out_proj", inner, c.hidden, c.bias);
        let norms = (c.kind == Kind::FalconMamba).then(|| {
            [
                ("dt_layernorm", inner),
                ("b_layernorm", c.state),
                ("c_layernorm", c.state),
            ]
            .map(|(name, width)| t.scope(name, || b.buffer("weight", [width], b.dtype())))
        });
        Self {
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
    pub fn forward(&self, t: &Tape, mask: Option<&Tensor>, x: &Tensor) -> Tensor {
        let dtype = x.dtype();
        let masked = masked(t, x, mask);
        let projected = t.transpose(&self.in_proj.call(t, &masked), 1, 2);
        let a = {
            let exponential = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exponential)
        };
        self.try_fused(t);
        let parts = t.split(&projected, 1, &[projected.size(1) / 2; 2]);
        let (mut h, gate) = (parts[0].clone(), parts[1].clone());
        drop(parts);
        h = self.conv.forward(t, &h);
        h = self::masked(t, &t.transpose(&h, 1, 2), mask);
        let [rank, state] = self.widths;
        let parts = {
            let all = self.x_proj.call(t, &h);
            t.split(&all, 2, &[rank, state, state])
        };
        let mut parts = parts.into_iter();
        let mut next = || parts.next().map(|part| self.normed(t, part));
        let (Some(low), Some(input), Some(output)) = (next(), next(), next()) else {
            unreachable!("the split has three parts")
        };
        let step = t.matmul(&self.dt_proj.0, &t.transpose(&low, 1, 2));
        drop(low);
        let step_bias = t.to_dtype(&self.dt_proj.1, DType::F32);
        let d = t.to_dtype(&self.d, DType::F32);
        let scanned = selective_scan(
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

    /// `FalconMambaWeightlessRMSNorm`, if the model has it.
    fn normed(&self, t: &Tape, x: Tensor) -> Tensor {
        if self.norms.is_none() {
            return x;
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
        drop(inverse);
        t.to_dtype(&normed, x.dtype())
    }
}

/// `conv1d` and the activation after it.
pub struct Conv {
    /// Weight [channels, 1, kernel].
    weight: Tensor,
    bias: Option<Tensor>,
    activation: Activation,
}

impl Conv {
    pub fn new(b: &Builder, channels: u64, sizes: ConvSizes) -> Self {
        b.tape().scope("conv1d", || Self {
            weight: b.weight("weight", [channels, 1, sizes.kernel]),
            bias: sizes.bias.then(|| b.weight("bias", [channels])),
            activation: sizes.activation,
        })
    }

    /// `causal_conv1d_fn`, [batch, channels, seq] → the same.
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let weight = t.squeeze(&self.weight, 1);
        let out = {
            let cast = t.to_dtype(x, weight.dtype());
            let padding = weight.size(1) - 1;
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), self.bias.as_ref(), padding);
            t.slice(&out, 2, x.size(2))
        };
        let out = activate(t, self.activation, out);
        t.to_dtype(&out, x.dtype())
    }
}

/// `apply_mask_to_padding_states`.
pub fn masked(t: &Tape, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
    match mask {
        Some(mask) => t.mul(x, &t.unsqueeze(mask, 2)),
        None => x.clone(),
    }
}
