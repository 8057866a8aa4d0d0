//! Writing into a part of a tensor, and filling by a mask.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;

impl Tape {
    /// `x[:, …, i] = value` for an index of dimension `dim`: no new memory. Backward copies the gradient of the whole,
    /// then that of the part, which it replaces by zeros if what was there before needs a gradient (`CopySlices` in
    /// `torch/csrc/autograd/functions/tensor.cpp`).
    pub fn set_selected(&self, x: Tensor, dim: usize, value: &Tensor) -> Tensor {
        let part = x.shape().removed(dim);
        self.set_part(x, part, value)
    }

    /// `x[i, a:b] = value` for rows of one element of the first dimension, as many as `value` has.
    pub fn set_rows(&self, x: Tensor, value: &Tensor) -> Tensor {
        let mut part = x.shape().removed(0);
        part[0] = value.size(0);
        self.set_part(x, part, value)
    }

    /// `x[…] = value` for a view of `x` of the given shape.
    pub fn set_view(&self, x: Tensor, part: impl Into<Dims>, value: &Tensor) -> Tensor {
        self.set_part(x, part.into(), value)
    }

    /// `x[a:b] = value` for elements of the first dimension, as many as `value` has.
    pub fn set_slice(&self, x: Tensor, value: &Tensor) -> Tensor {
        let mut part = *x.shape();
        if *value.shape() == part {
            return self.overwrite(x, value);
        }
        part[0] = value.size(0);
        self.set_part(x, part, value)
    }

    /// `x[.., a:b].copy_(value)` for elements of the last dimension, as many as `value` has.
    pub fn set_columns(&self, x: Tensor, value: &Tensor) -> Tensor {
        let mut part = *x.shape();
        part[x.dim() - 1] = value.last();
        self.set_part(x, part, value)
    }

    /// `x += value` for a view `x` of all of a tensor: no new memory. Backward copies the gradient of the whole, then that
    /// of the view, which it splits (`CopySlices`).
    pub fn add_to_view(&self, x: Tensor, value: &Tensor) -> Tensor {
        let shape = *x.shape();
        self.add_to_part(x, shape, value)
    }

    /// `view += value` for a view of `x`, of the given shape: no new memory. Backward is that of [`Tape::add_to_view`].
    pub fn add_to_part(&self, x: Tensor, part: impl Into<Dims>, value: &Tensor) -> Tensor {
        let rec = self.record("CopySlices", &[&x, value]);
        let part: Dims = part.into();
        let (shape, strides) = (*x.shape(), *x.strides());
        self.fits(self.broadcast(&part, value.shape(), "add_") == part, "add_", &x, value);
        self.add_in_place(&x, value);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let whole = t.empty_strided(shape, strides, g.dtype(), "gradient of the whole");
            let part = t.empty(part, g.dtype(), "gradient of the view");
            smallvec![bw.want(0, || whole.clone()), bw.want(1, || part.clone())]
        })
    }

    /// A view that was written into: backward fills a gradient of the whole (`AsStridedBackward0`).
    pub fn view_again(&self, x: &Tensor) -> Tensor {
        self.part_again(x, x.detach())
    }

    /// [`Tape::view_again`] for a view of `x` that is not all of it, or lies otherwise.
    fn part_again(&self, x: &Tensor, view: Tensor) -> Tensor {
        let rec = self.record("AsStridedBackward0", &[x]);
        let shape = *x.shape();
        rec.finish(self, view, move |t, bw| {
            let dtype = bw.grad().dtype();
            smallvec![Some(t.empty(shape, dtype, "gradient of the whole"))]
        })
    }

    /// `x.permute(order)` of a view that was written into, as [`Tape::view_again`].
    pub fn permute_again(&self, x: &Tensor, order: &[usize]) -> Tensor {
        self.part_again(x, x.alias(x.shape().permuted(order), x.strides().permuted(order)))
    }

    /// `x[a:b] += value` for `len` elements of the first dimension, which Python then also assigns to `x[a:b]`: backward is
    /// that of the assignment, of the view, and of the sum.
    pub fn add_to_slice(&self, x: Tensor, len: u64, value: &Tensor) -> Tensor {
        let mut part = *x.shape();
        part[0] = len;
        let x = self.add_to_part(x, part, value);
        let sum = self.part_again(&x, x.narrow_raw(0, len));
        self.set_part(x, part, &sum)
    }

    /// Writes over all of a tensor that needs no gradient: that of the whole is the value's (`CopyBackwards`).
    fn overwrite(&self, x: Tensor, value: &Tensor) -> Tensor {
        let rec = self.record("CopyBackwards", &[value]);
        let out = x.detach();
        drop(x);
        let dtype = value.dtype();
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            smallvec![Some(match dtype == g.dtype() {
                true => g.clone(),
                false => t.to_dtype_raw(g, dtype),
            })]
        })
    }

    /// Writes into a part of a tensor, of the given shape.
    fn set_part(&self, x: Tensor, part_shape: Dims, value: &Tensor) -> Tensor {
        let rec = self.record("CopySlices", &[&x, value]);
        let (shape, strides) = (*x.shape(), *x.strides());
        self.fits(*value.shape() == part_shape, "writing into a part", &x, value);
        let out = x.detach();
        drop(x);
        let dtype = value.dtype();
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let whole = t.empty_strided(shape, strides, g.dtype(), "gradient of the whole");
            let part = t.empty(part_shape, g.dtype(), "gradient of the part");
            let zeros = bw.want(0, || t.empty(part_shape, g.dtype(), "zeros"));
            let of_value = bw.want(1, || match dtype == part.dtype() {
                true => part.clone(),
                false => t.to_dtype_raw(&part, dtype),
            });
            drop((zeros, part));
            smallvec![bw.want(0, || whole.clone()), of_value]
        })
    }
}
