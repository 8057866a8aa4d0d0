//! Embedding lookup.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::{self, Dims};
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of, rows_of};
use super::cub;
use crate::dtype::DType;

/// Most ids for which the gradient is summed without sorting them
/// (`embedding_dense_backward_cuda` in `aten/src/ATen/native/cuda/Embedding.cu`).
const UNSORTED_IDS: u64 = 3072;

/// Rows of one partial sum (`NROWS_PER_THREAD` in `EmbeddingBackwardKernel.cu`).
const ROWS_PER_PARTIAL: u64 = 10;

impl Tape {
    /// `torch.nn.functional.embedding(ids, weight)`: [..] → [.., width].
    pub fn embedding(&self, weight: &Tensor, ids: &Tensor) -> Tensor {
        self.embedding_in(weight, ids, 1)
    }

    /// Looks up rows in one of `parts` parts of a table, whose gradient is a part of the whole table's.
    pub(super) fn embedding_in(&self, weight: &Tensor, ids: &Tensor, parts: u64) -> Tensor {
        let mut rec = self.record("EmbeddingBackward0", &[weight]);
        rec.save(self, ids);
        let mut shape = *ids.shape();
        shape = shape.inserted(shape.len(), weight.size(1));
        let flat = self.flat_ids(ids);
        let mark = self.work_mark();
        let out = self.empty(shape, weight.dtype(), "embedding");
        drop(flat);
        let bytes = bytes_of(&out);
        self.ran_as(
            mark,
            ("embedding", Class::Gather),
            weight.dtype(),
            [bytes, bytes],
            rows_of(&out),
        );
        let part = *weight.shape();
        let mut rows = part;
        rows[0] *= parts;
        rec.finish(self, out, move |t, bw| {
            let g = t.contiguous(bw.grad());
            let ids = &bw.saved[0];
            let n = ids.numel();
            let dense = t.dense_copy(ids);
            let mark = t.work_mark();
            let out = t.in_embedding_backward(n, rows, || t.empty(rows, g.dtype(), "embedding backward"));
            let (read, written) = (bytes_of(&g), bytes_of(&out));
            let extents = [n, rows[1], rows[0], 0];
            t.ran_as(
                mark,
                ("embedding backward", Class::EmbeddingBackward),
                g.dtype(),
                [read, written],
                extents,
            );
            drop((g, dense));
            // The GPU's own part, in the memory of the whole gradient.
            smallvec![Some(match parts {
                1 => out,
                _ => out.narrow_raw(0, part[0]),
            })]
        })
    }

    /// `torch.nn.functional.embedding_bag(ids, weight, per_sample_weights=…, mode="sum")`, ids and weights [bags, n] →
    /// [bags, width]. No gradient of the weights is made (`EmbeddingBag.cu`; checked on 60 calls).
    pub fn embedding_bag(&self, weight: &Tensor, ids: &Tensor, weights: &Tensor) -> Tensor {
        let mut rec = self.record("EmbeddingBagBackward0", &[weight]);
        let (bags, n) = (ids.size(0), ids.numel());
        let offsets = self.empty([bags], DType::I64, "offsets of bags");
        let sizes = self.empty([bags], DType::I64, "sizes of bags");
        let places = self.empty([n], DType::I64, "bag of each id");
        for saved in [ids, weights, &offsets, &places, &sizes] {
            rec.save(self, saved);
        }
        let out = self.empty([bags, weight.size(1)], weight.dtype(), "embedding bag");
        drop((places, offsets, sizes));
        let rows = *weight.shape();
        rec.finish(self, out, move |t, bw| {
            let dtype = bw.grad().dtype();
            smallvec![Some(t.in_sorted_embedding_backward(n, rows, || t.empty(
                rows,
                dtype,
                "embedding bag backward"
            )))]
        })
    }

    /// `ids.reshape(-1)`, where it copies ids of several dimensions, such as expanded ones.
    pub(crate) fn flat_ids(&self, ids: &Tensor) -> Option<Tensor> {
        let flat = Dims::new(&[ids.numel()]);
        let views = ids.dim() < 2 || dims::view_strides(ids.shape(), ids.strides(), &flat).is_some();
        (!views).then(|| self.empty(flat, ids.dtype(), "contiguous ids"))
    }

