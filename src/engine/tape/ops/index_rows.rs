//! Rows at the marked positions of a mask: reading, writing, and their gradients
//! (`aten/src/ATen/native/TensorAdvancedIndexing.cpp`, `native/cuda/Indexing.cu`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::failure::Failure;
use super::super::tensor::Tensor;
use crate::dtype::DType;

impl Tape {
    /// `x[mask]`: the parts at the `marked` positions of the first dimensions, so [batch, seq, width] by a mask of
    /// [batch, seq] → [marked, width].
    pub fn index_rows(&self, x: &Tensor, mask: &Tensor, marked: u64) -> Tensor {
        let mut rec = self.record("IndexBackward0", &[x]);
        rec.save(self, mask);
        let out = self.gather_rows(x, mask, marked);
        let shape = *x.shape();
        let masked = shape[..mask.dim()].iter().product();
        rec.finish(self, out, move |t, bw| {
            let out = t.empty(shape, bw.grad().dtype(), "index backward");
            let places = t.nonzero(&bw.saved[0], marked);
            let index = t.linear_index(&t.columns(&places));
            drop(places);
            // Nothing is sorted for no rows.
            if marked > 0 {
                t.sort_index(index, masked);
            }
            smallvec![Some(out)]
        })
    }

    /// `x[mask] = values`, in place.
    pub fn index_put_rows(&self, x: Tensor, mask: &Tensor, values: &Tensor) -> Tensor {
        let fits = values.dim() == 1 + x.dim() - mask.dim() && (values.dim() == 1 || x.last() == values.last());
        self.fits(fits, "index_put_", &x, values);
        let mut rec = self.record("IndexPutBackward0", &[&x, values]);
        rec.save(self, mask);
        let marked = values.size(0);
        drop(self.nonzero(mask, marked));
        let out = x.detach();
        drop(x);
        let (shape, dtype) = (*values.shape(), values.dtype());
        rec.finish(self, out, move |t, bw| {
            let (g, mask) = (bw.grad(), &bw.saved[0]);
            let dx = bw.want(0, || t.put_zeros(g, mask, (shape, dtype, marked)));
            let dvalues = bw.want(1, || t.gather_rows(g, mask, marked));
            smallvec![dx, dvalues]
        })
    }

    /// Fails a run in which a module puts `rows` into a tensor of another type.
    pub fn can_put(&self, module: &'static str, tensor: &Tensor, rows: &Tensor) {
        if tensor.dtype() != rows.dtype() {
            self.fail(|| Failure::PutUnderAutocast {
                module: module.to_owned(),
                rows: rows.dtype(),
                tensor: tensor.dtype(),
            });
        }
    }

    /// `x[mask, :] = value`, in place, for one row [width] that `marked` rows take.
    pub fn index_put_one(&self, x: Tensor, mask: &Tensor, value: &Tensor, marked: u64) -> Tensor {
        self.fits(x.last() == value.last(), "index_put_", &x, value);
        let mut rec = self.record("IndexPutBackward0", &[&x, value]);
        rec.save(self, mask);
        drop(self.nonzero(mask, marked));
        let out = x.detach();
        drop(x);
        let (shape, dtype) = (*value.shape(), value.dtype());
        rec.finish(self, out, move |t, bw| {
            let (g, mask) = (bw.grad(), &bw.saved[0]);
            let dx = bw.want(0, || t.put_zeros(g, mask, (shape, dtype, marked)));
            let dvalue = bw.want(1, || {
                let rows = t.gather_rows(g, mask, marked);
                t.view(&t.sum_dim(&rows, 0), shape)
            });
            smallvec![dx, dvalue]
        })
    }

    fn gather_rows(&self, x: &Tensor, mask: &Tensor, marked: u64) -> Tensor {
        let places = self.nonzero(mask, marked);
        let mark = self.work_mark();
        let mut shape = Dims::new(&[marked]);
        for &extent in &x.shape()[mask.dim()..] {
            shape = shape.inserted(shape.len(), extent);
        }
        let out = self.empty(shape, x.dtype(), "index");
        self.gathered(mark, &out);
        drop(places);
        out
    }

