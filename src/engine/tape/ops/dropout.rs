//! Dropout.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use crate::dtype::DType;

impl Tape {
    /// `torch.nn.Dropout(p)`.
    pub fn dropout(&self, x: &Tensor, p: f64) -> Tensor {
        self.functional_dropout(x, self.module_dropout(p))
    }

    /// `torch.nn.functional.dropout(x, p, training)`: the input itself at `p` = 0 or in evaluation, else a
    /// mask of one byte per element and the result.
    pub fn functional_dropout(&self, x: &Tensor, p: f64) -> Tensor {
        if p == 0.0 || !self.0.training.get() {
            return x.clone();
        }
        let mut rec = self.record("NativeDropoutBackward0", &[x]);
        let mark = self.work_mark();
        let mask = self.empty_like(x, DType::Bool, "dropout mask");
        let out = self.empty_like(x, x.dtype(), "dropout");
        let read = bytes_of(x);
        self.ran_as(
            mark,
            ("dropout", Class::Pointwise),
            x.dtype(),
            [read, read + x.numel()],
            [0; 4],
        );
        rec.save(self, &mask);
        drop(mask);
        rec.finish(self, out, |t, bw| {
            smallvec![Some(t.empty_like(bw.grad(), bw.grad().dtype(), "dropout backward"))]
        })
    }
}
