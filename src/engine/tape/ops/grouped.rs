//! Products of groups of rows, each with a matrix of its own (`aten/src/ATen/native/cuda/GroupedBlas.cpp`).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Bytes that CUTLASS takes for each group's product and for each multiprocessor, on an H100 with PyTorch 2.11
/// (`aten/src/ATen/native/cuda/GroupMM.cu`).
const OF_GROUP: u64 = 60;
const OF_MULTIPROCESSOR: u64 = 512;

/// Bytes to which rows of a result are aligned (`create_grouped_gemm_output_tensor` in
/// `aten/src/ATen/native/GroupedMMUtils.h`).
const ALIGNMENT: u64 = 16;

impl Tape {
    /// `torch.nn.functional.grouped_mm(a, b, offs=ends)`: rows [n, k], the first `ends[0]` times the first of
    /// [groups, k, m], and so on → [n, m]. No size depends on how many rows each group has.
    pub fn grouped_mm(&self, a: &Tensor, b: &Tensor, ends: &Tensor) -> Tensor {
        self.fits(a.last() == b.size(1) && ends.numel() == b.size(0), "grouped_mm", a, b);
        let mut rec = self.record("GroupedMmBackward0", &[a, b]);
        let (wants_a, wants_b) = (rec.wants(0), rec.wants(1));
        rec.save(self, ends);
        if wants_a {
            rec.save(self, b);
        }
        if wants_b {
            rec.save(self, a);
        }
        let groups = ends.numel();
        let out = self.grouped_product(Dims::new(&[a.size(0), b.last()]), a.dtype(), groups);
        let (a_shape, b_shape) = (*a.shape(), *b.shape());
        let b_transposed = b.strides()[1] == 1 && b.strides()[2] >= b.size(1).max(1);
        rec.finish(self, out, move |t, bw| {
            let dtype = bw.grad().dtype();
            // Alphabetical: mat2, then self.
            let grad_b = bw.want(1, || match b_transposed {
                true => t.transpose(&t.grouped_product(b_shape.swapped(1, 2), dtype, groups), 1, 2),
                false => t.grouped_product(b_shape, dtype, groups),
            });
            let grad_a = bw.want(0, || t.grouped_product(a_shape, dtype, groups));
            smallvec![grad_a, grad_b]
        })
    }

    fn grouped_product(&self, shape: Dims, dtype: DType, groups: u64) -> Tensor {
        let mut padded = shape;
        let last = shape.len() - 1;
        padded[last] = shape[last].next_multiple_of(ALIGNMENT / dtype.width());
        let out = self.empty_strided(shape, padded.contiguous_strides(), dtype, "grouped_mm");
        self.in_grouped_mm(groups, dtype);
        out
    }

    /// Allocates the memory that grouped products take beside their result: of CUTLASS for bf16 on cards that it
    /// supports, else of cuBLAS, which multiplies group by group; returns false if it was not measured on this card.
    pub(crate) fn in_grouped_mm(&self, groups: u64, dtype: DType) -> bool {
        let capability = self.gpu().capability;
        if dtype != DType::Bf16 || !matches!(capability, (9 | 10, 0)) {
            self.wait();
            self.cublas();
            return true;
        }
        let of = |bytes| self.empty([bytes], DType::U8, "workspace of grouped products");
        let operands = of(OF_GROUP * groups);
        drop((of(OF_MULTIPROCESSOR * self.gpu().sms), operands));
        capability == (9, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    fn allocations(dtype: DType) -> Vec<u64> {
        let t = Tape::new(Gpu::H200);
        let x = t.parameter([264, 256], dtype, "x");
        let weight = t.parameter([8, 512, 256], dtype, "weight");
        let ends = t.empty([8], DType::I32, "ends");
        let start = t.mark();
        let out = t.grouped_mm(&x, &t.transpose(&weight, 1, 2), &ends);
        t.backward(&out);
        drop((out, x, weight, ends));
        let log = t.finish();
        let made = log.events[start..].iter().filter(|e| e.is_alloc());
        made.map(|e| log.allocations[e.storage() as usize].bytes).collect()
    }

    /// Forward, seed, gradient of the weight, gradient of the rows; each product with its workspaces.
    #[test]
    fn products_in_bf16_take_what_cutlass_takes() {
        let workspaces = [60 * 8, 512 * Gpu::H200.sms];
        let [out, weight, rows] = [264 * 512, 8 * 512 * 256, 264 * 256].map(|elements: u64| 2 * elements);
        let expected = [
            &[out][..],
            &workspaces,
            &[out, weight],
            &workspaces,
            &[rows],
            &workspaces,
        ]
        .concat();
        assert_eq!(allocations(DType::Bf16), expected);
    }

    /// In fp32 cuBLAS multiplies group by group into the result; its workspace is allocated once for each thread.
    #[test]
    fn products_in_fp32_take_only_the_workspace_of_cublas() {
        let [out, weight, rows] = [264 * 512, 8 * 512 * 256, 264 * 256].map(|elements: u64| 4 * elements);
        let mut made = allocations(DType::F32);
        made.retain(|bytes| *bytes != 4096 * 8 * 1024);
        assert_eq!(made, [out, out, weight, rows]);
    }
}
