//! Average pooling (`aten/src/ATen/native/cuda/{AveragePool2d,AdaptiveAveragePooling}.cu`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::{Dims, is_channels_last_contiguous};
use super::super::tensor::Tensor;

impl Tape {
    /// `torch.nn.functional.adaptive_avg_pool2d(x, size)`: [n, c, h, w] → [n, c, size], in the memory format of `x`.
    pub fn adaptive_avg_pool2d(&self, x: &Tensor, size: [u64; 2]) -> Tensor {
        let mut rec = self.record("AdaptiveAvgPool2DBackward0", &[x]);
        rec.save(self, x);
        let shape = Dims::new(&[x.size(0), x.size(1), size[0], size[1]]);
        let channels_last = is_channels_last_contiguous(x.shape(), x.strides());
        let strides = |shape: &Dims| match channels_last {
            true => shape.channels_last_strides(),
            false => shape.contiguous_strides(),
        };
        let out = self.empty_strided(shape, strides(&shape), x.dtype(), "adaptive_avg_pool2d");
        let (from, to) = (*x.shape(), strides(x.shape()));
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let dx = t.empty_strided(from, to, g.dtype(), "adaptive_avg_pool2d backward");
            let fits = match channels_last {
                true => is_channels_last_contiguous(g.shape(), g.strides()),
                false => g.is_contiguous(),
            };
            if !fits {
                drop(t.empty(*g.shape(), g.dtype(), "contiguous"));
            }
            smallvec![Some(dx)]
        })
    }

    /// `torch.nn.functional.avg_pool2d(x, side)`: [n, c, h, w] → [n, c, h / side, w / side].
    pub fn avg_pool2d(&self, x: &Tensor, side: u64) -> Tensor {
        let mut rec = self.record("AvgPool2DBackward0", &[x]);
        rec.save(self, x);
        let [n, c, h, w] = [x.size(0), x.size(1), x.size(2), x.size(3)];
        if side == 0 || side > h.min(w) {
            self.misfit("avg_pool2d", &[x.shape(), &[side, side]]);
        }
        let side = side.max(1);
        let out = self.empty([n, c, h / side, w / side], x.dtype(), "avg_pool2d");
        rec.finish(self, out, |t, bw| {
            let x = &bw.saved[0];
            let dx = t.empty(*x.shape(), x.dtype(), "avg_pool2d backward");
            drop(t.contiguous(bw.grad()));
            smallvec![Some(dx)]
        })
    }
}
