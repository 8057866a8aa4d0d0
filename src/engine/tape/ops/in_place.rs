//! Writing into a part of a tensor, and filling by a mask.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;

impl Tape {
    /// `x[:, …, i] = value` for an index of dimension `dim`: no new memory. Backward copies the gradient of the whole,
    /// then that of the part, which it replaces by zeros if what was there before needs a gradient (`CopySlices` in
    /// `torch/csrc/autograd/functions/tensor.cpp`).
    pub fn set_selected(&self, x: Tensor, dim: usize, value: &Tensor) -> Tensor {
        let rec = self.record("CopySlices", &[&x, value]);
        let (shape, strides, part_shape) = (*x.shape(), *x.strides(), x.shape().removed(dim));
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
