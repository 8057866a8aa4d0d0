//! Batches of products that are added to a bias.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::matmul::{Batched, Product, save_operands};

impl Tape {
    /// `bias.baddbmm(a, b, beta=1, alpha=number)` for a bias without a gradient: [x, n, k] × [x, k, m] → [x, n, m]. The
    /// gradients of the operands are multiplied by the number once they are made (`maybe_multiply`).
    pub fn baddbmm(&self, bias: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        let b = &self.cast_low(b);
        let a = &self.cast_low(a);
        let bias = &self.cast_low(bias);
        let mut rec = self.record("BaddbmmBackward0", &[bias, a, b]);
        let saved = save_operands(self, &mut rec, a, b, 1);
        self.fits(a.size(0) == b.size(0) && a.size(2) == b.size(1), "baddbmm", a, b);
        let out = self.product([a.size(0), a.size(1), b.size(2)], a.dtype(), "baddbmm");
        let batched = Batched::of(a, b);
        self.multiplied(&batched.forward(), a.dtype());
        let (a_shape, b_shape) = (*a.shape(), *b.shape());
        rec.finish(self, out, move |t, bw| {
            let scaled = |shape, work: Product| {
                let dtype = bw.grad().dtype();
                let product = t.product(shape, dtype, "baddbmm backward");
                t.multiplied(&work, dtype);
                let out = t.empty_like(&product, dtype, "mul by a number");
                drop(product);
                out
            };
            // Alphabetical: batch1, then batch2.
            let grad_a = saved.b.map(|_| scaled(a_shape, batched.grad_of_left()));
            let grad_b = saved.a.map(|_| scaled(b_shape, batched.grad_of_right()));
            smallvec![None, grad_a, grad_b]
        })
    }
}
