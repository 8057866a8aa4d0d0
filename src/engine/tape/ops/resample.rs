//! Resampling of images and sequences (`aten/src/ATen/native/cuda/{UpSampleBilinear2d,UpSampleLinear1d}.cu`); autocast runs
//! `interpolate` in fp32 (`aten/src/ATen/autocast_mode.h`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::{Dims, is_channels_last};
use super::super::tensor::Tensor;

impl Tape {
    /// `torch.nn.functional.interpolate(x, size, mode="bilinear")` of [batch, channels, height, width], with channels
    /// last if `x` has them; backward makes the gradient contiguous unless it has, and adds up that of the input in its
    /// own type.
    pub fn interpolate_bilinear(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("UpsampleBilinear2DBackward0", &[x]);
        let shape = *x.shape();
        let resized = Dims::new(&[shape[0], shape[1], height, width]);
        let out = self.image(resized, x, x.has_channels_last(), "interpolate");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, move |t, bw| {
            let is_last = bw.grad().has_channels_last();
            let dense = if is_last { None } else { t.dense_copy(bw.grad()) };
            let dx = t.image(shape, bw.grad(), is_last, "interpolate backward");
            drop(dense);
            smallvec![Some(dx)]
        })
    }

    /// `torch.nn.functional.interpolate(x, size, mode="bicubic")` of [batch, channels, height, width], with channels last if
    /// `x` has them (`aten/src/ATen/native/cuda/UpSampleBicubic2d.cu`).
    pub fn interpolate_bicubic(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("UpsampleBicubic2DBackward0", &[x]);
        let shape = *x.shape();
        let resized = Dims::new(&[shape[0], shape[1], height, width]);
        let out = self.image(resized, x, is_channels_last(x.shape(), x.strides()), "interpolate");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, move |t, bw| {
            // A recorded step of Ovis2.5: the gradient of channels-last pixels is contiguous.
            smallvec![Some(t.image(shape, bw.grad(), false, "interpolate backward"))]
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

    /// `torch.nn.functional.interpolate(x, size, mode="linear")` of [batch, channels, length]; backward makes the gradient
    /// contiguous beside that of the input.
    pub fn interpolate_linear(&self, x: &Tensor, length: u64) -> Tensor {
        let x = &self.cast_high(x);
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

    /// [`Self::interpolate_bilinear`] with `antialias=True`: kernels take contiguous memory alone, so that other results
    /// and gradients are copied.
    pub fn interpolate_antialiased(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("UpsampleBilinear2DAaBackward0", &[x]);
        let shape = *x.shape();
        let resized = Dims::new(&[shape[0], shape[1], height, width]);
        let out = self.image(resized, x, is_channels_last(x.shape(), x.strides()), "interpolate");
        let contiguous = (!out.is_contiguous()).then(|| self.empty(*out.shape(), out.dtype(), "contiguous result"));
        if self.works() {
            self.reads(&out, &[x]);
        }
        drop(contiguous);
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let dx = t.image(
                shape,
                g,
                is_channels_last(g.shape(), g.strides()),
                "interpolate backward",
            );
            drop(t.dense_copy(g));
            smallvec![Some(dx)]
        })
    }
}
