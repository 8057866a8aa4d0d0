//! Resampling of images and sequences (`aten/src/ATen/native/cuda/{UpSampleBilinear2d,UpSampleLinear1d}.cu`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;

impl Tape {
    /// `torch.nn.functional.interpolate(x, size, mode="bilinear")` of [batch, channels, height, width]; backward makes
    /// the gradient contiguous, and adds up that of the input in its own type.
    pub fn interpolate_bilinear(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let rec = self.record("UpsampleBilinear2DBackward0", &[x]);
        let shape = *x.shape();
        let out = self.empty([shape[0], shape[1], height, width], x.dtype(), "interpolate");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, move |t, bw| {
            let dense = t.dense_copy(bw.grad());
            let dx = t.empty(shape, bw.grad().dtype(), "interpolate backward");
            drop(dense);
            smallvec![Some(dx)]
        })
    }

    /// `torch.nn.functional.interpolate(x, size, mode="linear")` of [batch, channels, length]; backward makes the gradient
    /// contiguous beside that of the input.
    pub fn interpolate_linear(&self, x: &Tensor, length: u64) -> Tensor {
        let rec = self.record("UpsampleLinear1DBackward0", &[x]);
        let shape = *x.shape();
        let out = self.empty([shape[0], shape[1], length], x.dtype(), "interpolate");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, move |t, bw| {
            let dx = t.empty(shape, bw.grad().dtype(), "interpolate backward");
            drop(t.dense_copy(bw.grad()));
            smallvec![Some(dx)]
        })
    }
}
