//! Products, and batches of them, that are added to a tensor.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::matmul::{Batched, Operands, Product, save_operands};
use crate::dtype::DType;

impl Tape {
    /// `torch.addmm(x, a, b, beta=…, alpha=…)` with numbers other than 1, for a matrix `x`, outside the graph: the result
    /// begins as a copy of `x`, to which cuBLAS adds the product.
    pub fn addmm_of(&self, x: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        self.fits(a.size(1) == b.size(0), "addmm", a, b);
        let out = self.product(*x.shape(), a.dtype(), "addmm");
        self.multiplied(&Operands::of(a, b).forward(), a.dtype());
        out
    }

    /// `torch.baddbmm(x, a, b)`: [n, i, k] × [n, k, j], added to [n, i, j] or [n, 1, j]; autocast casts all three.
    pub fn baddbmm(&self, x: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        // Arguments are cast from the last to the first.
        let [b, a, x] = [b, a, x].map(|operand| self.cast_low(operand));
        self.baddbmm_of(&x, &a, &b, false)
    }

    /// `torch.baddbmm(x, a, b, alpha=s)` for a number `s` other than 1 and a frozen `x`. The caller casts them where autocast
    /// would.
    pub fn scaled_baddbmm(&self, x: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        self.baddbmm_of(x, a, b, true)
    }

    fn baddbmm_of(&self, x: &Tensor, a: &Tensor, b: &Tensor, is_scaled: bool) -> Tensor {
        let fits = a.size(0) == b.size(0) && a.size(2) == b.size(1) && x.last() == b.last();
        self.fits(fits, "baddbmm", a, b);
        let mut rec = self.record("BaddbmmBackward0", &[x, a, b]);
        let saved = save_operands(self, &mut rec, a, b, 1);
        let batched = Batched::of(a, b);
        let shape = Dims::new(&[a.size(0), a.size(1), b.last()]);
        let out = self.batched_product(shape, [a, b], &batched.forward());
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad().clone();
            let dtype = g.dtype();
            let scaled = |product: Tensor| match is_scaled {
                true => t.scaled(&product, dtype),
                false => product,
            };
            // Alphabetical: batch1, batch2, then self.
            let grad_a = saved.b.map(|slot| {
                let right = t.transpose(&bw.saved[slot], 1, 2);
                let shape = Dims::new(&[g.size(0), g.size(1), right.last()]);
                scaled(t.batched_product(shape, [&g, &right], &batched.grad_of_left()))
            });
            let grad_b = saved.a.map(|slot| {
                let left = t.transpose(&bw.saved[slot], 1, 2);
                let shape = Dims::new(&[g.size(0), left.size(1), g.last()]);
                scaled(t.batched_product(shape, [&left, &g], &batched.grad_of_right()))
            });
            smallvec![bw.want(0, || g.clone()), grad_a, grad_b]
        })
    }

    /// Allocates a batch of products by cuBLAS, which takes copies of operands that it cannot read.
    fn batched_product(&self, shape: Dims, operands: [&Tensor; 2], work: &Product) -> Tensor {
        let out = self.product(shape, operands[0].dtype(), "baddbmm");
        self.multiplied(work, operands[0].dtype());
        drop(operands.map(|operand| self.ready_for_cublas(operand)));
        out
    }

    /// `maybe_multiply` of a gradient.
    fn scaled(&self, x: &Tensor, dtype: DType) -> Tensor {
        self.empty_like(x, dtype, "mul by a number")
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::tape::{Gpu, Tape};

    /// A factor whose rows and columns both have gaps is copied for each product that reads it, forward and backward.
    #[test]
    fn factors_with_gaps_are_copied_for_cublas() {
        let t = Tape::new(Gpu::H200);
        let (experts, rank, out, input) = (8, 4, 32, 64);
        let x = t.empty([experts, out, input], DType::Bf16, "x");
        let flat = t.parameter([out, rank, experts], DType::Bf16, "b");
        let [b, a] = [
            t.permute(&flat, &[2, 0, 1]),
            t.parameter([experts, rank, input], DType::Bf16, "a"),
        ];
        let start = t.mark();
        let y = t.scaled_baddbmm(&x, &b, &a);
        t.backward(&y);
        drop((y, x, a, b, flat));
        let log = t.finish();
        let made = log.events[start..].iter().filter(|event| event.is_alloc());
        let made: Vec<u64> = made
            .map(|event| log.allocations[event.storage() as usize].bytes)
            .filter(|bytes| *bytes < 1 << 20)
            .collect();
        let [whole, left, right] = [out * input, out * rank, rank * input].map(|elements| 2 * experts * elements);
        // The last is the gradient in the layout of its parameter.
        assert_eq!(made, [whole, left, whole, left, left, right, left, right, left]);
    }
}
