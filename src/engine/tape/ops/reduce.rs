//! Sums and means, and the buffers through which thread blocks share partial results.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::gpu::Gpu;
use super::super::kind::Kind;
use super::super::misfit::MOST_BYTES;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use crate::dtype::DType;
use crate::order::sort_short_by_key;

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

    /// `x.sum(dims)` of booleans, outside the graph: they are widened to int64 first.
    pub fn count(&self, x: &Tensor, dims: &[usize]) -> Tensor {
        let reduced: Vec<bool> = (0..x.dim()).map(|i| dims.contains(&i)).collect();
        let kept: Vec<u64> = (0..x.dim()).filter(|i| !reduced[*i]).map(|i| x.size(i)).collect();
        let out = self.empty(&kept[..], DType::I64, "count");
        let wide = self.to_dtype_raw(x, DType::I64);
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
        let mut last: Option<(Vec<IterDim>, Option<(u64, u64)>)> = None;
        within_32_bits(&mut coalesced(x, reduced), x.dtype().width(), &mut |part| {
            let buffers = match &last {
                Some((dims, buffers)) if dims == part => *buffers,
                _ => {
                    let buffers = partial_buffers(part, &self.0.gpu);
                    last = Some((part.to_vec(), buffers));
                    buffers
                }
            };
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

    fn reduce_buffers(&self, (partials, semaphores): (u64, u64)) {
        let make = |bytes, name| self.storage_of_bytes(bytes, &Dims::new(&[bytes]), DType::U8, name, Kind::Temporary);
        let partials = make(partials, "partial sums of thread blocks");
        let semaphores = make(semaphores, "semaphores of thread blocks");
        drop((partials, semaphores));
    }

    /// `x.sum(-1, keepdim=True)`; autocast computes it in fp32.
    pub fn sum_last(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("SumBackward1", &[x]);
        let mut reduced = vec![false; x.dim()];
        reduced[x.dim() - 1] = true;
        let out = self.reduce(x, &reduced, x.dtype(), "sum");
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| smallvec![Some(t.expand(bw.grad(), shape))])
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

    /// `x.any(dim=-1, keepdim=True)`, outside the graph.
    pub fn any_last(&self, x: &Tensor) -> Tensor {
        let mut reduced = vec![false; x.dim()];
        reduced[x.dim() - 1] = true;
        self.reduce(x, &reduced, DType::Bool, "any")
    }

    /// `x.sum(dim)`; backward expands the gradient without a copy.
    pub fn sum_dim(&self, x: &Tensor, dim: usize) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("SumBackward1", &[x]);
        let out = self.reduce_dim(x, dim, false, "sum");
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.expand(&t.unsqueeze(bw.grad(), dim), shape))]
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

/// Partial results, and bytes of semaphores, that a reduction allocates if several thread blocks share the work of one
/// output.
///
/// `setReduceConfig` and `ReduceConfig` in `aten/src/ATen/native/cuda/Reduce.cuh`.
fn partial_buffers(dims: &[IterDim], gpu: &Gpu) -> Option<(u64, u64)> {
    const MAX_THREADS: u64 = 512;
    const WARP: u64 = 32;
    const MIN_VALUES: u64 = 16;
    const MAX_VALUES: u64 = 256;
    let inputs: u64 = dims.iter().filter(|d| d.reduced).map(|d| d.extent).product();
    let outputs: u64 = dims.iter().filter(|d| !d.reduced).map(|d| d.extent).product();
    let fastest_reduced = dims.iter().filter(|d| d.reduced).map(|d| d.stride).min();
    let fastest_kept = dims.iter().filter(|d| !d.reduced).map(|d| d.stride).min();
    let on_fastest = match (fastest_reduced, fastest_kept) {
        (Some(r), Some(k)) => r < k,
        _ => true,
    };
    let (mut dim0, dim1) = if on_fastest {
        (inputs, outputs)
    } else {
        (outputs, inputs)
    };
    let fastest = if on_fastest { fastest_reduced } else { fastest_kept };
    let mut output_vec = 1;
    if fastest == Some(1) {
        if on_fastest && dim0 > 128 && dims.len() == 1 {
            dim0 /= 4;
        } else if !on_fastest {
            output_vec = output_vector(dims);
            dim0 /= output_vec;
        }
    }
    let max_threads = MAX_THREADS / output_vec;
    let fit = |n: u64| if n < max_threads { last_pow2(n) } else { max_threads };
    let (dim0_pow2, dim1_pow2) = (fit(dim0), fit(dim1));
    let block_width = dim0_pow2.min(WARP);
    let block_height = dim1_pow2.min(max_threads / block_width);
    let block_width = dim0_pow2.min(max_threads / block_height);
    let threads = block_width * block_height;
    let (mut step_input, mut step_output) = (1, 1);
    if on_fastest {
        step_input *= block_width;
    } else {
        step_output *= block_width;
    }
    let values = |step: u64| inputs.div_ceil(step);
    let mut split_rows = false;
    if values(step_input) >= block_height * 16 || values(step_input) >= MAX_VALUES {
        step_input *= block_height;
        split_rows = true;
    } else {
        step_output *= block_height;
    }
    let target = gpu.sms * (gpu.threads_per_sm / threads);
    let grid = (outputs / output_vec).div_ceil(step_output);
    if !split_rows || values(step_input) < MAX_VALUES || grid > target {
        return None;
    }
    let by_grid = target.div_ceil(grid);
    let by_min = values(step_input).div_ceil(MIN_VALUES);
    let by_max = values(step_input).div_ceil(MAX_VALUES);
    let blocks = by_grid.min(by_min).max(by_max);
    if blocks <= 1 {
        return None;
    }
    let mut partials = outputs * blocks;
    if !on_fastest {
        partials *= block_width * output_vec;
    }
    Some((partials, 4 * grid))
}

#[derive(Clone, PartialEq)]
struct IterDim {
    extent: u64,
    stride: u64,
    reduced: bool,
}

/// Dimensions as TensorIterator sees them: reduced ones first, each group by stride, adjacent ones merged.
fn coalesced(x: &Tensor, reduced: &[bool]) -> Vec<IterDim> {
    let mut dims: Vec<IterDim> = (0..x.dim())
        .filter(|&i| x.size(i) != 1)
        .map(|i| IterDim {
            extent: x.size(i),
            stride: x.strides()[i],
            reduced: reduced[i],
        })
        .collect();
    sort_short_by_key(&mut dims, |d| (!d.reduced, d.stride));
    dims.dedup_by(|next, merged| {
        let joins = next.reduced == merged.reduced && next.stride == merged.stride * merged.extent;
        if joins {
            merged.extent *= next.extent;
        }
        joins
    });
    dims
}

/// Visits the parts in which a reduction runs: a tensor too large for 32-bit byte offsets is halved along its longest run
/// until it fits (`TensorIteratorBase::with_32bit_indexing`, `get_dim_to_split`). `dims` is the same afterwards.
fn within_32_bits(dims: &mut [IterDim], width: u64, visit: &mut impl FnMut(&[IterDim])) {
    let run = |d: &IterDim| {
        d.extent
            .saturating_sub(1)
            .saturating_mul(d.stride)
            .saturating_mul(width)
    };
    let bytes = dims.iter().map(run).fold(1, u64::saturating_add);
    let longest = (0..dims.len()).max_by_key(|&i| run(&dims[i]));
    match longest {
        Some(longest) if (i32::MAX as u64 + 1..=MOST_BYTES).contains(&bytes) => {
            let whole = dims[longest].extent;
            for extent in [whole / 2, whole - whole / 2] {
                dims[longest].extent = extent;
                within_32_bits(dims, width, visit);
            }
            dims[longest].extent = whole;
        }
        _ => visit(dims),
    }
}

/// Outputs that one thread reduces together (`get_output_vec_size`).
fn output_vector(dims: &[IterDim]) -> u64 {
    let Some(kept) = dims.iter().position(|d| !d.reduced) else {
        return 1;
    };
    let divides = |v: u64| {
        dims[kept].extent.is_multiple_of(v)
            && dims
                .iter()
                .enumerate()
                .all(|(i, d)| i == kept || d.stride.is_multiple_of(v))
    };
    [4, 2].into_iter().find(|&v| divides(v)).unwrap_or(1)
}

fn last_pow2(n: u64) -> u64 {
    if n == 0 { 1 } else { 1 << n.ilog2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bias gradients of GPT-2 (2 × 512 positions), from its allocator trace.
    #[test]
    fn bias_gradient_buffers_are_those_of_the_trace() {
        let tape = Tape::new(Gpu::H200);
        let sums = |n| {
            let grad = tape.empty([1024, n], DType::Bf16, "grad");
            partial_buffers(&coalesced(&grad, &[true, false]), &Gpu::H200)
        };
        assert_eq!(sums(3072), Some((25_165_824 / 4, 96)));
        assert_eq!(sums(768), Some((6_291_456 / 4, 24)));
    }

    /// Norms and means that Adafactor takes of Qwen2.5-0.5B's embedding, from its allocator trace.
    #[test]
    fn norms_and_means_of_a_matrix_are_those_of_the_trace() {
        let tape = Tape::new(Gpu::H200);
        let buffers = |shape: &[u64], reduced: &[bool]| {
            let x = tape.empty(shape, DType::F32, "update");
            partial_buffers(&coalesced(&x, reduced), &Gpu::H200)
        };
        assert_eq!(buffers(&[151_936, 896], &[true, true]), Some((4_156 / 4, 4)));
        assert_eq!(buffers(&[151_936, 896], &[true, false]), Some((138_543_104 / 4, 28)));
        assert_eq!(buffers(&[151_936, 896], &[false, true]), None);
        assert_eq!(buffers(&[151_936], &[true]), Some((76 / 4, 4)));
        assert_eq!(buffers(&[896, 896], &[true, true]), Some((392 / 4, 4)));
    }

    #[test]
    fn a_tensor_beyond_32_bits_is_reduced_in_halves() {
        let tape = Tape::new(Gpu::H200);
        let parts = |rows: u64| {
            let x = tape.empty([rows, 2560], DType::F32, "update");
            let mut extents = Vec::new();
            within_32_bits(&mut coalesced(&x, &[true, false]), 4, &mut |dims| {
                extents.push(dims.iter().find(|d| d.reduced).map(|d| d.extent));
            });
            extents
        };
        assert_eq!(parts(200_000), [Some(200_000)]);
        assert_eq!(parts(262_209), [Some(131_104), Some(131_105)]);
    }
}
