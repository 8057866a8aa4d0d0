//! cuDNN's fused attention.

use smallvec::smallvec;

use super::super::super::core::Tape;
use super::super::super::dims;
use super::super::super::tensor::Tensor;
use super::{Extents, Pass, SdpaBackend, SdpaInputs};
use crate::dtype::DType;

impl Tape {
    /// `_scaled_dot_product_cudnn_attention`: cuDNN's fused kernel, first choice on Hopper for
    /// half precision.
    pub(super) fn cudnn_attention(&self, call: &SdpaInputs<'_>) -> Tensor {
        let (q, k, v) = (call.q, call.k, call.v);
        let bias = call.mask.map(|m| self.additive(m, q.dtype()));
        let mut rec = self.record("ScaledDotProductCudnnAttentionBackward0", &[q, k, v]);
        rec.save(self, q);
        rec.save(self, k);
        rec.save(self, v);
        if let Some(bias) = &bias {
            rec.save(self, bias);
        }
        let mark = self.work_mark();
        let (seed, offset, out, lse) = self.in_cudnn_attention(|| {
            let seed = self.empty([], DType::I64, "philox seed");
            let offset = self.empty([], DType::I64, "philox offset");
            let mut shape = *q.shape();
            shape[3] = v.size(3);
            let strides = dims::dense_strides_like(&shape, q.strides());
            let out = self.empty_strided(shape, strides, q.dtype(), "attention output");
            let lse = rec.is_active().then(|| {
                let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
                self.empty([b, h, s, 1], DType::F32, "logsumexp of scores")
            });
            (seed, offset, out, lse)
        });
        self.attended(mark, SdpaBackend::Cudnn, (q, k), bias.is_some(), Pass::Forward);
        rec.save(self, &out);
        for t in [&lse, &Some(seed), &Some(offset)].into_iter().flatten() {
            rec.save(self, t);
        }
        let masked = bias.is_some();
        drop((lse, bias));
        rec.finish(self, out, move |t, bw| {
            let like = |x: &Tensor, name| t.empty_like(x, x.dtype(), name);
            let (q, k, v) = (&bw.saved[0], &bw.saved[1], &bw.saved[2]);
            let (mark, dq, dk, dv) = t.in_cudnn_attention_backward([bw.grad(), q, k], || {
                let mark = t.work_mark();
                let dq = like(q, "attention backward, queries");
                let dk = like(k, "attention backward, keys");
                let dv = like(v, "attention backward, values");
                (mark, dq, dk, dv)
            });
            t.attended(mark, SdpaBackend::Cudnn, (q, k), masked, Pass::Backward);
            smallvec![bw.want(0, || dq), bw.want(1, || dk), bw.want(2, || dv)]
        })
    }
}

impl Tape {
    /// Runs `make`, which makes the results of a forward, then allocates cuDNN's workspace beside them.
    pub(crate) fn in_cudnn_attention<R>(&self, make: impl FnOnce() -> R) -> R {
        let made = make();
        self.scratch(256, "cuDNN workspace");
        made
    }

    /// Runs `make`, which makes the gradients of a backward, then allocates cuDNN's workspace beside them; a gradient
    /// in another layout than the output's is copied first (`MHA.cpp`, `run_cudnn_SDP_bprop`).
    pub(crate) fn in_cudnn_attention_backward<R>(&self, [grad, q, k]: [&Tensor; 3], make: impl FnOnce() -> R) -> R {
        let _copy = self.unrepeated(grad);
        let made = make();
        self.scratch(backward_workspace(&Extents::of(q, k)), "cuDNN workspace");
        made
    }
}

/// Workspace of cuDNN's backward, which sums the gradient of the queries in fp32, beside one float per row; if heads
/// share keys and values, it also keeps their gradients by query head. Measured on 684 shapes.
fn backward_workspace(e: &Extents) -> u64 {
    let rows = e.batch * e.heads * e.queries;
    let shared = if e.kv_heads == e.heads {
        0
    } else {
        2 * e.batch * e.heads * e.keys * e.width * e.dtype.width()
    };
    4 * rows * e.width + 4 * rows + 256 + shared
}
