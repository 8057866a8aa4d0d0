//! Layer norm and softmax.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of, rows_of};
use crate::dtype::DType;

impl Tape {
    /// `torch.nn.functional.layer_norm` over the last dimension.
    pub fn layer_norm(&self, x: &Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Tensor {
        let bias = bias.map(|b| self.cast_high(b));
        let weight = weight.map(|w| self.cast_high(w));
        let x = &self.cast_high(x);
        let inputs: Vec<&Tensor> = [Some(x), weight.as_ref(), bias.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        let mut rec = self.record("NativeLayerNormBackward0", &inputs);
        for t in &inputs {
            rec.save(self, t);
        }
        let dense = self.dense_copy(x);
        let mark = self.work_mark();
        let out = self.empty(*x.shape(), x.dtype(), "layer_norm");
        let mut rows = *x.shape();
        let last = rows.len() - 1;
        rows[last] = 1;
        let mean = self.empty(rows, DType::F32, "layer_norm mean");
        let rstd = self.empty(rows, DType::F32, "layer_norm rstd");
        let bytes = bytes_of(x);
        self.ran_as(
            mark,
            ("layer_norm", Class::LayerNorm),
            x.dtype(),
            [bytes, bytes],
            rows_of(x),
        );
        drop(dense);
        rec.save(self, &mean);
        rec.save(self, &rstd);
        drop((mean, rstd));
        rec.finish(self, out, |t, bw| {
            let x = bw.saved[0].clone();
            let n = bw.saved.len() - 2;
            let dense = t.dense_copy(&x);
            let mark = t.work_mark();
            let dx = bw.want(0, || t.empty(*x.shape(), x.dtype(), "layer_norm backward"));
            let mut grads = smallvec![dx];
            for i in 1..n {
                let p = &bw.saved[i];
                grads.push(bw.want(i, || t.empty(*p.shape(), p.dtype(), "layer_norm backward")));
            }
            let class = match (1..n).any(|i| bw.wants(i)) {
                true => Class::LayerNormBackward,
                false => Class::LayerNormInputBackward,
            };
            let bytes = bytes_of(&x);
            t.ran_as(
                mark,
                ("layer_norm backward", class),
                x.dtype(),
                [2 * bytes, bytes],
                rows_of(&x),
            );
            drop((t.contiguous(bw.grad()), dense));
            grads
        })
    }

    /// `torch.nn.functional.rms_norm` over the last dimension, without a weight, as one kernel (`_fused_rms_norm`).
    pub fn rms_norm(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("FusedRmsNormBackward0", &[x]);
        rec.save(self, x);
        let dense = self.dense_copy(x);
        let mark = self.work_mark();
        let out = self.empty(*x.shape(), x.dtype(), "rms_norm");
        let mut rows = *x.shape();
        let last = rows.len() - 1;
        rows[last] = 1;
        let rstd = self.empty(rows, DType::F32, "rms_norm rstd");
        let bytes = bytes_of(x);
        self.ran_as(
            mark,
            ("rms_norm", Class::LayerNorm),
            x.dtype(),
            [bytes, bytes],
            rows_of(x),
        );
        drop(dense);
        rec.save(self, &rstd);
        drop(rstd);
        rec.finish(self, out, |t, bw| {
            let x = &bw.saved[0];
            smallvec![Some(t.empty(*x.shape(), x.dtype(), "rms_norm backward"))]
        })
    }

    /// `torch.nn.functional.softmax(x, dim=-1, dtype=dtype)`; `None` keeps the type, except under
    /// autocast, which computes it in fp32.
    pub fn softmax(&self, x: &Tensor, dtype: Option<DType>) -> Tensor {
        self.softmax_like("SoftmaxBackward0", x, dtype, "softmax")
    }

    /// `_safe_softmax(x, -1)`: rows of negative infinities become zeros in place.
    pub(super) fn safe_softmax(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("SafeSoftmaxBackward0", &[x]);
        let mark = self.work_mark();
        let out = self.empty(*x.shape(), x.dtype(), "softmax");
        self.softened(mark, Class::Softmax, &out, 1);
        self.in_safe_softmax(x);
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            let mark = t.work_mark();
            let out = t.empty(*g.shape(), g.dtype(), "softmax");
            t.softened(mark, Class::SoftmaxBackward, &out, 2);
            drop(t.multiplied_by_result(g));
            smallvec![Some(out)]
        })
    }

    /// Finds the rows that are fully masked.
    pub(crate) fn in_safe_softmax(&self, x: &Tensor) {
        let masked = self.empty(*x.shape(), DType::Bool, "isneginf");
        let mut rows = *x.shape();
        let last = rows.len() - 1;
        rows[last] = 1;
        let empty_rows = self.empty(rows, DType::Bool, "rows that are masked");
        let zero = self.empty([], x.dtype(), "0");
        drop((zero, empty_rows, masked));
    }

    /// `torch.nn.functional.log_softmax(x, dim=-1, dtype=dtype)`; with `None` the type is that of [`Tape::softmax`].
    pub fn log_softmax(&self, x: &Tensor, dtype: Option<DType>) -> Tensor {
        self.softmax_like("LogSoftmaxBackward0", x, dtype, "log_softmax")
    }

    /// Records that `out` is a softmax, or its gradient, of `inputs` tensors like it.
    fn softened(&self, mark: usize, class: Class, out: &Tensor, inputs: u64) {
        let bytes = bytes_of(out);
        let dtype = out.dtype();
        self.ran_as(mark, ("softmax", class), dtype, [inputs * bytes, bytes], rows_of(out));
    }

    /// A gradient times the result that forward saved (`softmax_backward_cuda_out`).
    pub(crate) fn multiplied_by_result(&self, g: &Tensor) -> Tensor {
        let out = self.empty(*g.shape(), g.dtype(), "gradient times result");
        if self.works() && out.numel() > 0 {
            self.reads(&out, &[g, &out]);
        }
        out
    }

    /// Softmax or log-softmax. fp16 is widened within the kernel; any other type is converted first
    /// (`aten/src/ATen/native/SoftMax.cpp`).
    fn softmax_like(&self, node: &'static str, x: &Tensor, dtype: Option<DType>, name: &'static str) -> Tensor {
        let under_autocast = self.autocast_dtype().map(|_| DType::F32);
        let dtype = dtype.or(under_autocast).unwrap_or(x.dtype());
        let fused = x.dtype() == DType::F16 && dtype == DType::F32;
        let x = &if fused { x.clone() } else { self.to_dtype(x, dtype) };
        let mut rec = self.record(node, &[x]);
        let from = x.dtype();
        let is_log = name.strip_prefix("log");
        let mark = self.work_mark();
        let out = self.empty(*x.shape(), dtype, name);
        let class = if is_log.is_some() {
            Class::LogSoftmax
        } else {
            Class::Softmax
        };
        self.softened(mark, class, &out, 1);
        drop(self.dense_copy(x));
        rec.save(self, &out);
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad().clone();
            let dense = t.dense_copy(&g);
            let mark = t.work_mark();
            let out = t.empty(*g.shape(), from, name);
            let class = if is_log.is_some() {
                Class::LogSoftmaxBackward
            } else {
                Class::SoftmaxBackward
            };
            t.softened(mark, class, &out, 2);
            // `softmax_backward_cuda_out` multiplies gradient and result first.
            let product = is_log.is_none().then(|| t.multiplied_by_result(&g));
            drop((product, dense, g));
            smallvec![Some(out)]
        })
    }
}
