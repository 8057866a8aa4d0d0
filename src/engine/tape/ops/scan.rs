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
        if x.numel() == x.last() {
            drop(self.empty([cub::scan(x.numel())], DType::U8, "scan storage"));
        }
        drop(wide);
        out
    }
}
