//! Functions of Liger that take the place of a model's own (`liger_kernel/ops/{rms_norm,layer_norm,swiglu,geglu,rope}.py`,
//! 0.8): each one kernel, with what its backward keeps. Gradients that they return are views, which autograd adds nothing to
//! in place.

use smallvec::{SmallVec, smallvec};

use super::super::autograd::Grads;
use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

impl Tape {
    /// `LigerRMSNormFunction.apply(x, weight, …)` over the last dimension, in the type of `x`. With `in_place`, backward
    /// writes the gradient of `x` over that of the result.
    pub fn liger_rms_norm(&self, x: &Tensor, weight: &Tensor, in_place: bool) -> Tensor {
        let mut rec = self.record("LigerRMSNormFunctionBackward", &[x, weight]);
        let x = &self.no_grad(|| self.contiguous(x));
        let out = self.written(x, "rms_norm");
        let rstd = self.empty([rows(x)], DType::F32, "rms_norm rstd");
        [x, weight, &rstd].into_iter().for_each(|saved| rec.save(self, saved));
        drop(rstd);
        rec.finish(self, out, move |t, bw| {
            let g = t.contiguous(bw.grad());
            let of_rows = bw.wants(1).then(|| t.gradients_of_rows(&bw.saved[1]));
            let dx = match in_place {
                true => g.viewed(),
                false => t.written(&g, "rms_norm backward").viewed(),
            };
            drop(g);
            let weight = of_rows.map(|rows| t.summed_rows(rows, bw.saved[1].dtype()));
            smallvec![bw.want(0, || dx.clone()), weight]
        })
    }

    /// `LigerLayerNormFunction.apply(x, weight, bias, …)` over the last dimension, in the type of `x`.
    pub fn liger_layer_norm(&self, x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
        let mut rec = self.record("LigerLayerNormFunctionBackward", &[x, weight, bias]);
        let x = &self.no_grad(|| self.contiguous(x));
        let out = self.written(x, "layer_norm");
        let [mean, rstd] = ["layer_norm mean", "layer_norm rstd"].map(|name| self.empty([rows(x)], DType::F32, name));
        let saved = [x, weight, bias, &mean, &rstd];
        saved.into_iter().for_each(|saved| rec.save(self, saved));
        drop((mean, rstd));
        rec.finish(self, out, |t, bw| {
            let g = t.contiguous(bw.grad());
            let of_rows: SmallVec<[Option<Tensor>; 2]> = (1..3)
                .map(|i| bw.wants(i).then(|| t.gradients_of_rows(&bw.saved[i])))
                .collect();
            let dx = t.written(&bw.saved[0], "layer_norm backward").viewed();
            drop(g);
            let mut grads: Grads = smallvec![bw.want(0, || dx.clone())];
            for (i, rows) in of_rows.into_iter().enumerate() {
                grads.push(rows.map(|rows| t.summed_rows(rows, bw.saved[i + 1].dtype())));
            }
            grads
        })
    }

    /// `LigerSiLUMulFunction.apply(gate, up)`, and `LigerGELUMulFunction`'s: the activation of the gate times the other.
    /// Backward writes the gradients of both over them.
    pub fn liger_gated(&self, gate: &Tensor, up: &Tensor) -> Tensor {
        let mut rec = self.record("LigerSiLUMulFunctionBackward", &[gate, up]);
        let [gate, up] = [gate, up].map(|x| self.no_grad(|| self.contiguous(x)));
        let out = self.written(&gate, "activation times gate");
        [&gate, &up].into_iter().for_each(|saved| rec.save(self, saved));
        drop((gate, up));
        rec.finish(self, out, |t, bw| {
            drop(t.contiguous(bw.grad()));
            let over = |i: usize| bw.saved[i].viewed();
            smallvec![bw.want(0, || over(0)), bw.want(1, || over(1))]
        })
    }

    /// `LigerRopeFunction.apply(q, k, cos, sin)`: queries and keys [batch, heads, seq, width] are rotated in place, in
    /// forward and in backward, once they lie position by position.
    pub fn liger_rope(&self, [q, k]: [&Tensor; 2], [cos, sin]: [&Tensor; 2]) -> [Tensor; 2] {
        let mut rec = self.record("LigerRopeFunctionBackward", &[q, k, cos, sin]);
        let rotated = |t: &Self, x: &Tensor| {
            t.no_grad(|| {
                let by_position = t.contiguous(&t.transpose(x, 1, 2));
                t.transpose(&by_position, 1, 2).detach()
            })
        };
        let out = vec![rotated(self, q), rotated(self, k)];
        [cos, sin].into_iter().for_each(|saved| rec.save(self, saved));
        let mut out = rec
            .finish_many(self, out, move |t, bw| {
                let of = |g: &Option<Tensor>| g.as_ref().map(|g| rotated(t, g).viewed());
                let grads: Grads = bw.grads.iter().map(of).collect();
                grads.into_iter().chain([None, None]).collect()
            })
            .into_iter();
        match (out.next(), out.next()) {
            (Some(q), Some(k)) => [q, k],
            _ => unreachable!("two outputs"),
        }
    }

