//! Convolutions of volumes with any kernel, stride and padding (`aten/src/ATen/native/cudnn/ConvShared.cpp`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use crate::dtype::DType;

/// Most input channels that fp32 and fp16 kernels read without padding them to a whole group: those of images.
const MAX_UNPADDED_CHANNELS: u64 = 4;

impl Tape {
    /// `torch.nn.functional.conv3d(x, weight, stride=stride, padding=padding)` of contiguous volumes:
    /// [n, c, t, h, w] × [o, c, kernel…] → [n, o, …]. Each gradient allocates its own workspace.
    pub fn conv3d(&self, x: &Tensor, weight: &Tensor, stride: [u64; 3], padding: [u64; 3]) -> Tensor {
        let weight = &self.cast_low(weight);
        let x = &self.cast_low(x);
        let mut rec = self.record("ConvolutionBackward0", &[x, weight]);
        rec.save(self, x);
        rec.save(self, weight);
        let padded: Vec<u64> = (0..3).map(|i| x.size(i + 2) + 2 * padding[i]).collect();
        let fits = x.size(1) == weight.size(1) && (0..3).all(|i| padded[i] >= weight.size(i + 2));
        self.fits(fits, "convolution", x, weight);
        let mut shape = Dims::new(&[x.size(0), weight.size(0), 1, 1, 1]);
        for i in 0..3 {
            shape[i + 2] = padded[i].saturating_sub(weight.size(i + 2)) / stride[i].max(1) + 1;
        }
        let strided = stride != [1; 3];
        let dense = self.dense_copy(x);
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "convolution");
        self.volume_workspace(forward_copies(x, weight, &out, strided));
        let extents = [
            out.numel() / out.size(1),
            out.size(1),
            weight.numel() / weight.size(0),
            0,
        ];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("convolution", Class::Convolution), x.dtype(), bytes, extents);
        drop(dense);
        rec.finish(self, out, move |t, bw| {
            let (x, w) = (bw.saved[0].clone(), bw.saved[1].clone());
            let dense = (t.dense_copy(&x), t.dense_copy(bw.grad()));
            let mark = t.work_mark();
            let dx = bw.want(0, || {
                let dx = t.empty(*x.shape(), x.dtype(), "convolution backward");
                t.volume_workspace(input_copies(&x, &w, bw.grad(), strided));
                dx
            });
            let dw = bw.want(1, || {
                let dw = t.empty(*w.shape(), w.dtype(), "convolution backward");
                t.volume_workspace(weight_copies(&x, &w, bw.grad()));
                dw
            });
            let bytes = [bytes_of(&x) + bytes_of(bw.grad()), bytes_of(&w)];
            let kernel = ("convolution backward", Class::ConvolutionBackward);
            t.ran_as(mark, kernel, x.dtype(), bytes, extents);
            drop(dense);
            smallvec![dx, dw]
        })
    }

    /// Allocates and frees the scratch memory of one cuDNN call.
    fn volume_workspace(&self, bytes: u64) {
        if bytes > 0 {
            drop(self.empty([bytes], DType::U8, "cuDNN workspace"));
        }
    }
}

// cuDNN's fast kernels read channels last: given PyTorch's layout, they copy input, weight and output, channels padded to
// whole groups. That is what most of 9,170 calls on an H100 with cuDNN 9.19 took, to a block of 512 bytes
// (`tests/data/truth/any_convolutions.jsonl.gz` and `video_convolutions.jsonl.gz`). Others keep partial sums of a kernel
// that is split, up to 17 MiB, which are left out, or copy less, as for few channels, in fp32, and for the gradient of
// a weight of single pixels: cuDNN chooses its kernel for each size and batch.

/// Bytes of the copies for the output of a convolution.
fn forward_copies(x: &Tensor, w: &Tensor, out: &Tensor, strided: bool) -> u64 {
    if is_pointwise(w) && !strided {
        return 0;
    }
    let is_bf16 = x.dtype() == DType::Bf16;
    if w.size(1) <= MAX_UNPADDED_CHANNELS && !is_bf16 {
        return if w.size(0).is_multiple_of(4) {
            copies(x, w, out, 1)
        } else {
            0
        };
    }
    copies(x, w, out, group(x))
}

/// Bytes of the copies for the gradient `g` → input.
fn input_copies(x: &Tensor, w: &Tensor, g: &Tensor, strided: bool) -> u64 {
    if is_pointwise(w) && !strided {
        0
    } else {
        copies(x, w, g, group(x))
    }
}

/// Bytes of the copies for the gradient of the weight.
fn weight_copies(x: &Tensor, w: &Tensor, g: &Tensor) -> u64 {
    copies(x, w, g, group(x))
}

/// Returns true if the kernel covers a single element, so that both layouts of the weight are the same.
fn is_pointwise(w: &Tensor) -> bool {
    (2..w.dim()).all(|i| w.size(i) == 1)
}

/// Channels that kernels read together.
fn group(x: &Tensor) -> u64 {
    if x.dtype() == DType::F32 { 4 } else { 8 }
}

/// Bytes of copies of input, weight and output with channels last, padded to whole groups.
fn copies(x: &Tensor, w: &Tensor, out: &Tensor, group: u64) -> u64 {
    let padded = |t: &Tensor| t.numel() / t.size(1) * t.size(1).next_multiple_of(group);
    let weight = match is_pointwise(w) {
        true => 0,
        false => padded(w) / w.size(0) * w.size(0).next_multiple_of(group),
    };
    16 + x.dtype().width() * (padded(x) + padded(out) + weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Copies of a layer in a type: forward, gradient of the input, gradient of the weight.
    fn layer(x: [u64; 5], w: [u64; 5], out: [u64; 5], strided: bool, dtype: DType) -> [u64; 3] {
        let t = Tape::new(Gpu::H200);
        let [x, w, out] = [x, w, out].map(|shape| t.empty(shape, dtype, "operand"));
        [
            forward_copies(&x, &w, &out, strided),
            input_copies(&x, &w, &out, strided),
            weight_copies(&x, &w, &out),
        ]
    }

    /// Layers of R3D-18 and R(2+1)D-18 in bf16, as measured but for less than a block of 512 bytes.
    #[test]
    fn volumes_are_copied_to_channels_last() {
        let measured = |ours: u64, bytes: u64| assert_eq!(ours.next_multiple_of(512), bytes.next_multiple_of(512));
        let block = layer(
            [4, 256, 4, 14, 14],
            [256, 256, 3, 3, 3],
            [4, 256, 4, 14, 14],
            false,
            DType::Bf16,
        );
        block.into_iter().for_each(|bytes| measured(bytes, 6_750_224));
        let down = layer(
            [1, 128, 16, 28, 28],
            [256, 128, 1, 1, 1],
            [1, 256, 16, 14, 14],
            true,
            DType::Bf16,
        );
        down.into_iter().for_each(|bytes| measured(bytes, 4_816_912));
        let padded = layer(
            [1, 128, 8, 28, 28],
            [230, 128, 1, 3, 3],
            [1, 230, 8, 28, 28],
            false,
            DType::Bf16,
        );
        padded.into_iter().for_each(|bytes| measured(bytes, 5_050_384));
    }
}
