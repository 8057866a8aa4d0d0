//! Sums and means.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::kind::Kind;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use super::reduce_config::{IterDim, coalesced, partial_buffers, within_32_bits};
use crate::dtype::DType;

impl Tape {
    /// `at::sum_to(x, shape)`: sums the dimensions that broadcasting added or stretched.
    pub(in super::super) fn sum_to(&self, x: &Tensor, shape: &Dims) -> Tensor {
        let lead = x.dim() - shape.len();
        let reduced: Vec<bool> = (0..x.dim())
            .map(|i| i < lead || (shape[i - lead] == 1 && x.size(i) != 1))
            .collect();
        if !reduced.iter().any(|&r| r) {
            return x.clone();
        }
        let out = self.reduce(x, &reduced, x.dtype(), "sum");
        if lead == 0 { out } else { self.view(&out, *shape) }
    }

    /// Reduces the marked dimensions to 1.
    pub(super) fn reduce(&self, x: &Tensor, reduced: &[bool], dtype: DType, name: &'static str) -> Tensor {
        let mut shape = *x.shape();
        for (extent, &r) in shape.iter_mut().zip(reduced) {
            if r {
                *extent = 1;
            }
        }
        let mark = self.work_mark();
        let out = self.empty(shape, dtype, name);
        self.reduce_scratch(x, reduced);
        self.reduced(mark, x, reduced, &out, name);
        out
    }

    /// Records that `out` is a reduction of `x`.
    fn reduced(&self, mark: usize, x: &Tensor, reduced: &[bool], out: &Tensor, name: &'static str) {
        if !self.works() {
            return;
        }
        let dims = coalesced(x, reduced);
        let fastest = dims.iter().min_by_key(|d| d.stride).is_none_or(|d| d.reduced);
        let inputs: u64 = dims.iter().filter(|d| d.reduced).map(|d| d.extent).product();
        let outputs: u64 = dims.iter().filter(|d| !d.reduced).map(|d| d.extent).product();
        let (class, extents) = match fastest {
            true => (Class::ReduceRows, [outputs, inputs, 0, 0]),
            false => (Class::ReduceColumns, [inputs, outputs, 0, 0]),
        };
        self.ran_as(mark, (name, class), x.dtype(), [bytes_of(x), bytes_of(out)], extents);
    }

    /// `x.sum(dims)` of booleans or int64, outside the graph: booleans are widened to int64 first.
    pub fn count(&self, x: &Tensor, dims: &[usize]) -> Tensor {
        let reduced: Vec<bool> = (0..x.dim()).map(|i| dims.contains(&i)).collect();
        let kept: Vec<u64> = (0..x.dim()).filter(|i| !reduced[*i]).map(|i| x.size(i)).collect();
        let out = self.empty(&kept[..], DType::I64, "count");
        let wide = match x.dtype() {
            DType::I64 => x.clone(),
            _ => self.to_dtype_raw(x, DType::I64),
        };
        self.reduce_scratch(&wide, &reduced);
        drop(wide);
        out
    }

    /// Allocates the scratch memory of a reduction; int64 is summed in its own width, all else in fp32.
    fn reduce_scratch(&self, x: &Tensor, reduced: &[bool]) {
        let accumulator = if x.dtype() == DType::I64 { 8 } else { 4 };
        self.in_reduction(x, reduced, accumulator);
    }

    /// Allocates the scratch memory of a reduction over `reduced` dimensions, whose partial results have `accumulator`
    /// bytes.
    pub(crate) fn in_reduction(&self, x: &Tensor, reduced: &[bool], accumulator: u64) {
        // Halves of halves are mostly equal: buffers are computed once for equal ones in a row.
        let (mut last, mut buffers): (Option<Vec<IterDim>>, _) = (None, None);
        within_32_bits(&mut coalesced(x, reduced), x.dtype().width(), &mut |part| {
            if last.as_deref() != Some(part) {
                buffers = partial_buffers(part, &self.0.gpu);
                last = Some(part.to_vec());
            }
            if let Some((partials, semaphores)) = buffers {
                self.reduce_buffers((accumulator * partials, semaphores));
            }
        });
    }

    /// A norm or mean over one dimension, outside the graph.
    pub fn reduce_dim(&self, x: &Tensor, dim: usize, keepdim: bool, name: &'static str) -> Tensor {
        let reduced: Vec<bool> = (0..x.dim()).map(|i| i == dim).collect();
        let out = self.reduce(x, &reduced, x.dtype(), name);
        if keepdim { out } else { self.squeeze(&out, dim) }
    }

