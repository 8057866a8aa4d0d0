//! Views of memory, and the copies that they force.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::{self, Dims};
use super::super::tensor::Tensor;
use super::super::work::{Class, HostOp, bytes_of};
use crate::dtype::DType;

impl Tensor {
    /// Returns a part of a dimension, without a graph.
    pub(super) fn narrow_raw(&self, dim: usize, len: u64) -> Self {
        let mut shape = *self.shape();
        shape[dim] = len;
        self.alias(shape, *self.strides())
    }
}

impl Tape {
    /// `x.view(shape)`; fails the run if elements or layout do not allow it.
    pub fn view(&self, x: &Tensor, shape: impl Into<Dims>) -> Tensor {
        let shape = shape.into();
        let strides = match shape.numel() == x.numel() {
            true => dims::view_strides(x.shape(), x.strides(), &shape),
            false => None,
        };
        let strides = strides.unwrap_or_else(|| {
            self.misfit("view", &[x.shape(), &shape]);
            shape.contiguous_strides()
        });
        self.metadata_op("ViewBackward0", x, x.alias(shape, strides), |t, g, from| {
            t.reshape(g, from)
        })
    }

    /// `x.reshape(shape)`: a view if the layout allows it, else a copy.
    pub fn reshape(&self, x: &Tensor, shape: impl Into<Dims>) -> Tensor {
        let shape = shape.into();
        if *x.shape() == shape {
            return x.clone();
        }
        if shape.numel() != x.numel() || dims::view_strides(x.shape(), x.strides(), &shape).is_some() {
            self.view(x, shape)
        } else {
            // `_unsafe_view` of a copy: no view, so that its memory may be changed in place once the copy is gone.
            let copy = self.contiguous_copy(x);
            let out = copy.detach().with_layout(shape, shape.contiguous_strides());
            self.metadata_op("UnsafeViewBackward0", &copy, out, |t, g, from| t.reshape(g, from))
        }
    }

    /// `x.contiguous()`.
    pub fn contiguous(&self, x: &Tensor) -> Tensor {
        if x.is_contiguous() {
            x.clone()
        } else {
            self.contiguous_copy(x)
        }
    }

    /// `x.clone(memory_format=torch.contiguous_format)`.
    pub fn contiguous_copy(&self, x: &Tensor) -> Tensor {
        let rec = self.record("CloneBackward0", &[x]);
        let out = self.empty(*x.shape(), x.dtype(), "contiguous copy");
        if self.works() && out.numel() > 0 {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, |_, b| smallvec![Some(b.grad().clone())])
    }

    /// `x.clone()`: a copy in the same layout.
    pub fn clone_of(&self, x: &Tensor) -> Tensor {
        let rec = self.record("CloneBackward0", &[x]);
        let out = self.empty_like(x, x.dtype(), "clone");
        rec.finish(self, out, |_, b| smallvec![Some(b.grad().clone())])
    }

    /// `x.transpose(i, j)`.
    pub fn transpose(&self, x: &Tensor, i: usize, j: usize) -> Tensor {
        let out = x.alias(x.shape().swapped(i, j), x.strides().swapped(i, j));
        self.metadata_op("TransposeBackward0", x, out, move |t, g, _| t.transpose(g, i, j))
    }

