//! Views of pairs as complex numbers, and products with them.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use crate::dtype::DType;

impl Tape {
    /// `torch.view_as_complex(x)` of fp32: [.., 2] → [..]. Backward makes the gradient contiguous.
    pub fn view_as_complex(&self, x: &Tensor) -> Tensor {
        let rec = self.record("ViewAsComplexBackward0", &[x]);
        let out = as_complex(x);
        rec.finish(self, out, |t, bw| smallvec![Some(as_real(&t.contiguous(bw.grad())))])
    }

    /// `torch.view_as_real(x)`: [..] → [.., 2] in fp32. Backward makes the gradient contiguous.
    pub fn view_as_real(&self, x: &Tensor) -> Tensor {
        let rec = self.record("ViewAsRealBackward0", &[x]);
        let out = as_real(x);
        rec.finish(self, out, |t, bw| smallvec![Some(as_complex(&t.contiguous(bw.grad())))])
    }

    /// `x * factor` of complex numbers, for a factor without a gradient: backward multiplies by its conjugate, which is
    /// written out for it.
    pub fn mul_by_complex(&self, x: &Tensor, factor: &Tensor) -> Tensor {
        let mut rec = self.record("MulBackward0", &[x]);
        rec.save(self, factor);
        let out = self.elementwise(x, factor, x.dtype(), "mul");
        rec.finish(self, out, |t, bw| {
            let (g, factor) = (bw.grad(), &bw.saved[0]);
            let conjugate = t.empty_like(factor, factor.dtype(), "conjugate");
            let out = t.elementwise(g, &conjugate, g.dtype(), "mul backward");
            drop(conjugate);
            smallvec![Some(out)]
        })
    }
}

fn as_complex(x: &Tensor) -> Tensor {
    let last = x.dim() - 1;
    let mut strides = x.strides().removed(last);
    for i in 0..last {
        strides[i] /= 2;
    }
    x.alias_as(x.shape().removed(last), strides, DType::C64)
}

fn as_real(x: &Tensor) -> Tensor {
    let dims = x.dim();
    let mut strides: Dims = *x.strides();
    for i in 0..dims {
        strides[i] *= 2;
    }
    x.alias_as(x.shape().inserted(dims, 2), strides.inserted(dims, 1), DType::F32)
}
