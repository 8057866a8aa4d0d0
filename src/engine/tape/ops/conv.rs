//! Convolutions of patches (kernel and stride are equal), and depthwise ones along a sequence.

use smallvec::smallvec;

use super::super::autograd::{Backward, Grads};
use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use super::cudnn_conv;
use crate::dtype::DType;

impl Tape {
    /// `torch.nn.functional.conv2d/conv3d(x, weight, bias, stride=kernel)`:
    /// [n, c, spatial…] × [o, c, kernel…] → [n, o, spatial / kernel…].
    pub fn conv_patches(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let bias = bias.map(|b| self.cast_low(b));
        let weight = &self.cast_low(weight);
        let x = &self.cast_low(x);
        let mut inputs = vec![x, weight];
        inputs.extend(bias.as_ref());
        let mut rec = self.record("ConvolutionBackward0", &inputs);
        rec.save(self, x);
        rec.save(self, weight);
        let mut shape = *x.shape();
        shape[1] = weight.size(0);
        let fits = x.size(1) == weight.size(1) && (2..x.dim()).all(|i| x.size(i) >= weight.size(i));
        self.fits(fits, "convolution", x, weight);
        for i in 2..shape.len() {
            shape[i] = x.size(i) / weight.size(i);
        }
        let dense = self.dense_copy(x);
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "convolution");
        self.in_convolution(x, weight, &out);
        let extents = [
            out.numel() / out.size(1),
            out.size(1),
            weight.numel() / weight.size(0),
            0,
        ];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("convolution", Class::Convolution), x.dtype(), bytes, extents);
        drop(dense);
        let has_bias = bias.is_some();
        rec.finish(self, out, move |t, bw| {
            let (x, w) = (bw.saved[0].clone(), bw.saved[1].clone());
            let dense = (t.dense_copy(&x), t.dense_copy(bw.grad()));
            let mark = t.work_mark();
            let dx = bw.want(0, || t.empty(*x.shape(), x.dtype(), "convolution backward"));
            let dw = bw.want(1, || {
                let dw = t.empty(*w.shape(), w.dtype(), "convolution backward");
                t.in_weight_gradient(&x, &w, bw.grad());
                dw
            });
            let bytes = [bytes_of(&x) + bytes_of(bw.grad()), bytes_of(&w)];
            t.ran_as(
                mark,
                ("convolution backward", Class::ConvolutionBackward),
                x.dtype(),
                bytes,
                extents,
            );
            drop(dense);
            let mut grads = smallvec![dx, dw];
            if has_bias {
                grads.push(bw.want(2, || t.bias_of_channels(bw.grad())));
            }
            grads
        })
    }

    /// `torch.nn.functional.conv1d(x, weight, bias, padding=padding, groups=channels)`:
    /// [n, channels, length] × [channels, 1, kernel] → [n, channels, length + 2 × padding + 1 − kernel].
    ///
    /// PyTorch's own kernels run it without workspaces, in fp32 and bf16 (`use_cudnn_depthwise` in
    /// `aten/src/ATen/native/Convolution.cpp`, `native/cuda/DepthwiseConv2d.cu`).
    pub fn conv1d_depthwise(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, padding: u64) -> Tensor {
        let bias = bias.map(|b| self.cast_low(b));
        let weight = &self.cast_low(weight);
        let x = &self.cast_low(x);
        let mut inputs = vec![x, weight];
        inputs.extend(bias.as_ref());
        let mut rec = self.record("ConvolutionBackward0", &inputs);
        rec.save(self, x);
        rec.save(self, weight);
        let mut shape = *x.shape();
        shape[2] = (shape[2] + 2 * padding + 1).saturating_sub(weight.size(2));
        self.fits(x.size(1) == weight.size(0), "depthwise convolution", x, weight);
        let dense = self.dense_copy(x);
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "convolution");
        let extents = [out.numel() / out.size(1), out.size(1), weight.size(2), 0];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("convolution", Class::Convolution), x.dtype(), bytes, extents);
        drop(dense);
        let has_bias = bias.is_some();
        rec.finish(self, out, move |t, bw| t.depthwise_backward(bw, has_bias, extents))
    }

    /// A convolution of whole images [n, channels, side, side] with channels last, whose kernel is as large as they are:
    /// [n, output, 1, 1]. cuDNN copies the weight to channels last (`cudnn_conv_suggest_memory_format` in
    /// `aten/src/ATen/native/ConvUtils.h`), whose gradient has them too.
    pub fn conv_channels_last(&self, x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
        let bias = &self.cast_low(bias);
        let weight = &self.cast_low(weight);
        let x = &self.cast_low(x);
        let mut rec = self.record("ConvolutionBackward0", &[x, weight, bias]);
        rec.save(self, x);
        rec.save(self, weight);
        let fits = (1..x.dim()).all(|i| x.size(i) == weight.size(i));
        self.fits(fits, "convolution", x, weight);
        let mark = self.work_mark();
        let out = self.empty([x.size(0), weight.size(0), 1, 1], x.dtype(), "convolution");
        drop(self.in_channels_last(weight));
        let extents = [x.size(0), weight.size(0), weight.numel() / weight.size(0), 0];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("convolution", Class::Convolution), x.dtype(), bytes, extents);
        rec.finish(self, out, move |t, bw| {
            let (x, w) = (&bw.saved[0], &bw.saved[1]);
            let mark = t.work_mark();
            let dx = bw.want(0, || {
                let dx = t.empty_like(x, x.dtype(), "convolution backward");
                drop(t.in_channels_last(w));
                dx
            });
            let dw = bw.want(1, || t.in_channels_last(w));
            let bytes = [bytes_of(x) + bytes_of(bw.grad()), bytes_of(w)];
            let kernel = ("convolution backward", Class::ConvolutionBackward);
            t.ran_as(mark, kernel, x.dtype(), bytes, extents);
            smallvec![dx, dw, bw.want(2, || t.bias_of_channels(bw.grad()))]
        })
    }

    /// Memory of a weight [output, channels, height, width] with channels last.
    fn in_channels_last(&self, weight: &Tensor) -> Tensor {
        self.image(*weight.shape(), weight, true, "weight in channels last")
    }

    /// `convolution_backward` of a depthwise convolution: the weight's gradient comes before the input's.
    fn depthwise_backward(&self, bw: &Backward<'_>, has_bias: bool, extents: [u64; 4]) -> Grads {
        let (x, weight) = (&bw.saved[0], &bw.saved[1]);
        let dense = self.dense_copy(x);
        let dense_grad = self.dense_copy(bw.grad());
        let mark = self.work_mark();
        let dw = bw.want(1, || {
            self.empty(*weight.shape(), weight.dtype(), "convolution backward")
        });
        let dx = bw.want(0, || self.empty(*x.shape(), x.dtype(), "convolution backward"));
        let bytes = [bytes_of(x) + bytes_of(bw.grad()), bytes_of(weight)];
        let kernel = ("convolution backward", Class::ConvolutionBackward);
        self.ran_as(mark, kernel, x.dtype(), bytes, extents);
        drop(dense_grad);
        let mut grads = smallvec![dx, dw];
        if has_bias {
            grads.push(bw.want(2, || self.bias_of_channels(bw.grad())));
        }
        drop(dense);
        grads
    }

    /// Allocates the workspace of cuDNN for patches `x` and `weight`, which make `out`.
    pub(crate) fn in_convolution(&self, x: &Tensor, weight: &Tensor, out: &Tensor) {
        self.cudnn_workspace(cudnn_conv::forward(x, weight, out));
    }

    /// Allocates the workspace of cuDNN for the gradient of `weight` from patches `x` and the gradient of the output.
    pub(crate) fn in_weight_gradient(&self, x: &Tensor, weight: &Tensor, grad: &Tensor) {
        self.cudnn_workspace(cudnn_conv::weight_gradient(x, weight, grad));
    }

    /// Copies an operand that is not contiguous, since kernels need it to be.
    pub(crate) fn dense_copy(&self, x: &Tensor) -> Option<Tensor> {
        (!x.is_contiguous()).then(|| self.empty(*x.shape(), x.dtype(), "contiguous copy"))
    }

    /// The gradient summed over all but the channels.
    fn bias_of_channels(&self, g: &Tensor) -> Tensor {
        let reduced: Vec<bool> = (0..g.dim()).map(|i| i != 1).collect();
        let out = self.reduce(g, &reduced, g.dtype(), "sum");
        self.view(&out, Dims::new(&[g.size(1)]))
    }

    fn cudnn_workspace(&self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            drop(self.empty([bytes], DType::U8, "cuDNN workspace"));
        }
    }
}
