//! Masks, scatters and selections.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of, rows_of};
use super::cub;
use crate::dtype::DType;

impl Tape {
    /// Makes the result of an operation outside the graph, in the given type: comparisons, masks, ids.
    pub fn compute(&self, like: &Tensor, dtype: DType, name: &'static str) -> Tensor {
        self.empty_like(like, dtype, name)
    }

    /// Writes image features over the image tokens' embeddings; `get_placeholder_mask` requires them to be as wide as
    /// these.
    pub fn place_features(&self, embeds: &Tensor, mask: &Tensor, features: &Tensor) -> Tensor {
        self.fits(
            embeds.last() == features.last(),
            "masked_scatter of image features",
            embeds,
            features,
        );
        self.masked_scatter(embeds, mask, features)
    }

    /// `x.masked_scatter(mask, source)`; the mask is broadcast to the shape of `x`, and excess elements of `source` are
    /// ignored.
    pub fn masked_scatter(&self, x: &Tensor, mask: &Tensor, source: &Tensor) -> Tensor {
        self.fits(x.last() <= source.last(), "masked_scatter", x, source);
        self.scattered(x, mask, source)
    }

    /// `x.new_zeros(mask.shape).masked_scatter(mask, x)`: [n] at the `n` marked places.
    pub fn scatter_marked(&self, x: &Tensor, mask: &Tensor) -> Tensor {
        let zeros = self.empty(*mask.shape(), x.dtype(), "zeros");
        self.scattered(&zeros, mask, x)
    }

    fn scattered(&self, x: &Tensor, mask: &Tensor, source: &Tensor) -> Tensor {
        let mut rec = self.record("MaskedScatterBackward0", &[x, source]);
        rec.save(self, mask);
        let mark = self.work_mark();
        let out = self.empty_like(x, x.dtype(), "masked_scatter");
        self.in_masked_scatter(x, mask);
        let bytes = bytes_of(x);
        self.ran_as(
            mark,
            ("masked_scatter", Class::MaskedScatter),
            x.dtype(),
            [2 * bytes, bytes],
            rows_of(x),
        );
        let source_shape = *source.shape();
        rec.finish(self, out, move |t, bw| {
            let (g, mask) = (bw.grad(), &bw.saved[0]);
            let dx = bw.want(0, || t.empty_like(g, g.dtype(), "masked_fill"));
            let ds = bw.want(1, || t.masked_select(g, mask, &source_shape));
            smallvec![dx, ds]
        })
    }

    /// `x[i].masked_scatter_(mask, source)` of one element of the first dimension, in place: backward copies the gradient of the
    /// whole, then that of the element, whose marked places it clears (`CopySlices` in
    /// `torch/csrc/autograd/functions/tensor.cpp`).
    pub fn scatter_into_row(&self, x: Tensor, mask: &Tensor, source: &Tensor) -> Tensor {
        let mut rec = self.record("CopySlices", &[&x, source]);
        rec.save(self, mask);
        let row = x.alias(x.shape().removed(0), x.strides().removed(0));
        self.in_masked_scatter(&row, mask);
        let (shape, strides) = (*x.shape(), *x.strides());
        let (of_row, of_source) = (*row.shape(), *source.shape());
        let out = x.detach();
        drop((row, x));
        rec.finish(self, out, move |t, bw| {
            let (g, mask) = (bw.grad(), &bw.saved[0]);
            let whole = t.empty_strided(shape, strides, g.dtype(), "gradient of the whole");
            let part = t.empty(of_row, g.dtype(), "gradient of the element");
            let cleared = bw.want(0, || t.empty(of_row, g.dtype(), "masked_fill"));
            let ds = bw.want(1, || t.masked_select(&part, mask, &of_source));
            drop((cleared, part));
            smallvec![bw.want(0, || whole.clone()), ds]
        })
    }

