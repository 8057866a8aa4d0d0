//! `scaled_dot_product_attention`: which implementation PyTorch takes, and what each one makes.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims::{self, Dims};
use super::super::kind::Kind;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// What an attention mask is.
#[derive(Clone)]
pub enum Mask {
    /// `true` where a position may be attended to.
    Bool(Tensor),
    /// Added to the scores.
    Bias(Tensor),
}

/// Arguments of `scaled_dot_product_attention`.
pub struct SdpaInputs<'a> {
    /// [batch, heads, queries, width].
    pub q: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub k: &'a Tensor,
    /// [batch, kv heads, keys, width].
    pub v: &'a Tensor,
    /// Broadcasts to [batch, heads, queries, keys].
    pub mask: Option<&'a Mask>,
    /// Probability of dropout.
    pub dropout: f64,
}

impl Tape {
    /// `scaled_dot_product_attention(...)` → [batch, heads, queries, width].
    pub fn sdpa(&self, inputs: &SdpaInputs<'_>) -> Tensor {
        let mask = &inputs.mask.map(|m| match m {
            Mask::Bias(bias) => Mask::Bias(self.cast_low(bias)),
            Mask::Bool(allowed) => Mask::Bool(allowed.clone()),
        });
        let v = self.cast_low(inputs.v);
        let k = self.cast_low(inputs.k);
        let q = self.cast_low(inputs.q);
        if q.dtype() == DType::F32 && q.size(1) != k.size(1) {
            self.without_autocast(|| self.math_attention(&q, &k, &v))
        } else if q.dtype() == DType::F32 {
            self.efficient_attention(&q, &k, &v, mask.as_ref())
        } else {
            self.cudnn_attention(&q, &k, &v, mask.as_ref())
        }
    }

    /// `_scaled_dot_product_cudnn_attention`: cuDNN's fused kernel, first choice on Hopper for
    /// half precision.
    fn cudnn_attention(&self, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Mask>) -> Tensor {
        let bias = mask.map(|m| self.cudnn_bias(m, q.dtype()));
        let mut rec = self.record("ScaledDotProductCudnnAttentionBackward0", &[q, k, v]);
        rec.save(self, q);
        rec.save(self, k);
        rec.save(self, v);
        if let Some(bias) = &bias {
            rec.save(self, bias);
        }
        let seed = self.empty([], DType::I64, "philox seed");
        let offset = self.empty([], DType::I64, "philox offset");
        let strides = dims::dense_strides_like(q.shape(), q.strides());
        let out = self.empty_strided(*q.shape(), strides, q.dtype(), "attention output");
        let lse = rec.is_active().then(|| {
            let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
            self.empty([b, h, s, 1], DType::F32, "logsumexp of scores")
        });
        self.scratch(256, "cuDNN workspace");
        rec.save(self, &out);
        for t in [&lse, &Some(seed), &Some(offset)].into_iter().flatten() {
            rec.save(self, t);
        }
        drop((lse, bias));
        rec.finish(self, out, |t, bw| {
            let like = |x: &Tensor, name| t.empty_like(x, x.dtype(), name);
            let (q, k, v) = (&bw.saved[0], &bw.saved[1], &bw.saved[2]);
            let dq = like(q, "attention backward, queries");
            let dk = like(k, "attention backward, keys");
            let dv = like(v, "attention backward, values");
            t.scratch(cudnn_backward_workspace(&Extents::of(q, k)), "cuDNN workspace");
            smallvec![bw.want(0, || dq), bw.want(1, || dk), bw.want(2, || dv)]
        })
    }

    /// cuDNN takes an additive mask only.
    fn cudnn_bias(&self, mask: &Mask, dtype: DType) -> Tensor {
        match mask {
            Mask::Bias(t) => t.clone(),
            Mask::Bool(t) => {
                let scalars = [self.empty([], dtype, "0"), self.empty([], dtype, "-inf")];
                let bias = self.empty_like(t, dtype, "additive mask");
                drop(scalars);
                bias
            }
        }
    }

