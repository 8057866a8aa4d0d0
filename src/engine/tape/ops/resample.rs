//! Resampling of images (`aten/src/ATen/native/cuda/UpSampleBilinear2d.cu`).

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

    /// `torch.nn.functional.grid_sample(x, grid)` of [1, channels, height, width] at [1, n, 1, 2]: [1, channels, n, 1].
    /// Backward makes a gradient of the grid, wanted or not.
    pub fn grid_sample(&self, x: &Tensor, grid: &Tensor) -> Tensor {
        let mut rec = self.record("GridSampler2DBackward0", &[x]);
        rec.save(self, x);
        rec.save(self, grid);
        let out = self.empty([1, x.size(1), grid.size(1), 1], x.dtype(), "grid_sample");
        if self.works() {
            self.reads(&out, &[x, grid]);
        }
        rec.finish(self, out, move |t, bw| {
            let (x, grid) = (&bw.saved[0], &bw.saved[1]);
            let dx = t.empty(*x.shape(), x.dtype(), "grid_sample backward");
            drop(t.empty(*grid.shape(), grid.dtype(), "grid_sample backward"));
            smallvec![Some(dx)]
        })
    }

    /// `torch.nn.functional.interpolate(x, size, mode="bilinear", antialias=True)` of one image [1, channels, height,
    /// width]. The result is contiguous, whatever the strides: those of an image alone never count as channels last, since
    /// `unsqueeze` gives its first dimension a shorter one. Backward makes the gradient contiguous.
    pub fn interpolate_antialiased(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let rec = self.record("UpsampleBilinear2DAaBackward0", &[x]);
        let shape = *x.shape();
        let out = self.empty([shape[0], shape[1], height, width], x.dtype(), "interpolate");
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