    /// A tensor like `x` that one kernel writes, reading it.
    fn written(&self, x: &Tensor, name: &'static str) -> Tensor {
        let out = self.empty_like(x, x.dtype(), name);
        if self.works() {
            self.reads(&out, &[x]);
        }
        out
    }

    /// Gradients of a weight from the rows of each multiprocessor, in fp32.
    fn gradients_of_rows(&self, weight: &Tensor) -> Tensor {
        self.empty([self.gpu().sms, weight.last()], DType::F32, "gradients of rows")
    }

    /// `rows.sum(dim=0).to(dtype)`.
    fn summed_rows(&self, rows: Tensor, dtype: DType) -> Tensor {
        let sum = self.sum_dim(&rows, 0);
        self.to_dtype(&sum, dtype)
    }
}

impl Tensor {
    /// `x.view(x.shape)`.
    fn viewed(&self) -> Self {
        self.alias(*self.shape(), *self.strides())
    }
}

/// Rows of a tensor, over its last dimension.
fn rows(x: &Tensor) -> u64 {
    x.numel() / x.last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;
    use crate::tape::log::Log;

    /// Bytes requested by `run` and its backward, after a parameter of [8, 64] and one of [64].
    fn requested(run: impl FnOnce(&Tape, &Tensor, &Tensor) -> Tensor) -> Vec<u64> {
        let tape = Tape::new(Gpu::H200);
        let x = tape.parameter([8, 64], DType::Bf16, "x");
        let weight = tape.parameter([64], DType::Bf16, "weight");
        let out = run(&tape, &x, &weight);
        let grad = tape.empty([8, 64], DType::Bf16, "gradient");
        tape.backward_from(&out, grad);
        drop((out, x, weight));
        let log: Log = tape.finish();
        log.allocations.iter().skip(2).map(|a| a.bytes).collect()
    }

    const ROWS: u64 = 132 * 64 * 4;

    #[test]
    fn a_norm_in_place_makes_no_gradient_of_its_input() {
        let sizes = |in_place| requested(|t, x, weight| t.liger_rms_norm(x, weight, in_place));
        // Result, inverse root of each row, incoming gradient, gradients of rows, their sum in fp32 and in 16 bits; the
        // parameter's gradient is a copy of the incoming one, which its caller holds.
        assert_eq!(sizes(true)[..4], [1024, 32, 1024, ROWS]);
        assert_eq!(sizes(false).len(), sizes(true).len() + 1);
        assert_eq!(sizes(false)[..5], [1024, 32, 1024, ROWS, 1024]);
    }

    #[test]
    fn gradients_of_a_gated_product_are_written_over_its_inputs() {
        let tape = Tape::new(Gpu::H200);
        let x = tape.parameter([8, 64], DType::Bf16, "x");
        let [gate, up] = [tape.scale(&x), tape.scale(&x)];
        let out = tape.liger_gated(&gate, &up);
        let before = tape.mark();
        let grad = tape.empty([8, 64], DType::Bf16, "gradient");
        drop((gate, up));
        tape.backward_from(&out, grad.clone());
        drop((grad, out, x));
        let log = tape.finish();
        let made = log.events[before..].iter().filter(|event| event.is_alloc()).count();
        // The incoming gradient, and those of the two products by a number.
        assert_eq!(made, 3);
    }

    #[test]
    fn positions_turn_queries_and_keys_where_they_are() {
        let tape = Tape::new(Gpu::H200);
        let x = tape.parameter([1, 16, 4, 64], DType::Bf16, "x");
        let product = tape.scale(&x);
        let heads = tape.transpose(&product, 1, 2);
        let waves = [0, 1].map(|_| tape.empty([1, 16, 64], DType::Bf16, "wave"));
        let before = tape.mark();
        let [q, k] = tape.liger_rope([&heads, &heads], [&waves[0], &waves[1]]);
        assert_eq!(tape.mark(), before);
        assert_eq!([q.shape(), k.shape()], [heads.shape(); 2]);
        drop((q, k, waves, heads, product, x));
        tape.finish();
    }
}