    /// `_scaled_dot_product_efficient_attention`: xFormers' kernel.
    fn efficient_attention(&self, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Mask>) -> Tensor {
        let bias = mask.map(|m| self.cudnn_bias(m, q.dtype()));
        let mut rec = self.record("ScaledDotProductEfficientAttentionBackward0", &[q, k, v]);
        for t in [Some(q), Some(k), Some(v), bias.as_ref()].into_iter().flatten() {
            rec.save(self, t);
        }
        let [b, h, s, d] = [q.size(0), q.size(1), q.size(2), v.size(3)];
        let bshd = self.empty([b, s, h, d], q.dtype(), "attention output");
        let lse = rec
            .is_active()
            .then(|| self.empty([b, h, s.next_multiple_of(32)], DType::F32, "logsumexp of scores"));
        let out = self.transpose(&bshd, 1, 2);
        drop(bshd);
        rec.save(self, &out);
        if let Some(lse) = lse {
            rec.save(self, &lse);
        }
        rec.finish(self, out, |t, bw| {
            let bshd = |x: &Tensor, name| {
                let out = t.empty([x.size(0), x.size(2), x.size(1), x.size(3)], x.dtype(), name);
                t.transpose(&out, 1, 2)
            };
            let g = bw.grad();
            let (q, k, v) = (&bw.saved[0], &bw.saved[1], &bw.saved[2]);
            let dq = bshd(q, "attention backward, queries");
            let dk = bshd(k, "attention backward, keys");
            let dv = bshd(v, "attention backward, values");
            let product = t.empty(*g.shape(), DType::F32, "gradient times output");
            let [b, h, s] = [q.size(0), q.size(1), q.size(2)];
            let sums = t.empty([b, s, h], DType::F32, "row sums");
            let delta = t.empty([b, h, s], DType::F32, "row sums, contiguous");
            drop((sums, product));
            let scratch = t.scratch_held(
                efficient_backward_workspace(&Extents::of(q, k)),
                "attention backward workspace",
            );
            drop((delta, scratch));
            smallvec![bw.want(0, || dq), bw.want(1, || dk), bw.want(2, || dv)]
        })
    }

    /// `_scaled_dot_product_attention_math`, the only implementation for heads that share keys and
    /// values in fp32 (`enable_gqa`; transformers asks for it only with a causal mask).
    fn math_attention(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
        let heads = q.size(1);
        let scaled = self.scale(q);
        let causal = self.causal_bias(q.size(2), k.size(2), q.dtype());
        let k = self.repeat_interleave(k, heads);
        let v = self.repeat_interleave(v, heads);
        let mut weights = {
            let turned = self.scale(&self.transpose(&k, 2, 3));
            self.matmul(&scaled, &turned)
        };
        weights = self.safe_softmax(&weights);
        let out = self.matmul(&weights, &v);
        drop((causal, scaled));
        out
    }

    /// `ones(queries, keys).tril()` as zeros and negative infinities.
    fn causal_bias(&self, queries: u64, keys: u64, dtype: DType) -> Tensor {
        let ones = self.empty([queries, keys], DType::Bool, "ones");
        let lower = self.empty([queries, keys], DType::Bool, "tril");
        drop(ones);
        let scalars = [self.empty([], dtype, "0"), self.empty([], dtype, "-inf")];
        let bias = self.empty([queries, keys], dtype, "causal mask");
        drop((scalars, lower));
        bias
    }

    /// `x.repeat_interleave(n, dim=1)` up to `heads`: [batch, kv heads, seq, width] copied.
    fn repeat_interleave(&self, x: &Tensor, heads: u64) -> Tensor {
        let [batch, kv_heads, seq, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
        let stretched = self.expand(&self.unsqueeze(x, 2), [batch, kv_heads, heads / kv_heads, seq, width]);
        let copied = self.contiguous_copy(&stretched);
        self.view(&copied, [batch, heads, seq, width])
    }

    fn scratch(&self, bytes: u64, name: &'static str) {
        drop(self.scratch_held(bytes, name));
    }

    fn scratch_held(&self, bytes: u64, name: &'static str) -> super::super::core::Storage {
        self.storage_of_bytes(bytes, &Dims::new(&[bytes]), DType::U8, name, Kind::Temporary)
    }
}

/// Extents of an attention.
pub(super) struct Extents {
    pub batch: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub queries: u64,
    pub keys: u64,
    /// Elements of one head.
    pub width: u64,
    pub dtype: DType,
}

impl Extents {
    /// Those of queries and keys, [batch, heads, positions, width] each.
    pub fn of(q: &Tensor, k: &Tensor) -> Self {
        Self {
            batch: q.size(0),
            heads: q.size(1),
            kv_heads: k.size(1),
            queries: q.size(2),
            keys: k.size(2),
            width: q.size(3),
            dtype: q.dtype(),
        }
    }
}

/// cuDNN's backward sums the gradient of the queries in fp32, beside one float per row; where heads
/// share keys and values, it also keeps their gradients by query head. Measured on 684 shapes.
pub(super) fn cudnn_backward_workspace(e: &Extents) -> u64 {
    let rows = e.batch * e.heads * e.queries;
    let shared = if e.kv_heads == e.heads {
        0
    } else {
        2 * e.batch * e.heads * e.keys * e.width * e.dtype.width()
    };
    4 * rows * e.width + 4 * rows + 256 + shared
}

/// `AttentionBackwardKernel::workspace_size`: for each block of 64 queries and each head an fp32
/// tile of the queries' gradient and a lock of 16 bytes.
pub(super) fn efficient_backward_workspace(e: &Extents) -> u64 {
    let blocks = e.queries.div_ceil(64) * e.width.div_ceil(64);
    e.batch * e.heads * blocks * (64 * 64 * 4 + 16)
}