    /// `x.permute(order)`.
    pub fn permute(&self, x: &Tensor, order: &[usize]) -> Tensor {
        let out = x.alias(x.shape().permuted(order), x.strides().permuted(order));
        let mut inverse = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            inverse[from] = to;
        }
        self.metadata_op("PermuteBackward0", x, out, move |t, g, _| t.permute(g, &inverse))
    }

    /// `x.unsqueeze(i)`.
    pub fn unsqueeze(&self, x: &Tensor, i: usize) -> Tensor {
        let stride = if i < x.dim() { x.shape()[i] * x.strides()[i] } else { 1 };
        let out = x.alias(x.shape().inserted(i, 1), x.strides().inserted(i, stride));
        self.metadata_op("UnsqueezeBackward0", x, out, move |t, g, _| t.squeeze(g, i))
    }

    /// `x.squeeze(i)` of a dimension of extent 1.
    pub fn squeeze(&self, x: &Tensor, i: usize) -> Tensor {
        let out = x.alias(x.shape().removed(i), x.strides().removed(i));
        self.metadata_op("SqueezeBackward1", x, out, move |t, g, _| t.unsqueeze(g, i))
    }

    /// `x.expand(shape)`: extents of 1 are repeated without a copy; backward sums them.
    pub fn expand(&self, x: &Tensor, shape: impl Into<Dims>) -> Tensor {
        let shape = shape.into();
        let lead = shape.len() - x.dim();
        let mut strides = shape;
        for i in 0..shape.len() {
            let known = i >= lead && x.shape()[i - lead] == shape[i];
            if !known && i >= lead && x.shape()[i - lead] != 1 {
                self.misfit("expand", &[x.shape(), &shape]);
            }
            strides[i] = if known { x.strides()[i - lead] } else { 0 };
        }
        self.metadata_op("ExpandBackward0", x, x.alias(shape, strides), |t, g, from| {
            t.sum_to(g, &from)
        })
    }

    /// `x.repeat(n, 1, …)` of a first dimension of extent 1; backward sums the copies.
    pub fn repeat(&self, x: &Tensor, n: u64) -> Tensor {
        let mut shape = *x.shape();
        shape[0] = n;
        self.contiguous_copy(&self.expand(x, shape))
    }

    /// `x.repeat(1, n, 1, …)` of the second dimension; backward sums the copies.
    pub fn repeat_second(&self, x: &Tensor, n: u64) -> Tensor {
        let rec = self.record("RepeatBackward0", &[x]);
        let from = *x.shape();
        let mut shape = from;
        shape[1] *= n;
        let out = self.empty(shape, x.dtype(), "repeat");
        rec.finish(self, out, move |t, bw| {
            // `repeat_backward` sums no dimension that is there once.
            if n == 1 {
                return smallvec![Some(bw.grad().clone())];
            }
            let split = t.reshape(bw.grad(), from.inserted(1, n));
            smallvec![Some(t.sum_dim(&split, 1))]
        })
    }

    /// `x[..., a:b, ...]` of dimension `dim`, `len` long. Backward makes a whole tensor of zeros.
    pub fn slice(&self, x: &Tensor, dim: usize, len: u64) -> Tensor {
        if x.shape()[dim] == len {
            return x.clone();
        }
        self.narrow(x, dim, len)
    }

    /// `x[:, -n:]`, `len` long, with a backward node even if it takes the whole dimension, because Python's slice does
    /// not start at 0.
    pub fn narrow(&self, x: &Tensor, dim: usize, len: u64) -> Tensor {
        if len > x.size(dim) {
            self.misfit("slice", &[x.shape(), &[len]]);
        }
        let out = x.narrow_raw(dim, len);
        self.metadata_op("SliceBackward0", x, out, |t, g, from| {
            t.zeros_with(from, g, "slice backward")
        })
    }

    /// `x.select(dim, i)`: one element of a dimension. Backward makes a whole tensor of zeros.
    pub fn select(&self, x: &Tensor, dim: usize) -> Tensor {
        let out = x.alias(x.shape().removed(dim), x.strides().removed(dim));
        self.metadata_op("SelectBackward0", x, out, |t, g, from| {
            t.zeros_with(from, g, "select backward")
        })
    }

    /// `x.split(sizes, dim)`: views; backward concatenates their gradients.
    pub fn split(&self, x: &Tensor, dim: usize, sizes: &[u64]) -> Vec<Tensor> {
        let rec = self.record("SplitBackward0", &[x]);
        let outs = sizes.iter().map(|&len| x.narrow_raw(dim, len)).collect();
        let (shape, sizes) = (*x.shape(), sizes.to_vec());
        rec.finish_many(self, outs, move |t, b| {
            let dtype = b.grads.iter().flatten().next().map_or(DType::F32, Tensor::dtype);
            let zeros = |len| {
                let mut part = shape;
                part[dim] = len;
                t.empty(part, dtype, "zeros for an unused part")
            };
            let grads = b.grads.iter_mut().map(Option::take);
            let parts: Vec<Tensor> = grads
                .zip(&sizes)
                .map(|(g, &len)| g.unwrap_or_else(|| zeros(len)))
                .collect();
            let mark = t.work_mark();
            let strides = dims::joined_strides(&shape, parts.iter().map(|part| (part.shape(), part.strides())));
            let out = t.empty_strided(shape, strides, dtype, "split backward");
            t.joined(mark, &out);
            drop(parts);
            smallvec![Some(out)]
        })
    }

    /// `x.unbind(0)`: one view for each element of the first dimension; backward stacks.
    pub fn unbind(&self, x: &Tensor) -> Vec<Tensor> {
        self.unbind_at(x, 0)
    }

    /// `x.unbind(dim)`: one view for each element of the dimension; backward stacks.
    pub fn unbind_at(&self, x: &Tensor, dim: usize) -> Vec<Tensor> {
        let rec = self.record("UnbindBackward0", &[x]);
        let one = x.alias(x.shape().removed(dim), x.strides().removed(dim));
        let outs = (0..x.size(dim))
            .map(|_| one.alias(*one.shape(), *one.strides()))
            .collect();
        let shape = *x.shape();
        rec.finish_many(self, outs, move |t, b| {
            let dtype = b.grads.iter().flatten().next().map_or(DType::F32, Tensor::dtype);
            smallvec![Some(t.empty(shape, dtype, "stack"))]
        })
    }

    /// `torch.cat(parts, dim)`; backward gives views of its gradient.
    pub fn cat(&self, parts: &[&Tensor], dim: usize) -> Tensor {
        let dtype = parts
            .iter()
            .skip(1)
            .fold(parts[0].dtype(), |d, p| promote(d, p.dtype()));
        self.cat_as(parts, dim, dtype)
    }

    /// `torch.cat(parts, dim)` in a type that is at least as wide.
    pub fn cat_as(&self, parts: &[&Tensor], dim: usize, dtype: DType) -> Tensor {
        let rec = self.record("CatBackward0", parts);
        let mut shape = *parts[0].shape();
        for part in &parts[1..] {
            let fits = (0..shape.len()).all(|i| i == dim || part.shape().get(i) == Some(&shape[i]));
            self.fits(fits, "cat", parts[0], part);
        }
        shape[dim] = parts.iter().map(|p| p.shape()[dim]).sum();
        let mark = self.work_mark();
        let out = self.empty(shape, dtype, "cat");
        self.joined(mark, &out);
        let sizes: Vec<u64> = parts.iter().map(|p| p.shape()[dim]).collect();
        rec.finish(self, out, move |_, b| {
            let g = b.grad().clone();
            sizes
                .iter()
                .enumerate()
                .map(|(i, &len)| b.want(i, || g.narrow_raw(dim, len)))
                .collect()
        })
    }

    /// `x.to(dtype)`.
    pub fn to_dtype(&self, x: &Tensor, dtype: DType) -> Tensor {
        if x.dtype() == dtype {
            return x.clone();
        }
        let rec = self.record("ToCopyBackward0", &[x]);
        let out = self.to_dtype_raw(x, dtype);
        let from = x.dtype();
        rec.finish(self, out, move |t, b| {
            let g = b.grad().clone();
            smallvec![Some(if g.dtype() == from { g } else { t.to_dtype_raw(&g, from) })]
        })
    }

    /// `x.to(dtype, memory_format=torch.contiguous_format)`. With a type to convert to, the result is contiguous; else it
    /// is `x` itself, unless its strides are those of channels last (`to_will_alias` in
    /// `aten/src/ATen/native/TensorConversions.cpp`).
    pub fn to_contiguous(&self, x: &Tensor, dtype: DType) -> Tensor {
        if x.dtype() == dtype && !dims::is_channels_last(x.shape(), x.strides()) {
            return x.clone();
        }
        let rec = self.record("ToCopyBackward0", &[x]);
        let out = self.empty(*x.shape(), dtype, "to dtype");
        if self.works() && out.numel() > 0 {
            self.reads(&out, &[x]);
        }
        let from = x.dtype();
        rec.finish(self, out, move |t, b| {
            let g = b.grad().clone();
            smallvec![Some(if g.dtype() == from { g } else { t.to_dtype_raw(&g, from) })]
        })
    }

    /// `x.repeat_interleave(n, dim)`: each element of a dimension, `n` times in a row.
    pub fn repeat_each(&self, x: &Tensor, n: u64, dim: usize) -> Tensor {
        let between = x.shape().inserted(dim + 1, n);
        let copies = self.contiguous_copy(&self.expand(&self.unsqueeze(x, dim + 1), between));
        let mut shape = *x.shape();
        shape[dim] *= n;
        self.view(&copies, shape)
    }

    /// `x.to(dtype)` outside the graph.
    pub(in super::super) fn to_dtype_raw(&self, x: &Tensor, dtype: DType) -> Tensor {
        self.empty_like(x, dtype, "to dtype")
    }

    /// Zeros of `shape` with `part` copied into it.
    fn zeros_with(&self, shape: Dims, part: &Tensor, name: &'static str) -> Tensor {
        let mark = self.work_mark();
        let out = self.empty(shape, part.dtype(), name);
        if self.works() {
            let (whole, some) = (bytes_of(&out), bytes_of(part));
            let zeros = self.kernel("zeros", Class::Pointwise, part.dtype(), [0, whole]);
            let copy = self.kernel("copy into a part", Class::Strided, part.dtype(), [some, some]);
            self.ran(mark, [zeros, copy]);
            self.host_op(HostOp::View);
        }
        out
    }

    /// Records that `out` was made by concatenating parts.
    pub(super) fn joined(&self, mark: usize, out: &Tensor) {
        if self.works() {
            let bytes = bytes_of(out);
            self.ran(mark, [self.kernel("cat", Class::Cat, out.dtype(), [bytes, bytes])]);
        }
    }

    fn metadata_op(
        &self,
        name: &'static str,
        x: &Tensor,
        out: Tensor,
        back: impl FnOnce(&Self, &Tensor, Dims) -> Tensor + 'static,
    ) -> Tensor {
        let rec = self.record(name, &[x]);
        self.host_op(HostOp::View);
        let from = *x.shape();
        rec.finish(self, out, move |t, b| {
            let g = b.grad().clone();
            smallvec![Some(back(t, &g, from))]
        })
    }
}

/// Type in which two tensors of at least one dimension are combined.
pub(crate) fn promote(a: DType, b: DType) -> DType {
    use DType::{Bf16, F16, F32};
    let rank = |d: DType| match d {
        DType::Bool => 0,
        DType::U8 | DType::I8 | DType::I16 | DType::U16 => 1,
        DType::I32 | DType::U32 => 2,
        DType::I64 | DType::U64 => 3,
        DType::C64 | DType::C128 => 7,
        DType::F64 => 6,
        F32 => 5,
        _ => 4,
    };
    match (a, b) {
        (F16, Bf16) | (Bf16, F16) => F32,
        _ if rank(a) >= rank(b) => a,
        _ => b,
    }
}
