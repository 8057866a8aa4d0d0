//! `ZambaMambaMixer`, as transformers runs it without mamba-ssm and causal-conv1d.

use super::ZambaConfig;
use crate::dtype::DType;
use crate::model::families::mamba::{ScanCall, selective_scan};
use crate::model::families::zamba2::Mix;
use crate::model::parts::mamba2::{Conv, masked};
use crate::nn::{Builder, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// A mixer of heads that scan one after the other.
pub(super) struct Mixer {
    module: Module,
    /// [heads, rank + 2 × state, head].
    x_proj: Tensor,
    /// Weight [heads, head, rank] and bias [heads, head] of time steps.
    dt_proj: [Tensor; 2],
    a_log: Tensor,
    d: Tensor,
    conv: Conv,
    in_proj: Linear,
    out_proj: Linear,
    heads: u64,
    /// Widths of time steps and of states.
    widths: [u64; 2],
}

impl Mixer {
    pub fn new(b: &Builder, c: &ZambaConfig) -> Self {
        let (heads, width) = (c.mamba_heads, c.inner / c.mamba_heads);
        let maps = || {
            let conv = Conv::new(b, c.inner, c.conv);
            (conv, Linear::new(b, "in_proj", c.hidden, 2 * c.inner, c.bias))
        };
        // Parameters of the module itself come before those of its modules, which are made first.
        let ((conv, in_proj), own) = b.early(maps, || {
            let x_proj = b.weight("x_proj_weight", [heads, c.rank + 2 * c.state, width]);
            let dt_proj = [
                b.weight("dt_proj_weight", [heads, width, c.rank]),
                b.weight("dt_proj_bias", [heads, width]),
            ];
            // Made from numbers in fp32, whatever the model's type.
            let a_log = b.weight_of("A_log", [heads, width, c.state], DType::F32);
            (x_proj, dt_proj, a_log, b.weight("D", [heads, width]))
        });
        let (x_proj, dt_proj, a_log, d) = own;
        Self {
            module: b.module(),
            x_proj,
            dt_proj,
            a_log,
            d,
            conv,
            in_proj,
            out_proj: Linear::new(b, "out_proj", c.inner, c.hidden, c.bias),
            heads,
            widths: [c.rank, c.state],
        }
    }

    /// [batch, channels, seq] → [heads, batch, head, seq].
    fn by_head(&self, t: &Tape, x: &Tensor) -> Tensor {
        let seq = x.size(x.dim() - 1);
        let channels = x.size(1);
        let split = t.reshape(x, [x.size(0), self.heads, channels / self.heads, seq]);
        t.transpose(&split, 0, 1)
    }

    fn forward(&self, t: &Tape, mask: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        let (dtype, seq) = (x.dtype(), x.size(1));
        let input = masked(t, x, mask);
        let projected = t.transpose(&self.in_proj.call(t, &input), 1, 2);
        let channels = projected.size(1) / 2;
        let parts = t.split(&t.view(&projected, [x.size(0), channels, 2, seq]), 2, &[1, 1]);
        let mut h = t.contiguous(&t.squeeze(&parts[0], 2));
        let gate = self.by_head(t, &parts[1]);
        drop(parts);
        if let Some(cache) = cache {
            let shape = [x.size(0), channels, self.conv.kernel()];
            cache.keep(t.empty(shape, h.dtype(), "convolution state"));
        }
        h = self.conv.forward(t, &h);
        if cache.is_some() {
            h = t.narrow(&h, 2, seq);
        }
        h = masked(t, &t.transpose(&h, 1, 2), mask);
        h = self.by_head(t, &t.transpose(&h, 1, 2));
        let made = t.matmul(&t.unsqueeze(&self.x_proj, 1), &h);
        let [rank, state] = self.widths;
        let parts = t.split(&t.transpose(&made, 2, 3), 3, &[rank, state, state]);
        let [low, b, c] = [0, 1, 2].map(|i| parts[i].clone());
        drop(parts);
        let step = t.matmul(&t.unsqueeze(&self.dt_proj[0], 1), &t.transpose(&low, 2, 3));
        drop(low);
        let step_bias = t.to_dtype(&self.dt_proj[1], DType::F32);
        let a = {
            let exponential = t.exp(&t.to_dtype(&self.a_log, DType::F32));
            t.neg(&exponential)
        };
        let mut outputs = Vec::new();
        let mut states = Vec::new();
        for _head in 0..self.heads {
            let of_head = |x: &Tensor| t.select(x, 0);
            // Backward goes through them in the order in which they are taken.
            let [x, step, a, b, c] = [&h, &step, &a, &b, &c].map(of_head);
            let d = t.to_dtype(&of_head(&self.d), DType::F32);
            let [gate, step_bias] = [&gate, &step_bias].map(of_head);
            let (out, last) = selective_scan(
                t,
                &ScanCall {
                    x: &x,
                    step: &step,
                    a: &a,
                    b: &b,
                    c: &c,
                    d: &d,
                    gate: &gate,
                    step_bias: &step_bias,
                },
            );
            outputs.push(out);
            states.extend(cache.map(|_| last));
        }
        let scanned = t.cat(&outputs.iter().collect::<Vec<_>>(), 1);
        if let Some(cache) = cache {
            let last = t.stack_last(&states.iter().collect::<Vec<_>>());
            cache.keep(t.empty_like(&last, last.dtype(), "recurrent state"));
        }
        let narrow = t.to_dtype(&t.transpose(&scanned, 1, 2), dtype);
        self.out_proj.call(t, &narrow)
    }
}

impl Mix for Mixer {
    fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, padding, cache, x))
    }
}
