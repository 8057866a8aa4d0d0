//! Embedding lookup.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Up to so many ids the gradient is summed without sorting them
/// (`embedding_dense_backward_cuda` in `aten/src/ATen/native/cuda/Embedding.cu`).
const UNSORTED_IDS: u64 = 3072;

/// Rows of one partial sum (`NROWS_PER_THREAD` in `EmbeddingBackwardKernel.cu`).
const ROWS_PER_PARTIAL: u64 = 10;

impl Tape {
    /// `torch.nn.functional.embedding(ids, weight)`: [..] → [.., width].
    pub fn embedding(&self, weight: &Tensor, ids: &Tensor) -> Tensor {
        let mut rec = self.record("EmbeddingBackward0", &[weight]);
        rec.save(self, ids);
        let mut shape = *ids.shape();
        shape = shape.inserted(shape.len(), weight.size(1));
        let out = self.empty(shape, weight.dtype(), "embedding");
        let rows = *weight.shape();
        rec.finish(self, out, move |t, bw| {
            let g = t.contiguous(bw.grad());
            let n = bw.saved[0].numel();
            let out = if n <= UNSORTED_IDS {
                t.empty(rows, g.dtype(), "embedding backward")
            } else {
                t.embedding_backward_sorted(n, rows, g.dtype())
            };
            drop(g);
            smallvec![Some(out)]
        })
    }

    /// Sorts the ids, then sums in runs of equal ids, in fp32 for half precision.
    fn embedding_backward_sorted(&self, n: u64, rows: Dims, dtype: DType) -> Tensor {
        let ids = |len: u64, name| self.empty([len], DType::I64, name);
        let sorted = ids(n, "sorted ids");
        let order = ids(n, "order of ids");
        drop(ids(n, "arange"));
        let grad = self.empty(rows, dtype, "embedding backward");
        let segments = n.min(rows[0]);
        let offsets = ids(n, "segment offsets");
        let partials = ids(segments, "partials per segment");
        let partial_offsets = ids(segments, "offsets of partials");
        let max_partials = n / ROWS_PER_PARTIAL + segments;
        let partial_segments = ids(max_partials, "partial segments");
        let sums = self.empty([max_partials, rows[1]], DType::F32, "sums of partial segments");
        drop((
            sums,
            partial_segments,
            partial_offsets,
            partials,
            offsets,
            order,
            sorted,
        ));
        grad
    }
}
