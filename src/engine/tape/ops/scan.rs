//! Running sums.

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::cub;
use crate::dtype::DType;

impl Tape {
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
