//! Stacks tensors along a new dimension, and pads a tensor with zeros.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::views::promote;

impl Tape {
    /// `torch.stack(parts, dim=-1)`: [..] each → [.., parts]; backward gives views of its gradient.
    pub fn stack_last(&self, parts: &[&Tensor]) -> Tensor {
        let rec = self.record("StackBackward0", parts);
        let dim = parts[0].dim();
        let shape = parts[0].shape().inserted(dim, parts.len() as u64);
        let dtype = parts
            .iter()
            .skip(1)
            .fold(parts[0].dtype(), |dtype, part| promote(dtype, part.dtype()));
        let mark = self.work_mark();
        let out = self.empty(shape, dtype, "stack");
        self.joined(mark, &out);
        let count = parts.len();
        rec.finish(self, out, move |_, bw| {
            let gradient = bw.grad().clone();
            let of_part = || gradient.alias(gradient.shape().removed(dim), gradient.strides().removed(dim));
            (0..count).map(|i| bw.want(i, of_part)).collect()
        })
    }

    /// `torch.nn.functional.pad` with `rows` of zeros at the end of a dimension; backward copies the part without
    /// padding, in its layout. Both copy even if there are no rows (`constant_pad_nd` in
    /// `aten/src/ATen/native/PadNd.cpp`).
    pub fn pad_end(&self, x: &Tensor, dim: usize, rows: u64) -> Tensor {
        let rec = self.record("ConstantPadNdBackward0", &[x]);
        let unpadded = *x.shape();
        let mut shape = unpadded;
        shape[dim] += rows;
        // Without rows PyTorch clones the input, and so keeps its layout.
        let out = match rows {
            0 => self.empty_like(x, x.dtype(), "pad"),
            _ => self.empty(shape, x.dtype(), "pad"),
        };
        rec.finish(self, out, move |t, bw| {
            let part = bw.grad().narrow_raw(dim, unpadded[dim]);
            smallvec![Some(t.empty_like(&part, part.dtype(), "pad backward"))]
        })
    }
}
