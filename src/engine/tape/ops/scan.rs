//! Running sums.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::cub;
use crate::dtype::DType;

impl Tape {
    /// `x.cumsum(-1)` of numbers, in fp32 under autocast. Backward is `grad.flip(-1).cumsum(-1).flip(-1)`.
    pub fn cumsum_last(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let rec = self.record("CumsumBackward0", &[x]);
        let out = self.cumsum_raw(x);
        rec.finish(self, out, |t, bw| {
            let flipped = t.empty_like(bw.grad(), bw.grad().dtype(), "flip");
            let sums = t.cumsum_raw(&flipped);
            let out = t.empty_like(&sums, sums.dtype(), "flip");
            drop((sums, flipped));
            smallvec![Some(out)]
        })
    }

    /// `x.cumsum(-2)` of numbers in fp32, through a kernel without scratch memory. Backward is that of [`Tape::cumsum_last`].
    pub fn cumsum_rows(&self, x: &Tensor) -> Tensor {
        let rec = self.record("CumsumBackward0", &[x]);
        let out = self.empty(*x.shape(), x.dtype(), "cumsum");
        rec.finish(self, out, |t, bw| {
            let flipped = t.empty_like(bw.grad(), bw.grad().dtype(), "flip");
            let sums = t.empty(*flipped.shape(), flipped.dtype(), "cumsum");
            let out = t.empty_like(&sums, sums.dtype(), "flip");
            drop((sums, flipped));
            smallvec![Some(out)]
        })
    }

    fn cumsum_raw(&self, x: &Tensor) -> Tensor {
        let out = self.empty(*x.shape(), x.dtype(), "cumsum");
        if x.numel() == x.last() {
            self.in_cumsum_of_row(x, x.dtype());
        }
        out
    }

    /// `x.cumsum(-1)` of integers, outside the graph. A single row goes through CUB's scan, several
    /// through a kernel without scratch memory (`scan_dim` in `aten/src/ATen/native/cuda/ScanUtils.cuh`).
    pub fn running_sum(&self, x: &Tensor) -> Tensor {
        let out = self.empty(*x.shape(), DType::I64, "cumsum");
        let wide = self.to_dtype(x, DType::I64);
        self.scan_storage(x.numel(), x.last());
        drop(wide);
        out
    }

    /// Running sums of rows of int64, [rows, n].
    pub fn running_sum_of(&self, [rows, n]: [u64; 2]) -> Tensor {
        let out = self.empty([rows, n], DType::I64, "cumsum");
        self.scan_storage(rows * n, n);
        out
    }

    fn scan_storage(&self, elements: u64, row: u64) {
        if elements == row {
            drop(self.empty([cub::scan(elements)], DType::U8, "scan storage"));
        }
    }
}