    /// A norm or mean over everything, outside the graph: [..] → [].
    pub fn reduce_all(&self, x: &Tensor, name: &'static str) -> Tensor {
        let out = self.reduce(x, &vec![true; x.dim()], x.dtype(), name);
        self.view(&out, Dims::new(&[]))
    }

    /// `torch.all(x)` of booleans, outside the graph: [..] → [].
    pub fn all(&self, x: &Tensor) -> Tensor {
        let out = self.empty([], DType::Bool, "all");
        self.in_reduction(x, &vec![true; x.dim()], 1);
        out
    }

    /// `torch.any(ids)` of contiguous ids of this shape in int32 that are not at hand, outside the graph: → [].
    pub fn any_of_ids(&self, like: &Tensor, shape: impl Into<Dims>) -> Tensor {
        let shape: Dims = shape.into();
        let ids = like.alias_as(shape, shape.contiguous_strides(), DType::I32);
        let out = self.empty([], DType::Bool, "any");
        self.in_reduction(&ids, &vec![true; ids.dim()], 1);
        out
    }

    fn reduce_buffers(&self, (partials, semaphores): (u64, u64)) {
        let make = |bytes, name| self.storage_of_bytes(bytes, &Dims::new(&[bytes]), DType::U8, name, Kind::Temporary);
        let partials = make(partials, "partial sums of thread blocks");
        let semaphores = make(semaphores, "semaphores of thread blocks");
        drop((partials, semaphores));
    }

    /// Type of a sum of `x`: autocast computes it in fp32, without casting `x` (`fp32_set_opt_dtype`).
    fn sum_type(&self, x: &Tensor) -> DType {
        match self.autocast_dtype() {
            Some(_) if x.dtype().is_float() => DType::F32,
            _ => x.dtype(),
        }
    }

