//! Operations that choose rows and bring them into order: top-k, sorts, gathers, masks over rows.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::cub;
use super::views::promote;
use crate::dtype::DType;
use crate::tape::dims::Dims;

impl Tape {
    /// `torch.topk(x, k, dim=-1)`: values and their places in int64. Backward scatters the gradient into zeros
    /// (`value_selecting_reduction_backward`).
    pub fn topk(&self, x: &Tensor, k: u64) -> [Tensor; 2] {
        let mut rec = self.record("TopkBackward0", &[x]);
        let mut shape = *x.shape();
        let last = shape.len() - 1;
        shape[last] = k;
        let values = self.empty(shape, x.dtype(), "topk");
        let places = self.empty(shape, DType::I64, "places of topk");
        let n = x.last();
        self.in_topk([x.numel() / n.max(1), n], x.dtype().width());
        rec.save(self, &places);
        let from = *x.shape();
        let values = rec.finish(self, values, move |t, bw| {
            smallvec![Some(t.empty(from, bw.grad().dtype(), "topk backward"))]
        });
        [values, places]
    }

    /// `x.max(dim=-1, keepdim=True).values`.
    pub fn max_last(&self, x: &Tensor) -> Tensor {
        let [values, _places] = self.max_with_places(x);
        values
    }

    /// `x.max(dim=-1, keepdim=True)`: values and their places in int64. Backward scatters the gradient into zeros, as that
    /// of `topk`.
    pub fn max_with_places(&self, x: &Tensor) -> [Tensor; 2] {
        let mut rec = self.record("MaxBackward0", &[x]);
        let mut shape = *x.shape();
        let last = shape.len() - 1;
        shape[last] = 1;
        let values = self.empty(shape, x.dtype(), "max");
        let places = self.empty(shape, DType::I64, "places of max");
        rec.save(self, &places);
        let from = *x.shape();
        let values = rec.finish(self, values, move |t, bw| {
            smallvec![Some(t.empty(from, bw.grad().dtype(), "max backward"))]
        });
        [values, places]
    }

    /// `x.gather(-1, places)`: backward adds the gradient to zeros.
    pub fn gather_last(&self, x: &Tensor, places: &Tensor) -> Tensor {
        let mut rec = self.record("GatherBackward0", &[x]);
        rec.save(self, x);
        rec.save(self, places);
        let out = self.empty(*places.shape(), x.dtype(), "gather");
        let from = *x.shape();
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty(from, bw.grad().dtype(), "gather backward"))]
        })
    }

    /// `x.logsumexp(-1)`, which autocast runs in fp32 (`logsumexp_out_impl` in `aten/src/ATen/native/ReduceOps.cpp`); backward makes
    /// the softmax anew (`logsumexp_backward` in `FunctionsManual.cpp`).
    pub fn logsumexp(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let mut rec = self.record("LogsumexpBackward0", &[x]);
        rec.save(self, x);
        let rows = x.shape().removed(x.dim() - 1);
        let out = self.empty(rows, x.dtype(), "logsumexp");
        self.in_logsumexp(x, rows);
        rec.save(self, &out);
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let dtype = bw.grad().dtype();
            let difference = t.empty(shape, dtype, "x - logsumexp");
            let softmax = t.empty(shape, dtype, "exp");
            let gradient = t.empty(shape, dtype, "logsumexp backward");
            t.reads(&gradient, &[&difference, &softmax]);
            drop((softmax, difference));
            smallvec![Some(gradient)]
        })
    }

    /// Memory inside `logsumexp`, whose result has the shape `rows`: the largest of each row, and the exponentials of what is
    /// below it.
    pub(crate) fn in_logsumexp(&self, x: &Tensor, rows: Dims) {
        let maxes = self.empty(rows, x.dtype(), "amax");
        let shifted = self.empty(*x.shape(), x.dtype(), "exp(x - max)");
        self.reads(&shifted, &[x]);
        drop((shifted, maxes));
    }

    /// `torch.sort(ids)` of int64 in one dimension: sorted ids, and the order that sorts them.
    pub fn sort_ids(&self, ids: &Tensor) -> [Tensor; 2] {
        let sorted = self.empty(*ids.shape(), DType::I64, "sorted");
        let order = self.empty(*ids.shape(), DType::I64, "order");
        self.in_sort([1, ids.numel()], DType::I64.width());
        [sorted, order]
    }

    /// `counts.cumsum(0, dtype=torch.int32)` of int32 in one dimension.
    pub fn ends_of(&self, counts: &Tensor) -> Tensor {
        let out = self.empty(*counts.shape(), DType::I32, "cumsum");
        drop(self.empty([cub::scan_i32(counts.numel())], DType::U8, "scan storage"));
        out
    }

    /// `x.scatter_(-1, places, values)` into a tensor without a gradient: no new memory. Backward gathers.
    pub fn scatter_(&self, x: Tensor, places: &Tensor, values: &Tensor) -> Tensor {
        let mut rec = self.record("ScatterBackward0", &[values]);
        rec.save(self, places);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, |t, bw| {
            let shape = *bw.saved[0].shape();
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "gather"))]
        })
    }

    /// `torch.multinomial(probs, num_samples=1)` of probabilities [rows, n]: [rows, 1] in int64.
    pub fn multinomial(&self, probs: &Tensor) -> Tensor {
        let drawn = self.empty([probs.size(0), 1], DType::I64, "multinomial");
        self.in_multinomial(probs);
        drawn
    }

    /// Allocates the exponentials that one sample is drawn by (`aten/src/ATen/native/Distributions.cpp`).
    pub(crate) fn in_multinomial(&self, probs: &Tensor) {
        drop(self.empty_like(probs, probs.dtype(), "exponentials"));
    }

    /// `x.masked_fill(mask, value)`.
    pub fn masked_fill(&self, x: &Tensor, mask: &Tensor) -> Tensor {
        let mut rec = self.record("MaskedFillBackward0", &[x]);
        rec.save(self, mask);
        let out = self.empty_like(x, x.dtype(), "masked_fill");
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "masked_fill backward"))]
        })
    }

    /// `x.masked_fill_(mask, value)`: no new memory; its backward is that of `masked_fill`.
    pub fn masked_fill_(&self, x: Tensor, mask: &Tensor) -> Tensor {
        let mut rec = self.record("MaskedFillBackward0", &[&x]);
        rec.save(self, mask);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "masked_fill backward"))]
        })
    }

    /// `x /= y` of a tensor of the same dimensions: backward of `y` needs the dividend, so a copy of it is saved.
    pub fn div_(&self, x: Tensor, y: &Tensor) -> Tensor {
        let mut rec = self.record("DivBackward0", &[&x, y]);
        if rec.wants(1) {
            let dividend = self.empty_like(&x, x.dtype(), "dividend");
            rec.save(self, &dividend);
        }
        rec.save(self, y);
        let (wants_y, out) = (rec.wants(1), x.detach());
        drop(x);
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let y = bw.saved.last().unwrap_or(g);
            let like = |a: &Tensor, b: &Tensor| t.elementwise(a, b, promote(a.dtype(), b.dtype()), "div backward");
            // Alphabetical: other, then self.
            let grad_y = wants_y.then(|| {
                let quotient = like(&bw.saved[0], y);
                let twice = like(&quotient, y);
                let negated = t.empty_like(g, g.dtype(), "div backward");
                let out = like(&negated, &twice);
                drop((negated, twice, quotient));
                out
            });
            let grad_x = bw.want(0, || like(g, y));
            smallvec![grad_x, grad_y]
        })
    }
}
