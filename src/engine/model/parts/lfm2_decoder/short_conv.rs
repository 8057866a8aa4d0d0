//! LFM2's short convolution (`Lfm2ShortConv`).

use super::config::Lfm2Config;
use crate::nn::{Builder, KvCache, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `Lfm2ShortConv`.
pub struct ShortConv {
    module: Module,
    /// Weight of `conv`, [hidden, 1, kernel].
    weight: Tensor,
    bias: Option<Tensor>,
    in_proj: Linear,
    out_proj: Linear,
    kernel: u64,
    /// True if the package causal-conv1d runs it.
    by_package: bool,
}

impl ShortConv {
    pub fn new(b: &Builder, c: &Lfm2Config) -> Self {
        let (weight, bias) = b.tape().scope("conv", || {
            let weight = b.weight("weight", [c.hidden, 1, c.kernel]);
            (weight, c.conv_bias.then(|| b.weight("bias", [c.hidden])))
        });
        Self {
            module: b.module(),
            weight,
            bias,
            in_proj: Linear::new(b, "in_proj", c.hidden, 3 * c.hidden, c.conv_bias),
            out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, c.conv_bias),
            kernel: c.kernel,
            by_package: b.has_causal_conv1d([c.hidden, c.kernel], true),
        }
    }

    /// [batch, seq, hidden] → the same; `padding` [batch, seq] marks positions that are not padding.
    pub fn call(&self, t: &Tape, padding: Option<&Tensor>, cache: Option<&KvCache>, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let seq = x.size(1);
            let mut h = match padding {
                Some(padding) => t.mul(&x, &t.unsqueeze(padding, 2)),
                None => x.clone(),
            };
            let projected = self.in_proj.call(t, &h);
            let parts = t.split(&t.transpose(&projected, 1, 2), 1, &[projected.last() / 3; 3]);
            h = t.mul(&parts[0], &parts[2]);
            if let Some(cache) = cache {
                cache.keep(t.empty([h.size(0), h.size(1), self.kernel], h.dtype(), "convolution state"));
            }
            h = self.convolve(t, &h);
            if cache.is_some() {
                h = t.narrow(&h, 2, seq);
            }
            let mut y = t.mul(&parts[1], &h);
            y = t.contiguous(&t.transpose(&y, 1, 2));
            self.out_proj.call(t, &y)
        })
    }

    /// `causal_conv1d_fn`, [batch, hidden, seq] → the same.
    fn convolve(&self, t: &Tape, x: &Tensor) -> Tensor {
        let weight = t.squeeze(&self.weight, 1);
        if self.by_package {
            return t.causal_conv1d(x, &weight, self.bias.as_ref());
        }
        let out = {
            let cast = t.to_dtype(x, weight.dtype());
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), self.bias.as_ref(), self.kernel - 1);
            t.slice(&out, 2, x.size(2))
        };
        t.to_dtype(&out, x.dtype())
    }
}
