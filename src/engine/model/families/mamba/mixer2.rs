//! `Mamba2Mixer`, as transformers runs it without mamba-ssm and causal-conv1d.

use super::config::Mamba2Sizes;
use super::mixer::{Conv, masked};
use super::scan2::{ChunkScanCall, chunk_scan};
use crate::dtype::DType;
use crate::nn::{Builder, Linear};
use crate::tape::{Tape, Tensor};

/// `Mamba2Mixer`.
pub struct Mixer2 {
    dt_bias: Tensor,
    a_log: Tensor,
    d: Tensor,
    conv: Conv,
    in_proj: Linear,
    /// Weight of `norm`.
    norm: Tensor,
    out_proj: Linear,
    sizes: Mamba2Sizes,
}

impl Mixer2 {
    pub fn new(b: &Builder, hidden: u64, (conv, bias): (super::config::ConvSizes, bool), sizes: &Mamba2Sizes) -> Self {
        let t = b.tape();
        let inner = sizes.heads * sizes.head_dim;
        let channels = sizes.channels();
        let conv = Conv::new(b, channels, conv);
        let in_proj = Linear::new(b, "in_proj", hidden, inner + channels + sizes.heads, bias);
        let dt_bias = b.weight("dt_bias", [sizes.heads]);
        let a_log = b.weight("A_log", [sizes.heads]);
        let norm = t.scope("norm", || b.weight("weight", [inner]));
        let d = b.weight("D", [sizes.heads]);
        Self {
            dt_bias,
            a_log,
            d,
            conv,
            in_proj,
            norm,
            out_proj: Linear::new(b, "out_proj", inner, hidden, bias),
            sizes: *sizes,
        }
    }

    /// [batch, seq, hidden] and a mask [batch, seq] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, mask: Option<&Tensor>, x: &Tensor) -> Tensor {
        let (dtype, s) = (x.dtype(), &self.sizes);
        let inner = s.heads * s.head_dim;
        let projected = {
            let masked = masked(t, x, mask);
            self.in_proj.call(t, &masked)
        };
        let a = {
            let exponential = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exponential)
        };
        let parts = t.split(&projected, 2, &[inner, s.channels(), s.heads]);
        let mut h = self.conv.forward(t, &t.transpose(&parts[1], 1, 2));
        h = masked(t, &t.transpose(&h, 1, 2), mask);
        let states = s.groups * s.state;
        let mixed = t.split(&h, 2, &[inner, states, states]);
        let [batch, seq] = [x.size(0), x.size(1)];
        let grouped = |part: &Tensor| t.view(part, [batch, seq, s.groups, s.state]);
        // The mixer names the result, which therefore lives until it returns.
        let scanned = chunk_scan(
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
        );
        let flat = t.reshape(&scanned, [batch, seq, inner]);
        let out = t.scope("norm", || self.normed(t, &flat, &parts[0]));
        drop(flat);
        let narrow = t.to_dtype(&out, dtype);
        self.out_proj.call(t, &narrow)
    }

    /// `MambaRMSNormGated`: [.., width], and a gate of the same shape → [.., width].
    fn normed(&self, t: &Tape, x: &Tensor, gate: &Tensor) -> Tensor {
        let mut h = t.to_dtype(x, DType::F32);
        h = {
            let open = t.activation("SiluBackward0", &t.to_dtype(gate, DType::F32), "silu");
            t.mul(&h, &open)
        };
        let _variance = {
            let squares = t.pow(&h);
            t.mean_last(&squares)
        };
        h = {
            let inverse = {
                let shifted = t.shift(&_variance);
                t.rsqrt(&shifted)
            };
            t.mul(&h, &inverse)
        };
        let narrowed = t.to_dtype(&h, x.dtype());
        t.mul(&self.norm, &narrowed)
    }
}