    /// `x.sum(-1, keepdim=True)`.
    pub fn sum_last(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SumBackward1", &[x]);
        let mut reduced = vec![false; x.dim()];
        reduced[x.dim() - 1] = true;
        let out = self.reduce(x, &reduced, self.sum_type(x), "sum");
        let (shape, dtype) = (*x.shape(), x.dtype());
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.to_dtype(&t.expand(bw.grad(), shape), dtype))]
        })
    }

    /// `torch.sum(x, dim=-1, dtype=torch.float32)` of one row: [n] → [].
    pub fn sum_in_f32(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SumBackward1", &[x]);
        let out = self.reduce(x, &[true], DType::F32, "sum");
        let out = self.squeeze(&out, 0);
        let (shape, dtype) = (*x.shape(), x.dtype());
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.to_dtype(&t.expand(&t.unsqueeze(bw.grad(), 0), shape), dtype))]
        })
    }

    /// `torch.linalg.vector_norm(x, 2, dim=-1, keepdim=True)`; autocast computes the result in fp32 without casting
    /// `x`. Backward is `grad * (x / norm)`, zeros if the norm is zero.
    pub fn norm_last(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("LinalgVectorNormBackward0", &[x]);
        rec.save(self, x);
        let mut reduced = vec![false; x.dim()];
        reduced[x.dim() - 1] = true;
        let dtype = match self.autocast_dtype() {
            Some(_) => DType::F32,
            None => x.dtype(),
        };
        let out = self.reduce(x, &reduced, dtype, "norm");
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let (x, norm) = (&bw.saved[0], &bw.saved[1]);
            let scaled = t.empty_like(x, norm.dtype(), "x / norm");
            let zero = t.empty(*norm.shape(), DType::Bool, "norm = 0");
            let out = t.empty_like(&scaled, norm.dtype(), "norm backward");
            drop((zero, scaled));
            smallvec![Some(out)]
        })
    }

    /// `x.all(dim)` of booleans, outside the graph.
    pub fn all_of(&self, x: &Tensor, dim: usize) -> Tensor {
        let reduced: Vec<bool> = (0..x.dim()).map(|i| i == dim).collect();
        let out = self.empty(x.shape().removed(dim), DType::Bool, "all");
        // Partial results are booleans too.
        self.in_reduction(x, &reduced, 1);
        out
    }

    /// `x.any(dim=-1, keepdim=True)`, outside the graph.
    pub fn any_last(&self, x: &Tensor) -> Tensor {
        let mut reduced = vec![false; x.dim()];
        reduced[x.dim() - 1] = true;
        self.reduce(x, &reduced, DType::Bool, "any")
    }

    /// `x.sum(dim)`; backward expands the gradient without a copy.
    pub fn sum_dim(&self, x: &Tensor, dim: usize) -> Tensor {
        let rec = self.record("SumBackward1", &[x]);
        let reduced: Vec<bool> = (0..x.dim()).map(|i| i == dim).collect();
        let out = self.reduce(x, &reduced, self.sum_type(x), "sum");
        let out = self.squeeze(&out, dim);
        let (shape, dtype) = (*x.shape(), x.dtype());
        rec.finish(self, out, move |t, bw| {
            let expanded = t.expand(&t.unsqueeze(bw.grad(), dim), shape);
            smallvec![Some(t.to_dtype(&expanded, dtype))]
        })
    }

    /// `x.sum(-1, keepdim=True, dtype=dtype)`; backward casts the gradient, and expands it without a copy.
    pub fn sum_last_in(&self, x: &Tensor, dtype: DType) -> Tensor {
        let rec = self.record("SumBackward1", &[x]);
        let reduced: Vec<bool> = (1..=x.dim()).map(|i| i == x.dim()).collect();
        let out = self.reduce(x, &reduced, dtype, "sum");
        let (shape, own) = (*x.shape(), x.dtype());
        rec.finish(self, out, move |t, bw| {
            let cast = t.to_dtype(bw.grad(), own);
            smallvec![Some(t.expand(&cast, shape))]
        })
    }

    /// `x.sum()`: [..] → []; backward expands the gradient without a copy.
    pub fn sum_all(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SumBackward0", &[x]);
        let out = self.reduce_all(x, "sum");
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| smallvec![Some(t.expand(bw.grad(), shape))])
    }

    /// `x.mean()`: [..] → [].
    pub fn mean_all(&self, x: &Tensor) -> Tensor {
        let rec = self.record("MeanBackward0", &[x]);
        let out = self.reduce_all(x, "mean");
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "mean backward"))]
        })
    }

    /// `x.mean(-1, keepdim=True)`.
    pub fn mean_last(&self, x: &Tensor) -> Tensor {
        self.mean_over(x, x.dim() - 1, true)
    }

    /// `x.mean(dim)`.
    pub fn mean(&self, x: &Tensor, dim: usize) -> Tensor {
        self.mean_over(x, dim, false)
    }

    /// `torch.std(x, dim=-1, keepdim=True, unbiased=False)`, whose thread blocks share running moments of 16 bytes. Backward
    /// (`std_backward`, `var_backward`) makes the mean again, and takes it from `x`.
    pub fn std_last(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("StdBackward0", &[x]);
        rec.save(self, x);
        let reduced: Vec<bool> = (1..=x.dim()).map(|i| i == x.dim()).collect();
        let mut shape = *x.shape();
        shape[x.dim() - 1] = 1;
        let mark = self.work_mark();
        let out = self.empty(shape, x.dtype(), "std");
        self.in_reduction(x, &reduced, 16);
        self.reduced(mark, x, &reduced, &out, "std");
        rec.save(self, &out);
        rec.finish(self, out, move |t, bw| {
            let (g, x, result) = (bw.grad(), &bw.saved[0], &bw.saved[1]);
            let of_rows = |dtype, name| t.empty_like(result, dtype, name);
            let twice = of_rows(result.dtype(), "2 × std");
            let of_variance = of_rows(g.dtype(), "gradient of the variance");
            drop(of_rows(DType::Bool, "std = 0"));
            drop(twice);
            let mean = t.reduce(x, &reduced, x.dtype(), "mean");
            let centred = t.empty_like(x, x.dtype(), "x - mean");
            let scaled = of_rows(of_variance.dtype(), "gradient by elements");
            let out = t.empty_like(x, x.dtype(), "std backward");
            drop((scaled, centred, mean, of_variance));
            smallvec![Some(out)]
        })
    }

    fn mean_over(&self, x: &Tensor, dim: usize, keep: bool) -> Tensor {
        let rec = self.record("MeanBackward1", &[x]);
        let mut reduced = vec![false; x.dim()];
        reduced[dim] = true;
        let mut out = self.reduce(x, &reduced, x.dtype(), "mean");
        if !keep {
            let (shape, strides) = (out.shape().removed(dim), out.strides().removed(dim));
            out = out.with_layout(shape, strides);
        }
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| {
            let out = t.empty(shape, bw.grad().dtype(), "mean backward");
            smallvec![Some(out)]
        })
    }
}
