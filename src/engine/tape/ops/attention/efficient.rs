//! xFormers' memory-efficient attention.

use smallvec::smallvec;

use super::super::super::autograd::Grads;
use super::super::super::core::Tape;
use super::super::super::tensor::Tensor;
use super::{Extents, Pass, SdpaBackend, SdpaInputs};
use crate::dtype::DType;

impl Tape {
    /// `_scaled_dot_product_efficient_attention`.
    pub(super) fn efficient_attention(&self, call: &SdpaInputs<'_>) -> Tensor {
        let (q, k, v) = (call.q, call.k, call.v);
        let bias = call.mask.map(|m| self.aligned(self.additive(m, q.dtype())));
        let trained = bias.as_ref().filter(|bias| bias.requires_grad());
        let inputs: Vec<&Tensor> = [Some(q), Some(k), Some(v), trained].into_iter().flatten().collect();
        let trains_bias = trained.is_some();
        let mut rec = self.record("ScaledDotProductEfficientAttentionBackward0", &inputs);
        for t in [Some(q), Some(k), Some(v), bias.as_ref()].into_iter().flatten() {
            rec.save(self, t);
        }
        let [b, h, s, d] = [q.size(0), q.size(1), q.size(2), v.size(3)];
        let mark = self.work_mark();
        let (bshd, lse) = self.in_efficient_attention([q, v], || {
            let bshd = self.empty([b, s, h, d], q.dtype(), "attention output");
            let lse = rec
                .is_active()
                .then(|| self.empty([b, h, s.next_multiple_of(32)], DType::F32, "logsumexp of scores"));
            (bshd, lse)
        });
        let masked = bias.is_some();
        self.attended(mark, SdpaBackend::Efficient, (q, k), masked, Pass::Forward);
        let out = self.transpose(&bshd, 1, 2);
        drop(bshd);
        rec.save(self, &out);
        if let Some(lse) = lse {
            rec.save(self, &lse);
        }
        rec.finish(self, out, move |t, bw| {
            let bshd = |x: &Tensor, name| {
                let out = t.empty([x.size(0), x.size(2), x.size(1), x.size(3)], x.dtype(), name);
                t.transpose(&out, 1, 2)
            };
            let (q, k, v) = (&bw.saved[0], &bw.saved[1], &bw.saved[2]);
            let bias = bw.saved.get(3).filter(|_| trains_bias && bw.wants(3));
            let (mark, dq, dk, dv, dbias) = t.in_efficient_attention_backward([bw.grad(), q, k], || {
                let mark = t.work_mark();
                let dq = bshd(q, "attention backward, queries");
                let dk = bshd(k, "attention backward, keys");
                let dv = bshd(v, "attention backward, values");
                (mark, dq, dk, dv, bias.map(|bias| t.gradient_of_bias(bias)))
            });
            t.attended(mark, SdpaBackend::Efficient, (q, k), masked, Pass::Backward);
            let mut grads: Grads = smallvec![bw.want(0, || dq), bw.want(1, || dk), bw.want(2, || dv)];
            grads.extend(trains_bias.then_some(dbias));
            grads
        })
    }

    /// Makes the gradient of a bias, whose rows begin at multiples of 16 elements (`_efficient_attention_backward` in
    /// `aten/src/ATen/native/transformers/cuda/attention_backward.cu`).
    fn gradient_of_bias(&self, bias: &Tensor) -> Tensor {
        let (mut shape, d) = (*bias.shape(), bias.dim() - 1);
        let keys = shape[d];
        shape[d] = keys.next_multiple_of(16);
        self.empty(shape, bias.dtype(), "attention backward, bias")
            .narrow_raw(d, keys)
    }

