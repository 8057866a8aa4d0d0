//! Attention as separate operations.

use super::super::super::core::Tape;
use super::super::super::kind::Component;
use super::super::super::tensor::Tensor;
use super::{Mask, SdpaInputs};
use crate::dtype::DType;

impl Tape {
    /// `_scaled_dot_product_attention_math`, the only implementation for heads that share keys and
    /// values in fp32 (`enable_gqa`; transformers asks for it without a mask). A connector attends both ways, all else to
    /// what came before.
    pub(super) fn math_attention(&self, call: &SdpaInputs<'_>) -> Tensor {
        if let Some(mask) = call.mask {
            return self.masked_math_attention(call, mask);
        }
        let (q, k, v) = (call.q, call.k, call.v);
        let heads = q.size(1);
        let scaled = self.scale(q);
        let causal =
            (self.component_now() != Component::Connector).then(|| self.causal_bias(q.size(2), k.size(2), q.dtype()));
        let k = self.repeat_interleave(k, heads);
        let v = self.repeat_interleave(v, heads);
        let mut weights = {
            let transposed = self.scale(&self.transpose(&k, 2, 3));
            self.matmul(&scaled, &transposed)
        };
        weights = self.safe_softmax(&weights);
        weights = self.dropout(&weights, call.dropout);
        let out = self.matmul(&weights, &v);
        drop((causal, scaled));
        out
    }

    /// The same with a mask, in fp32: one head of keys and values is broadcast to all query heads.
    fn masked_math_attention(&self, call: &SdpaInputs<'_>, mask: &Mask) -> Tensor {
        let dtype = call.q.dtype();
        let bias = self.additive(mask, dtype);
        let [q, k, v] = [call.q, call.k, call.v].map(|x| self.to_dtype(x, DType::F32));
        let scaled = self.scale(&q);
        let mut weights = {
            let transposed = self.scale(&self.transpose(&k, 2, 3));
            let product = self.matmul(&scaled, &transposed);
            self.add_(product, &bias)
        };
        weights = self.safe_softmax(&weights);
        weights = self.dropout(&weights, call.dropout);
        let _returned = self.to_dtype(&weights, dtype);
        let out = self.to_dtype(&self.matmul(&weights, &v), dtype);
        drop((scaled, q, k, v, bias));
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
}
