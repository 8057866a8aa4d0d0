//! Configuration of reductions: how PyTorch spreads one over thread blocks, and the buffers through which these share partial
//! results.

use super::super::gpu::Gpu;
use super::super::misfit::MOST_BYTES;
use super::super::tensor::Tensor;
use crate::order::sort_short_by_key;

const MAX_THREADS: u64 = 512;
const WARP: u64 = 32;
const MIN_VALUES_PER_THREAD: u64 = 16;
const MAX_VALUES_PER_THREAD: u64 = 256;

/// `ReduceConfig` in `aten/src/ATen/native/cuda/Reduce.cuh`, filled in as by `setReduceConfig`.
struct ReduceConfig {
    inputs: u64,
    outputs: u64,
    /// True if the dimension with the smallest stride is reduced.
    reduces_fastest: bool,
    /// Outputs that one thread reduces together.
    output_vec_size: u64,
    block_width: u64,
    block_height: u64,
    /// Inputs of one output that a thread block reads at a time.
    step_input: u64,
    /// Outputs that a thread block computes at a time.
    step_output: u64,
    /// True if the rows of a thread block share the work of one output.
    splits_rows: bool,
}

impl ReduceConfig {
    fn new(dims: &[IterDim]) -> Self {
        let of = |reduced| dims.iter().filter(move |d| d.reduced == reduced);
        let inputs: u64 = of(true).map(|d| d.extent).product();
        let outputs: u64 = of(false).map(|d| d.extent).product();
        let fastest_reduced = of(true).map(|d| d.stride).min();
        let fastest_kept = of(false).map(|d| d.stride).min();
        let reduces_fastest = match (fastest_reduced, fastest_kept) {
            (Some(r), Some(k)) => r < k,
            _ => true,
        };
        let (mut dim0, dim1, fastest) = if reduces_fastest {
            (inputs, outputs, fastest_reduced)
        } else {
            (outputs, inputs, fastest_kept)
        };
        let mut output_vec_size = 1;
        if fastest == Some(1) {
            if reduces_fastest && dim0 > 128 && dims.len() == 1 {
                dim0 /= 4;
            } else if !reduces_fastest {
                output_vec_size = output_vector(dims);
                dim0 /= output_vec_size;
            }
        }
        let (block_width, block_height) = block_dimension(dim0, dim1, MAX_THREADS / output_vec_size);
        let (step_input, step_output) = if reduces_fastest {
            (block_width, 1)
        } else {
            (1, block_width)
        };
        let config = Self {
            inputs,
            outputs,
            reduces_fastest,
            output_vec_size,
            block_width,
            block_height,
            step_input,
            step_output,
            splits_rows: false,
        };
        config.with_rows()
    }

    /// Gives the rows of a block to the inputs of one output where there is enough work, and to more outputs elsewhere.
    fn with_rows(mut self) -> Self {
        let values = self.values_per_thread();
        self.splits_rows = values >= self.block_height * 16 || values >= MAX_VALUES_PER_THREAD;
        if self.splits_rows {
            self.step_input *= self.block_height;
        } else {
            self.step_output *= self.block_height;
        }
        self
    }

    fn values_per_thread(&self) -> u64 {
        self.inputs.div_ceil(self.step_input)
    }

    /// Number of thread blocks if none shares an output with another.
    fn blocks(&self) -> u64 {
        (self.outputs / self.output_vec_size).div_ceil(self.step_output)
    }

    /// Number of thread blocks that share the work of one output (`ctas_per_output`).
    fn blocks_per_output(&self, gpu: &Gpu) -> u64 {
        let (blocks, values) = (self.blocks(), self.values_per_thread());
        let target = gpu.sms * (gpu.threads_per_sm / (self.block_width * self.block_height));
        if !self.splits_rows || values < MAX_VALUES_PER_THREAD || blocks > target {
            return 1;
        }
        let by_min = values.div_ceil(MIN_VALUES_PER_THREAD);
        let by_max = values.div_ceil(MAX_VALUES_PER_THREAD);
        target.div_ceil(blocks).min(by_min).max(by_max)
    }
}

/// Width and height of a thread block (`set_block_dimension`).
fn block_dimension(dim0: u64, dim1: u64, max_threads: u64) -> (u64, u64) {
    let fit = |n: u64| if n < max_threads { last_pow2(n) } else { max_threads };
    let (dim0_pow2, dim1_pow2) = (fit(dim0), fit(dim1));
    let width = dim0_pow2.min(WARP);
    let height = dim1_pow2.min(max_threads / width);
    (dim0_pow2.min(max_threads / height), height)
}

/// Number of partial results, and bytes of semaphores, that a reduction allocates if several thread blocks share the work
/// of one output.
pub(super) fn partial_buffers(dims: &[IterDim], gpu: &Gpu) -> Option<(u64, u64)> {
    let config = ReduceConfig::new(dims);
    let blocks = config.blocks_per_output(gpu);
    if blocks <= 1 {
        return None;
    }
    let mut partials = config.outputs * blocks;
    if !config.reduces_fastest {
        partials *= config.block_width * config.output_vec_size;
    }
    Some((partials, 4 * config.blocks()))
}

/// A dimension as TensorIterator sees it.
#[derive(Clone, PartialEq)]
pub(super) struct IterDim {
    pub(super) extent: u64,
    pub(super) stride: u64,
    pub(super) reduced: bool,
}

/// Dimensions as TensorIterator sees them: reduced ones first, each group by stride, adjacent ones merged.
pub(super) fn coalesced(x: &Tensor, reduced: &[bool]) -> Vec<IterDim> {
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
pub(super) fn within_32_bits(dims: &mut [IterDim], width: u64, visit: &mut impl FnMut(&[IterDim])) {
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
    use super::super::super::core::Tape;
    use super::*;
    use crate::dtype::DType;

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