    /// Computes the position of each source element (`masked_scatter_cuda_kernel` in
    /// `aten/src/ATen/native/cuda/IndexKernel.cu`).
    pub(crate) fn in_masked_scatter(&self, x: &Tensor, mask: &Tensor) {
        let prefix = self.empty(*x.shape(), DType::I64, "prefix sum of the mask");
        let dense = self.broadcast_mask(mask, x);
        drop(self.empty([cub::scan(x.numel())], DType::U8, "scan storage"));
        drop((dense, prefix));
    }

    /// `masked_scatter_backward`: finds the marked elements, three coordinates of 8 bytes each, and
    /// gathers them.
    fn masked_select(&self, g: &Tensor, mask: &Tensor, shape: &Dims) -> Tensor {
        self.in_masked_select(g, mask, shape.numel(), || {
            self.empty(*shape, g.dtype(), "masked_select")
        })
    }

    /// Runs `make`, which makes the `marked` elements of `x`, after finding their positions.
    pub(crate) fn in_masked_select<R>(&self, x: &Tensor, mask: &Tensor, marked: u64, make: impl FnOnce() -> R) -> R {
        let dense = self.broadcast_mask(mask, x);
        let places = self.nonzero(dense.as_ref().unwrap_or(mask), marked);
        drop(dense);
        let out = make();
        drop(places);
        out
    }