    /// `torch.index_select(x, 0, index)`.
    pub fn index_select(&self, x: &Tensor, index: &Tensor) -> Tensor {
        let mut rec = self.record("IndexSelectBackward0", &[x]);
        rec.save(self, index);
        let from = *x.shape();
        let mark = self.work_mark();
        let out = self.empty(from.removed(0).inserted(0, index.numel()), x.dtype(), "index_select");
        self.gathered(mark, &out);
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty(from, bw.grad().dtype(), "index_select backward"))]
        })
    }

    /// `x.index_add(0, index, values)` for an `x` without a gradient, whose rows at the index get the values too. Backward
    /// takes these rows of the gradient, and needs the values for their shape.
    pub fn index_add(&self, x: &Tensor, index: &Tensor, values: &Tensor) -> Tensor {
        self.fits(x.last() == values.last(), "index_add", x, values);
        let mut rec = self.record("IndexAddBackward0", &[values]);
        rec.save(self, index);
        rec.save(self, values);
        let out = self.empty_like(x, x.dtype(), "index_add");
        rec.finish(self, out, |t, bw| {
            let shape = *bw.saved[1].shape();
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "index_select"))]
        })
    }

    /// `x.index_add_(0, index, values)`: rows of `x` at the index get the values too, with no new memory. Backward is that
    /// of [`Tape::index_add`], beside the gradient of `x`.
    pub fn index_add_(&self, x: Tensor, index: &Tensor, values: &Tensor) -> Tensor {
        self.fits(x.last() == values.last(), "index_add_", &x, values);
        let mut rec = self.record("IndexAddBackward0", &[&x, values]);
        rec.save(self, index);
        rec.save(self, values);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, |t, bw| {
            let shape = *bw.saved[1].shape();
            let whole = bw.want(0, || bw.grad().clone());
            let rows = bw.want(1, || t.empty(shape, bw.grad().dtype(), "index_select"));
            smallvec![whole, rows]
        })
    }

    /// `x.index_copy_(0, index, values)` for an `x` without a gradient, whose rows at the index become the values: no new
    /// memory. Backward is that of [`Tape::index_add`].
    pub fn index_copy(&self, x: Tensor, index: &Tensor, values: &Tensor) -> Tensor {
        self.fits(x.last() == values.last(), "index_copy_", &x, values);
        let mut rec = self.record("IndexCopyBackward0", &[values]);
        rec.save(self, index);
        rec.save(self, values);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, |t, bw| {
            let mark = t.work_mark();
            let shape = *bw.saved[1].shape();
            let rows = t.empty(shape, bw.grad().dtype(), "index_select");
            t.gathered(mark, &rows);
            smallvec![Some(rows)]
        })
    }

    /// `g.index_put(mask, zeros)`, with zeros like the values that were written to `marked` rows.
    fn put_zeros(&self, g: &Tensor, mask: &Tensor, (shape, dtype, marked): (Dims, DType, u64)) -> Tensor {
        let zeros = self.empty(shape, dtype, "zeros");
        let out = self.empty_like(g, g.dtype(), "index_put");
        drop(self.nonzero(mask, marked));
        drop(zeros);
        out
    }

    /// Splits coordinates [marked, dims] into one index for each dimension.
    fn columns(&self, places: &Tensor) -> Vec<Tensor> {
        self.unbind(&self.transpose(places, 0, 1))
    }

    /// `x[i, …]` of the first dimension, with an index of this shape on the host that is copied to the GPU each time: in
    /// backward once its rows are counted there (`computeLinearIndex`).
    pub fn index_from_host(&self, x: &Tensor, index: impl Into<Dims>) -> Tensor {
        let rec = self.record("IndexBackward0", &[x]);
        let mut shape: Dims = index.into();
        let n = shape.numel();
        let copied = move |t: &Self| t.empty([n], DType::I64, "copy of the index");
        let index = copied(self);
        for &extent in &x.shape()[1..] {
            shape = shape.inserted(shape.len(), extent);
        }
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "index");
        self.gathered(mark, &out);
        drop(index);
        let from = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let zeros = t.empty(from, bw.grad().dtype(), "zeros");
            let index = copied(t);
            let dense = t.dense_copy(bw.grad());
            t.sort_index(index, from[0]);
            drop(dense);
            smallvec![Some(zeros)]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Qwen3-VL's features added at 576 image tokens of 2 × 1024 positions, from its allocator trace.
    #[test]
    fn rows_at_marks_make_what_the_trace_shows() {
        let t = Tape::new(Gpu::H200);
        let x = t.parameter([2, 1024, 2048], DType::Bf16, "x");
        let mask = t.empty([2, 1024], DType::Bool, "mask");
        let start = t.mark();
        let rows = t.index_rows(&x, &mask, 576);
        t.backward(&rows);
        drop((rows, x, mask));
        let log = t.finish();
        let allocations = log.events[start..].iter().filter(|e| e.is_alloc());
        let allocations: Vec<u64> = allocations
            .map(|e| log.allocations[e.storage() as usize].bytes)
            .collect();
        let forward = [4, 1, 9216, 1023, 2_359_296];
        let seed = [2_359_296];
        let places = [8_388_608, 4, 1, 9216, 1023];
        let sorting = [4608, 4608, 4608, 4608, 4608, 4608, 4608, 1];
        assert_eq!(allocations, [&forward[..], &seed, &places, &sorting].concat());
    }
}
