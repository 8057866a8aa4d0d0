//! Masks, scatters and selections.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

impl Tape {
    /// An operation outside the graph whose result has the given type: comparisons, masks, ids.
    pub fn compute(&self, like: &Tensor, dtype: DType, name: &'static str) -> Tensor {
        self.empty_like(like, dtype, name)
    }

    /// `x.masked_scatter(mask, source)`.
    pub fn masked_scatter(&self, x: &Tensor, mask: &Tensor, source: &Tensor) -> Tensor {
        let mut rec = self.record("MaskedScatterBackward0", &[x, source]);
        rec.save(self, mask);
        let out = self.empty_like(x, x.dtype(), "masked_scatter");
        let (mask_shape, source_shape) = (*mask.shape(), *source.shape());
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let _ = mask_shape;
            let dx = bw.want(0, || t.empty_like(g, g.dtype(), "masked_fill"));
            let ds = bw.want(1, || t.empty(source_shape, g.dtype(), "masked_scatter backward"));
            smallvec![dx, ds]
        })
    }
}