    /// `x[i, j, …]`: one index tensor of `n` int64 for each leading dimension of `x` → [n, rest of `x`].
    pub fn index(&self, x: &Tensor, indices: &[Tensor]) -> Tensor {
        let mut rec = self.record("IndexBackward0", &[x]);
        for index in indices {
            rec.save(self, index);
        }
        let mut shape = Dims::new(&[indices[0].numel()]);
        for &extent in &x.shape()[indices.len()..] {
            shape = shape.inserted(shape.len(), extent);
        }
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "index");
        self.gathered(mark, &out);
        let from = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let zeros = t.empty(from, bw.grad().dtype(), "zeros");
            let places = from[..bw.saved.len()].iter().product();
            t.sort_index(t.linear_index(&bw.saved), places);
            smallvec![Some(zeros)]
        })
    }

    /// `x[…, [i], …]` of dimension `dim`, a list of one index: that element, copied, with the dimension kept.
    pub fn index_one(&self, x: &Tensor, dim: usize) -> Tensor {
        let index = self.empty([1], DType::I64, "index");
        let mut rec = self.record("IndexBackward0", &[x]);
        rec.save(self, &index);
        let mut shape = *x.shape();
        shape[dim] = 1;
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "index");
        self.gathered(mark, &out);
        drop(index);
        let from = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let zeros = t.empty(from, bw.grad().dtype(), "zeros");
            let linear = t.linear_index(&bw.saved);
            let dense = t.dense_copy(bw.grad());
            t.sort_index(linear, from[dim]);
            drop(dense);
            smallvec![Some(zeros)]
        })
    }

    /// `x[i, j, …]` with indices that are broadcast to each other: [their shape, rest of `x`]. Indices of another shape are
    /// copied, since kernels take them in equal layouts.
    pub fn index_broadcast(&self, x: &Tensor, indices: &[Tensor]) -> Tensor {
        let mut rec = self.record("IndexBackward0", &[x]);
        for index in indices {
            rec.save(self, index);
        }
        let whole = indices[1..].iter().fold(*indices[0].shape(), |shape, index| {
            self.broadcast(&shape, index.shape(), "index")
        });
        let mut shape = whole;
        for &extent in &x.shape()[indices.len()..] {
            shape = shape.inserted(shape.len(), extent);
        }
        let others = indices.iter().filter(|index| *index.shape() != whole);
        let copies: Vec<Tensor> = others
            .map(|_| self.empty(whole, DType::I64, "contiguous index"))
            .collect();
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "index");
        self.gathered(mark, &out);
        drop(copies);
        let from = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let zeros = t.empty(from, bw.grad().dtype(), "zeros");
            let places = from[..bw.saved.len()].iter().product();
            let expanded: Vec<Tensor> = bw.saved.iter().map(|index| t.expand(index, whole)).collect();
            t.sort_index(t.linear_index(&expanded), places);
            smallvec![Some(zeros)]
        })
    }

    /// Combines indices of several dimensions into one: the first half of `index_put_(accumulate=True)`
    /// (`makeLinearIndex` in `aten/src/ATen/native/cuda/Indexing.cu`).
    pub(crate) fn linear_index(&self, indices: &[Tensor]) -> Tensor {
        let linear = |index: &Tensor| {
            let wrapped = self.compute(index, DType::I64, "remainder");
            let scaled = self.compute(&wrapped, DType::I64, "times stride");
            drop(wrapped);
            scaled
        };
        let first = linear(&indices[0]);
        indices[1..].iter().for_each(|index| drop(linear(index)));
        first
    }

    /// Sorts an index into `places` positions, so that values for one position are summed there: the second half
    /// (`index_put_with_sort_kernel`).
    pub(crate) fn sort_index(&self, index: Tensor, places: u64) {
        let bits = u64::from(places.max(1).ilog2()) + 1;
        let ids = |name| self.empty([index.numel()], DType::I64, name);
        let (sorted, order) = (ids("sorted indices"), ids("order of indices"));
        let arange = ids("arange");
        drop(self.empty([cub::sort_pairs(index.numel(), bits)], DType::U8, "sort storage"));
        drop((arange, order, sorted, index));
    }

    /// Records that `out` was gathered row by row.
    pub(super) fn gathered(&self, mark: usize, out: &Tensor) {
        let bytes = bytes_of(out);
        self.ran_as(
            mark,
            ("index", Class::Gather),
            out.dtype(),
            [bytes, bytes],
            rows_of(out),
        );
    }

    /// Makes the mask in the shape of `like` and contiguous, unless it already is: `nonzero` and `masked_scatter` copy
    /// one that is expanded.
    fn broadcast_mask(&self, mask: &Tensor, like: &Tensor) -> Option<Tensor> {
        let dense = mask.shape() == like.shape() && mask.is_contiguous();
        (!dense).then(|| self.empty(*like.shape(), DType::Bool, "contiguous copy of the mask"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Gemma 4's positions of 280 patches on two axes: the index of the axes is copied to the shape of the other.
    #[test]
    fn an_index_of_another_shape_is_copied() {
        let t = Tape::new(Gpu::H200);
        let table = t.empty([1120, 2, 8], DType::F32, "positions");
        let places = t.empty([1, 280, 2], DType::I64, "places");
        let axes = t.empty([2], DType::I64, "axes");
        let out = t.index_broadcast(&table, &[places.clone(), axes.clone()]);
        assert_eq!(out.shape()[..], [1, 280, 2, 8]);
        drop((out, axes, places, table));
        let sizes: Vec<u64> = t.finish().allocations.iter().skip(3).map(|b| b.bytes).collect();
        assert_eq!(sizes, [280 * 2 * 8, 280 * 2 * 8 * 4]);
    }

    /// A mask that is expanded over the width is copied before its marked elements are found.
    #[test]
    fn an_expanded_mask_is_copied() {
        let first = |expanded: bool| {
            let t = Tape::new(Gpu::H200);
            let narrow = t.empty([2, 16, 1], DType::Bool, "mask");
            let whole = t.empty([2, 16, 64], DType::Bool, "mask");
            let mask = if expanded {
                t.expand(&narrow, [2, 16, 64])
            } else {
                whole.clone()
            };
            drop(t.nonzero(&mask, 10));
            drop((mask, whole, narrow));
            t.finish().allocations[2].bytes
        };
        assert_eq!([first(true), first(false)], [2 * 16 * 64, 4]);
    }
}