    /// Runs `make`, which makes the gradient of a table of these rows from `n` ids; many ids are sorted first, then
    /// summed in runs of equal ones, in fp32 for half precision (`embedding_backward_cuda_kernel`).
    pub(crate) fn in_embedding_backward<R>(&self, n: u64, rows: Dims, make: impl FnOnce() -> R) -> R {
        match n <= UNSORTED_IDS {
            true => make(),
            false => self.in_sorted_embedding_backward(n, rows, make),
        }
    }

    /// Runs `make`, which makes the gradient of a table of these rows from `n` ids that are sorted first, however few.
    pub(crate) fn in_sorted_embedding_backward<R>(&self, n: u64, rows: Dims, make: impl FnOnce() -> R) -> R {
        let ids = |len: u64, name| self.empty([len], DType::I64, name);
        let storage = |bytes, name| drop(self.empty([bytes], DType::U8, name));
        let (sorted, order) = (ids(n, "sorted ids"), ids(n, "order of ids"));
        let arange = ids(n, "arange");
        storage(cub::sort_pairs(n, 64), "sort storage");
        drop(arange);
        let grad = make();
        let offsets = ids(n, "segment offsets");
        let segments = ids(1, "number of segments");
        let unique = ids(n, "unique ids");
        storage(cub::unique_by_key(n), "unique storage");
        drop(unique);
        let most = n.min(rows[0]);
        let (partials, partial_offsets) = (ids(most, "partials per segment"), ids(most, "offsets of partials"));
        storage(cub::scan(most), "scan storage");
        let count = ids(1, "number of partials");
        let max_partials = n / ROWS_PER_PARTIAL + most;
        let partial_segments = ids(max_partials, "partial segments");
        drop(self.empty([max_partials, rows[1]], DType::F32, "sums of partial segments"));
        drop((
            partial_segments,
            count,
            partial_offsets,
            partials,
            segments,
            offsets,
            order,
            sorted,
        ));
        grad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// The gradient of Qwen3-VL's learned positions, four neighbours for each of 2304 patches, from its
    /// allocator trace.
    #[test]
    fn the_sorted_gradient_makes_what_the_trace_shows() {
        let t = Tape::new(Gpu::H200);
        let rows = Dims::new(&[2304, 1024]);
        drop(t.in_embedding_backward(4 * 2304, rows, || t.empty(rows, DType::Bf16, "gradient")));
        let allocations: Vec<u64> = t.finish().allocations.iter().map(|b| b.bytes).collect();
        let sorting = [73_728, 73_728, 73_728, 166_399];
        let runs = [4_718_592, 73_728, 8, 73_728, 1279];
        let partials = [18_432, 18_432, 1279, 8, 25_800, 13_209_600];
        assert_eq!(allocations, [&sorting[..], &runs, &partials].concat());
    }

    /// The gradient of Kimi-K2.5's learned positions, sixteen neighbours for each of 300 patches, from an allocator trace of
    /// an H100.
    #[test]
    fn the_gradient_of_bags_makes_what_the_trace_shows() {
        let t = Tape::new(Gpu::H200);
        let table = t.parameter([4096, 1152], DType::Bf16, "table");
        let ids = t.empty([300, 16], DType::I64, "ids");
        let weights = t.empty([300, 16], DType::Bf16, "weights");
        let start = t.mark();
        let out = t.embedding_bag(&table, &ids, &weights);
        t.backward(&out);
        drop((table, ids, weights, out));
        let log = t.finish();
        let made = log.events[start..].iter().filter(|e| e.is_alloc());
        let made: Vec<u64> = made.map(|e| log.allocations[e.storage() as usize].bytes).collect();
        let forward = [2400, 2400, 38_400, 691_200];
        let sorting = [38_400, 38_400, 38_400, 95_743, 9_437_184];
        let runs = [38_400, 8, 38_400, 1279];
        let partials = [32_768, 32_768, 1279, 8, 36_608, 21_086_208];
        let backward = &made[made.len() - 15..];
        assert_eq!(made[..4], forward);
        assert_eq!(*backward, [&sorting[..], &runs, &partials].concat());
    }
}