    /// Runs `make`, which makes the results of a forward; beside them a half-precision kernel for wide heads needs the
    /// output in fp32.
    pub(crate) fn in_efficient_attention<R>(&self, [q, v]: [&Tensor; 2], make: impl FnOnce() -> R) -> R {
        let made = make();
        let [b, h, s, d] = [q.size(0), q.size(1), q.size(2), v.size(3)];
        if q.dtype() != DType::F32 && d.max(q.size(3)) > IN_REGISTERS {
            drop(self.empty([b, s, h, d], DType::F32, "output in fp32"));
        }
        made
    }

    /// Runs `make`, which makes the gradients of a backward, then allocates row sums and a workspace beside them.
    pub(crate) fn in_efficient_attention_backward<R>(&self, [grad, q, k]: [&Tensor; 3], make: impl FnOnce() -> R) -> R {
        let _copy = self.unrepeated(grad);
        let made = make();
        let delta = self.row_sums(grad, q);
        let scratch = self.scratch_held(
            backward_workspace(&Extents::of(q, k), grad.size(3)),
            "attention backward workspace",
        );
        drop((delta, scratch));
        made
    }

    /// The gradient times the output, summed over each head's elements; in half precision the kernel computes it.
    fn row_sums(&self, g: &Tensor, q: &Tensor) -> Tensor {
        let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
        if q.dtype() != DType::F32 {
            return self.empty([b, h, s], DType::F32, "row sums");
        }
        let product = self.empty(*g.shape(), DType::F32, "gradient times output");
        let sums = self.empty([b, s, h], DType::F32, "row sums");
        let delta = self.empty([b, h, s], DType::F32, "row sums, contiguous");
        drop((sums, product));
        delta
    }

    /// `pad_bias`: copies a mask whose rows are not multiples of 8 elements into one whose rows are.
    fn aligned(&self, bias: Tensor) -> Tensor {
        const ALIGNMENT: u64 = 8;
        let d = bias.dim() - 1;
        if (0..d).all(|i| bias.strides()[i].is_multiple_of(ALIGNMENT)) {
            return bias;
        }
        let keys = bias.size(d);
        if bias.requires_grad() {
            let padded = self.pad_end(&bias, d, keys.next_multiple_of(ALIGNMENT) - keys);
            return self.narrow(&padded, d, keys);
        }
        let mut shape = *bias.shape();
        shape[d] = keys.next_multiple_of(ALIGNMENT);
        let padded = self.empty(shape, bias.dtype(), "mask, rows padded");
        drop(bias);
        padded
    }
}

/// Widest head whose output a half-precision kernel keeps in registers.
const IN_REGISTERS: u64 = 128;

/// `AttentionBackwardKernel::workspace_size`: for each tile of queries by elements an fp32 tile of
/// the queries' gradient and a lock of 16 bytes; wide heads in half precision also keep the
/// gradients of keys and values, for each split of the keys
/// (`aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_backward.h`). Tiles are those
/// of kernels that fit a data-centre GPU's shared memory. Values have heads of `of_values` elements.
fn backward_workspace(e: &Extents, of_values: u64) -> u64 {
    let half = e.dtype != DType::F32;
    let widest = e.width.max(of_values);
    let (rows, columns) = match widest {
        0..=64 => (64, 64),
        65..=IN_REGISTERS if half => (128, 128),
        _ => (128, 64),
    };
    let (batch_heads, tile) = (e.batch * e.heads, rows * columns * 4 + 16);
    let mut per_head = e.queries.div_ceil(rows) * e.width.div_ceil(columns) * tile;
    if half && widest > IN_REGISTERS {
        let elements = e.width.next_multiple_of(rows) + of_values.next_multiple_of(rows);
        per_head += 4 * columns * elements * splits(e.keys, columns, batch_heads);
    }
    batch_heads * per_head.next_multiple_of(16)
}

/// Number of parts that the keys are split into, each of which needs memory of its own.
fn splits(keys: u64, columns: u64, batch_heads: u64) -> u64 {
    if batch_heads >= 256 && keys <= 2 * columns {
        return 1;
    }
    keys.div_ceil(columns).min(200 / batch_heads).max(1)
}
