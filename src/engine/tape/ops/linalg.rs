//! Systems of linear equations.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Largest batch whose matrices cuBLAS solves one by one, and the smallest of these matrices
/// (`triangular_solve_kernel` in `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp`).
const LOOPED: (u64, u64) = (8, 64);

impl Tape {
    /// `torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)`:
    /// [.., n, n] and [.., n, m] → [.., n, m], whose columns are contiguous
    /// (`linalg_solve_triangular_backward` in `torch/csrc/autograd/FunctionsManual.cpp`).
    pub fn solve_unit_triangular(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("LinalgSolveTriangularBackward0", &[a, b]);
        rec.save(self, a);
        let out = self.solved(a, b);
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let (a, x) = (&bw.saved[0], &bw.saved[1]);
            let last = x.dim() - 1;
            let db = t.solved(&t.transpose(a, last - 1, last), bw.grad());
            let da = bw.want(0, || {
                let product = t.matmul(&db, &t.transpose(x, last - 1, last));
                let negated = t.neg(&product);
                drop(product);
                t.empty(*negated.shape(), negated.dtype(), "tril")
            });
            smallvec![da, Some(db)]
        })
    }

    fn solved(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let last = b.dim() - 1;
        let strides = b.shape().swapped(last - 1, last).contiguous_strides();
        let out = self.empty_strided(
            *b.shape(),
            strides.swapped(last - 1, last),
            b.dtype(),
            "solve_triangular",
        );
        self.in_triangular_solve(a);
        out
    }

    /// Allocates the addresses of a batch's matrices, which batched routines of cuBLAS take from the GPU.
    pub(crate) fn in_triangular_solve(&self, a: &Tensor) {
        let n = a.last();
        let batch = a.numel() / (n * n).max(1);
        if batch > LOOPED.0 || n < LOOPED.1 {
            let addresses = |name| self.empty([batch], DType::I64, name);
            drop((
                addresses("addresses of systems"),
                addresses("addresses of right-hand sides"),
            ));
        }
        self.cublas();
    }
}
