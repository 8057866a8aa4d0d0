//! Operations whose result size depends on values: `nonzero`, indexing by a mask, `repeat_interleave`.
//!
//! The caller gives the number of elements; none of these is part of the graph.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims;
use super::super::tensor::Tensor;
use super::cub;
use crate::dtype::DType;

impl Tape {
    /// `mask.nonzero()`: coordinates of the `marked` elements, [marked, dims] in int64
    /// (`aten/src/ATen/native/cuda/Nonzero.cu`).
    pub fn nonzero(&self, mask: &Tensor, marked: u64) -> Tensor {
        self.in_nonzero(mask, || {
            self.empty([marked, mask.dim() as u64], DType::I64, "places of marked elements")
        })
    }

    /// Runs `make`, which makes the positions of the marked elements, after counting them in a contiguous mask.
    pub(crate) fn in_nonzero<R>(&self, mask: &Tensor, make: impl FnOnce() -> R) -> R {
        let dense =
            (!mask.is_contiguous()).then(|| self.empty(*mask.shape(), mask.dtype(), "contiguous copy of the mask"));
        let count = self.empty([], DType::I32, "number of marked elements");
        drop(self.empty([cub::reduce(mask.numel(), &self.0.gpu)], DType::U8, "reduce storage"));
        self.wait();
        let places = make();
        drop(self.empty([cub::select(mask.numel())], DType::U8, "select storage"));
        drop((count, dense));
        places
    }

