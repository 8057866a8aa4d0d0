//! Average pooling.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;

impl Tape {
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
