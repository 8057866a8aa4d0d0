//! Losses.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of, rows_of};

impl Tape {
    /// `torch.nn.functional.cross_entropy(logits, target)`: [n, classes], [n] → [].
    ///
    /// It passes a type to its `log_softmax`, so autocast leaves that unchanged and widens only the input of `nll_loss`
    /// (`aten/src/ATen/native/LossNLL.cpp`).
    pub fn cross_entropy(&self, logits: &Tensor, target: &Tensor) -> Tensor {
        let log_probs = self.log_softmax(logits, Some(logits.dtype()));
        let log_probs = self.cast_high(&log_probs);
        self.nll_loss(&log_probs, target)
    }

    /// `torch.nn.functional.cross_entropy(logits, target, reduction="none")`: [n, classes], [n] → [n].
    pub fn cross_entropy_of_rows(&self, logits: &Tensor, target: &Tensor) -> Tensor {
        let log_probs = self.log_softmax(logits, Some(logits.dtype()));
        let log_probs = self.cast_high(&log_probs);
        self.nll(&log_probs, target, *target.shape())
    }

    /// `torch.nn.functional.nll_loss(log_probs, target)`.
    pub fn nll_loss(&self, log_probs: &Tensor, target: &Tensor) -> Tensor {
        self.nll(log_probs, target, Dims::new(&[]))
    }

    /// `nll_loss` with a result of this shape: a number, or one of each row.
    fn nll(&self, log_probs: &Tensor, target: &Tensor, shape: Dims) -> Tensor {
        let mut rec = self.record("NllLossBackward0", &[log_probs]);
        rec.save(self, log_probs);
        rec.save(self, target);
        let mark = self.work_mark();
        let out = self.empty(shape, log_probs.dtype(), "loss");
        let total_weight = self.empty([], log_probs.dtype(), "total weight");
        let rows = rows_of(log_probs);
        self.ran_as(
            mark,
            ("nll_loss", Class::Nll),
            log_probs.dtype(),
            [rows[0] * 16, 8],
            rows,
        );
        rec.save(self, &total_weight);
        drop(total_weight);
        rec.finish(self, out, |t, bw| {
            let log_probs = &bw.saved[0];
            let mark = t.work_mark();
            let out = t.empty(*log_probs.shape(), log_probs.dtype(), "nll_loss backward");
            let bytes = [rows_of(&out)[0] * 16, bytes_of(&out)];
            t.ran_as(
                mark,
                ("nll_loss backward", Class::NllBackward),
                out.dtype(),
                bytes,
                rows_of(&out),
            );
            smallvec![Some(out)]
        })
    }
}
