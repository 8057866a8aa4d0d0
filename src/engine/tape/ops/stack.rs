//! Stacks tensors along a new dimension, and pads a tensor with zeros.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::views::promote;

impl Tape {
    /// `torch.stack(parts, dim=-1)`: [..] each → [.., parts]; backward gives views of its gradient.
    pub fn stack_last(&self, parts: &[&Tensor]) -> Tensor {
        self.stack_at(parts, parts[0].dim())
    }

    /// `torch.stack(parts, dim)`; backward gives views of its gradient.
    pub fn stack_at(&self, parts: &[&Tensor], dim: usize) -> Tensor {
        let rec = self.record("StackBackward0", parts);
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

    /// `x.repeat(n, 1)` of rows: all of them `n` times; backward sums the copies.
    pub fn repeat_rows(&self, x: &Tensor, n: u64) -> Tensor {
        let rec = self.record("RepeatBackward0", &[x]);
        let [rows, width] = [x.size(0), x.size(1)];
        let mark = self.work_mark();
        let out = self.empty([n * rows, width], x.dtype(), "repeat");
        self.joined(mark, &out);
        rec.finish(self, out, move |t, bw| {
            let copies = t.reshape(bw.grad(), [n, rows, width]);
            let sum = match n {
                1 => copies,
                _ => t.reduce(&copies, &[true, false, false], copies.dtype(), "sum"),
            };
            smallvec![Some(t.squeeze(&sum, 0))]
        })
    }

    /// `x.repeat(n, 1, …)` with a new first dimension: [..] → [n, ..]; backward sums the copies.
    pub fn repeat_in_front(&self, x: &Tensor, n: u64) -> Tensor {
        let rec = self.record("RepeatBackward0", &[x]);
        let mark = self.work_mark();
        let out = self.empty(x.shape().inserted(0, n), x.dtype(), "repeat");
        self.joined(mark, &out);
        rec.finish(self, out, |t, bw| {
            let copies = bw.grad();
            let reduced: Vec<bool> = (0..copies.dim()).map(|dim| dim == 0).collect();
            let sum = t.reduce(copies, &reduced, copies.dtype(), "sum");
            let (shape, strides) = (sum.shape().removed(0), sum.strides().removed(0));
            smallvec![Some(sum.with_layout(shape, strides))]
        })
    }

    /// `torch.nn.functional.pad` with `rows` of zeros at the end of a dimension.
    pub fn pad_end(&self, x: &Tensor, dim: usize, rows: u64) -> Tensor {
        self.pad_ends(x, &[(dim, rows)])
    }

    /// `torch.nn.functional.pad` with rows of zeros at the ends of some dimensions; backward copies the part without
    /// padding, in its layout. Both copy even if there are no rows (`constant_pad_nd` in
    /// `aten/src/ATen/native/PadNd.cpp`).
    pub fn pad_ends(&self, x: &Tensor, ends: &[(usize, u64)]) -> Tensor {
        let rec = self.record("ConstantPadNdBackward0", &[x]);
        let unpadded = *x.shape();
        let mut shape = unpadded;
        for &(dim, rows) in ends {
            shape[dim] += rows;
        }
        // Without rows PyTorch clones the input, and so keeps its layout.
        let out = if shape == unpadded {
            self.empty_like(x, x.dtype(), "pad")
        } else {
            self.empty(shape, x.dtype(), "pad")
        };
        rec.finish(self, out, move |t, bw| {
            let mut part = bw.grad().clone();
            for (dim, &rows) in unpadded.iter().enumerate() {
                part = part.narrow_raw(dim, rows);
            }
            smallvec![Some(t.empty_like(&part, part.dtype(), "pad backward"))]
        })
    }
}