    /// `torch.where(mask, a, b)` of tensors of one shape.
    pub fn select_where(&self, mask: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("WhereBackward0", &[a, b]);
        rec.save(self, mask);
        let out = self.empty(*a.shape(), a.dtype(), "where");
        // The mask is the first operand, also of backward: gradients lie as it does if it has the whole shape.
        let of_mask = (mask.shape() == a.shape()).then(|| dims::dense_strides_like(mask.shape(), mask.strides()));
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let zero_elsewhere = || {
                let zero = t.empty([], g.dtype(), "0");
                let out = match of_mask {
                    Some(strides) => t.empty_strided(*g.shape(), strides, g.dtype(), "where backward"),
                    None => t.empty_like(g, g.dtype(), "where backward"),
                };
                drop(zero);
                out
            };
            // Alphabetical: other, then self.
            let grad_b = bw.want(1, zero_elsewhere);
            let grad_a = bw.want(0, zero_elsewhere);
            smallvec![grad_a, grad_b]
        })
    }

    /// `torch.where(mask, 0.0, x)`: the number becomes a tensor.
    pub fn zero_where(&self, mask: &Tensor, x: &Tensor) -> Tensor {
        let mut rec = self.record("WhereBackward0", &[x]);
        rec.save(self, mask);
        let number = self.empty([], x.dtype(), "0");
        let out = self.empty(*x.shape(), x.dtype(), "where");
        drop(number);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            let zero = t.empty([], g.dtype(), "0");
            let out = t.empty_like(g, g.dtype(), "where backward");
            drop(zero);
            smallvec![Some(out)]
        })
    }

    /// `torch.where(mask, x, number)` of a mask that is broadcast to `x`: the number becomes a tensor, and the result lies as `x`
    /// does.
    pub fn where_or_lowest(&self, mask: &Tensor, x: &Tensor) -> Tensor {
        let mut rec = self.record("WhereBackward0", &[x]);
        rec.save(self, mask);
        let number = self.empty([], x.dtype(), "lowest value");
        let out = self.empty_like(x, x.dtype(), "where");
        drop(number);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            let zero = t.empty([], g.dtype(), "0");
            let out = t.empty_like(g, g.dtype(), "where backward");
            drop(zero);
            smallvec![Some(out)]
        })
    }

    /// `torch.clamp(x, min=number)`, or with `max` in its place.
    pub fn clamp(&self, x: &Tensor) -> Tensor {
        self.clamped(x, false)
    }

    /// `torch.clamp(x, min=number, max=number)`.
    pub fn clamp_between(&self, x: &Tensor) -> Tensor {
        self.clamped(x, true)
    }

    /// Clamps on one side or on both: backward compares the input with each number.
    fn clamped(&self, x: &Tensor, between: bool) -> Tensor {
        let mut rec = self.record("ClampBackward1", &[x]);
        rec.save(self, x);
        let out = self.empty_like(x, x.dtype(), "clamp");
        rec.finish(self, out, move |t, bw| {
            let (g, x) = (bw.grad(), &bw.saved[0]);
            let zero = t.empty([], g.dtype(), "0");
            let within = t.compute(x, DType::Bool, "comparison");
            let below = between.then(|| t.compute(x, DType::Bool, "comparison"));
            let out = t.empty_like(g, g.dtype(), "clamp backward");
            drop((zero, within, below));
            smallvec![Some(out)]
        })
    }

    /// `x[mask]` of ids in one dimension, `marked` of them.
    pub fn index_ids(&self, mask: &Tensor, marked: u64, dtype: DType) -> Tensor {
        let places = self.nonzero(mask, marked);
        let out = self.empty([marked], dtype, "index");
        drop(places);
        out
    }

    /// `x.cumsum(0)` of ids in one dimension.
    pub fn cumsum_ids(&self, x: &Tensor, dtype: DType) -> Tensor {
        let out = self.empty(*x.shape(), dtype, "cumsum");
        self.in_cumsum_of_row(x, dtype);
        out
    }

    /// Allocates the memory of CUB's scan over a single row, whose sums have this type.
    pub(crate) fn in_cumsum_of_row(&self, x: &Tensor, dtype: DType) {
        let source = (x.dtype() != dtype || !x.is_contiguous()).then(|| self.empty(*x.shape(), dtype, "copy to sum"));
        let storage = match dtype {
            DType::I64 => cub::scan(x.numel()),
            _ => cub::scan_i32(x.numel()),
        };
        drop(self.empty([storage], DType::U8, "scan storage"));
        drop(source);
    }

    /// `torch.unique_consecutive(x)` of one-dimensional ids: memory for all of them, resized in place
    /// (`aten/src/ATen/native/cuda/UniqueCub.cu`).
    pub fn unique_consecutive_ids(&self, x: &Tensor) -> Tensor {
        let out = self.empty(*x.shape(), x.dtype(), "unique_consecutive");
        self.in_unique_consecutive(x);
        out
    }

    /// Allocates the count of elements that differ from the one before, and CUB's storage.
    pub(crate) fn in_unique_consecutive(&self, x: &Tensor) {
        let count = self.empty([], DType::I64, "number of unique elements");
        drop(self.empty([cub::select(x.numel())], DType::U8, "unique storage"));
        drop(count);
    }

    /// `torch.repeat_interleave(x, repeats)` of one-dimensional ids, with `total` elements
    /// (`aten/src/ATen/native/Repeat.cpp`, `native/cuda/Repeat.cu`).
    pub fn repeat_interleave_ids(&self, x: &Tensor, repeats: &Tensor, total: u64) -> Tensor {
        let index = self.in_repeat_interleave(repeats, || self.empty([total], DType::I64, "repeat_interleave"));
        let out = self.empty([total], x.dtype(), "index_select");
        drop(index);
        out
    }

    /// Runs `make`, which makes `torch.repeat_interleave(repeats)`, while the end positions are allocated.
    pub(crate) fn in_repeat_interleave<R>(&self, repeats: &Tensor, make: impl FnOnce() -> R) -> R {
        let dense = (!repeats.is_contiguous()).then(|| self.empty(*repeats.shape(), DType::I64, "contiguous copy"));
        let ends = self.cumsum_ids(repeats, DType::I64);
        let valid = self.empty(*repeats.shape(), DType::Bool, "repeats ≥ 0");
        drop(self.empty([], DType::Bool, "all"));
        drop(valid);
        let index = make();
        drop((ends, dense));
        index
    }
}
