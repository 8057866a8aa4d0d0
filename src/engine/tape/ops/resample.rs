//! Resampling of images (`aten/src/ATen/native/cuda/UpSampleBilinear2d.cu`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;

impl Tape {
    /// `torch.nn.functional.interpolate(x, size, mode="bilinear")` of [batch, channels, height, width]; backward makes
    /// the gradient contiguous, and adds up that of the input in its own type. Channels that come last stay last.
    pub fn interpolate_bilinear(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let rec = self.record("UpsampleBilinear2DBackward0", &[x]);
        let shape = *x.shape();
        let out = self.in_layout_of(x, Dims::new(&[shape[0], shape[1], height, width]), "interpolate");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let dense = (!has_channels_last(g)).then(|| t.dense_copy(g));
            let dx = t.in_layout_of(g, shape, "interpolate backward");
            drop(dense);
            smallvec![Some(dx)]
        })
    }

    /// The same with `antialias=True`: kernels take contiguous memory alone, so that other results and gradients are
    /// copied.
    pub fn interpolate_antialiased(&self, x: &Tensor, [height, width]: [u64; 2]) -> Tensor {
        let rec = self.record("UpsampleBilinear2DAaBackward0", &[x]);
        let shape = *x.shape();
        let out = self.in_layout_of(x, Dims::new(&[shape[0], shape[1], height, width]), "interpolate");
        let contiguous = (!out.is_contiguous()).then(|| self.empty(*out.shape(), out.dtype(), "contiguous result"));
        if self.works() {
            self.reads(&out, &[x]);
        }
        drop(contiguous);
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            let dx = t.in_layout_of(g, shape, "interpolate backward");
            drop(t.dense_copy(g));
            smallvec![Some(dx)]
        })
    }

    /// Allocates a result of `shape` in the memory format of `x` (`suggest_memory_format`).
    fn in_layout_of(&self, x: &Tensor, shape: Dims, name: &'static str) -> Tensor {
        if !has_channels_last(x) {
            return self.empty(shape, x.dtype(), name);
        }
        let [channels, height, width] = [shape[1], shape[2], shape[3]];
        let strides = Dims::new(&[height * width * channels, 1, width * channels, channels]);
        self.empty_strided(shape, strides, x.dtype(), name)
    }
}

/// Returns true if channels of [batch, channels, height, width] come last in memory (`is_channels_last_strides_2d_s4` in
/// `c10/core/MemoryFormat.h`).
fn has_channels_last(x: &Tensor) -> bool {
    let mut least = 0;
    for d in [1, 3, 2, 0] {
        let stride = x.strides()[d];
        if x.size(d) == 0 || stride < least || (d == 1 && stride == 0) || (d == 0 && least == x.strides()[1]) {
            return false;
        }
        least = stride * x.size(d).max(1);
    }
    true
}
