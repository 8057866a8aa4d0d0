//! Convolutions of images whose kernels overlap or cover single pixels (`aten/src/ATen/native/cudnn/ConvShared.cpp`).

use smallvec::smallvec;

use super::super::autograd::Grads;
use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};

impl Tape {
    /// `torch.nn.functional.conv2d(x, weight, stride=stride, padding=padding)`:
    /// [n, c, h, w] × [o, c, kernel, kernel] → [n, o, …].
    ///
    /// An image with channels last has its weight copied to channels last, and makes results with channels last
    /// (`cudnn_conv_suggest_memory_format` in `aten/src/ATen/native/ConvUtils.h`). Workspaces of cuDNN are left out: a few
    /// hundred bytes with channels last.
    pub fn conv2d(&self, x: &Tensor, weight: &Tensor, [stride, padding]: [u64; 2]) -> Tensor {
        let weight = &self.cast_low(weight);
        let x = &self.cast_low(x);
        let mut rec = self.record("ConvolutionBackward0", &[x, weight]);
        rec.save(self, x);
        rec.save(self, weight);
        let mut shape = Dims::new(&[x.size(0), weight.size(0), x.size(2), x.size(3)]);
        let fits = x.size(1) == weight.size(1) && (2..4).all(|i| x.size(i) + 2 * padding >= weight.size(i));
        self.fits(fits, "convolution", x, weight);
        for i in 2..4 {
            shape[i] = (x.size(i) + 2 * padding).saturating_sub(weight.size(i)) / stride.max(1) + 1;
        }
        let mark = self.work_mark();
        let is_last = x.has_channels_last();
        let dense = if is_last { None } else { self.dense_copy(x) };
        let out = self.image(shape, x, is_last, "convolution");
        drop((self.copied_weight(weight, is_last), dense));
        let extents = [
            out.numel() / out.size(1),
            out.size(1),
            weight.numel() / weight.size(0),
            0,
        ];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("convolution", Class::Convolution), x.dtype(), bytes, extents);
        rec.finish(self, out, move |t, bw| {
            let (x, w, g) = (bw.saved[0].clone(), bw.saved[1].clone(), bw.grad().clone());
            let mark = t.work_mark();
            let in_layout = if is_last {
                g.has_channels_last()
            } else {
                g.is_contiguous()
            };
            let copy = (!in_layout).then(|| t.image(*g.shape(), &g, is_last, "gradient in the image's layout"));
            let dx = bw.want(0, || t.image(*x.shape(), &x, is_last, "convolution backward"));
            if dx.is_some() {
                drop(t.copied_weight(&w, is_last));
            }
            let dw = bw.want(1, || t.image(*w.shape(), &w, is_last, "convolution backward"));
            let bytes = [bytes_of(&x) + bytes_of(&g), bytes_of(&w)];
            let kernel = ("convolution backward", Class::ConvolutionBackward);
            t.ran_as(mark, kernel, x.dtype(), bytes, extents);
            drop(copy);
            let grads: Grads = smallvec![dx, dw];
            grads
        })
    }

    /// Allocates an image or a weight in the type of another, with channels last or first.
    pub(super) fn image(&self, shape: Dims, like: &Tensor, is_last: bool, name: &'static str) -> Tensor {
        if !is_last {
            return self.empty(shape, like.dtype(), name);
        }
        self.empty_strided(shape, shape.channels_last_strides(), like.dtype(), name)
    }

    /// Copies a weight to channels last, unless it covers single pixels, so that both layouts are the same.
    fn copied_weight(&self, weight: &Tensor, is_last: bool) -> Option<Tensor> {
        let is_pointwise = weight.size(2) == 1 && weight.size(3) == 1;
        (is_last && !is_pointwise).then(|| self.image(*weight.shape(), weight, true, "weight in channels last"))
    }
}
