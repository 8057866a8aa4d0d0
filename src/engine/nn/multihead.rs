//! `torch.nn.MultiheadAttention` (`torch/nn/functional.py`, `multi_head_attention_forward`).

use super::builder::Builder;
use super::linear::Linear;
use crate::tape::{Module, Tape, Tensor};

/// Attention whose three input projections are one parameter.
pub struct MultiheadAttention {
    module: Module,
    in_proj_weight: Tensor,
    in_proj_bias: Tensor,
    out_proj: Linear,
    heads: u64,
}

impl MultiheadAttention {
    /// Makes an attention of `heads` heads over a width.
    pub fn new(b: &Builder, name: &'static str, width: u64, heads: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            in_proj_weight: b.weight("in_proj_weight", [3 * width, width]),
            in_proj_bias: b.weight("in_proj_bias", [3 * width]),
            out_proj: Linear::new(b, "out_proj", width, width, true),
            heads,
        })
    }

    /// Attends from queries [batch, queries, width] to a context [batch, keys, width], giving [batch, queries, width].
    /// The weights are computed too, because `need_weights` defaults to true.
    pub fn call(&self, t: &Tape, query: &Tensor, context: &Tensor) -> Tensor {
        self.module.call(t, || {
            let (query, context) = (t.transpose(query, 0, 1), t.transpose(context, 0, 1));
            let [queries, batch, width] = [query.size(0), query.size(1), query.size(2)];
            let (q, kv) = self.project(t, &query, &context);
            let by_head = |x: &Tensor| {
                let split = t.view(x, [x.size(0), batch * self.heads, width / self.heads]);
                t.transpose(&split, 0, 1)
            };
            let (k, v) = (t.select(&kv, 0), t.select(&kv, 0));
            drop(kv);
            let (q, k, v) = (by_head(&q), by_head(&k), by_head(&v));
            let q = t.scale(&q);
            let mut weights = t.matmul(&q, &t.transpose(&k, 1, 2));
            weights = t.softmax(&weights, None);
            let mut out = t.matmul(&weights, &v);
            out = t.contiguous(&t.transpose(&out, 0, 1));
            out = t.view(&out, [queries * batch, width]);
            out = self.out_proj.call(t, &out);
            out = t.view(&out, [queries, batch, width]);
            let shaped = t.view(&weights, [batch, self.heads, queries, context.size(0)]);
            drop(t.mean(&shaped, 1));
            t.transpose(&out, 0, 1)
        })
    }

    /// Attends from a query [batch, queries, width] to keys and values of their own, [batch, keys, width] each: [batch, queries,
    /// width], and the weights that are returned, [batch, queries, keys].
    pub fn call_on(&self, t: &Tape, inputs: [&Tensor; 3]) -> (Tensor, Tensor) {
        self.module.call(t, || {
            let [query, key, value] = inputs.map(|x| t.transpose(x, 0, 1));
            let [queries, batch, width] = [query.size(0), query.size(1), query.size(2)];
            let [q, k, v] = {
                let weights = t.split(&self.in_proj_weight, 0, &[width; 3]);
                let biases = t.split(&self.in_proj_bias, 0, &[width; 3]);
                let projected = |x: &Tensor, i: usize| t.linear(x, &weights[i], Some(&biases[i]));
                [projected(&query, 0), projected(&key, 1), projected(&value, 2)]
            };
            let by_head = |x: &Tensor| {
                let split = t.view(x, [x.size(0), batch * self.heads, width / self.heads]);
                t.transpose(&split, 0, 1)
            };
            let (q, k, v) = (by_head(&q), by_head(&k), by_head(&v));
            let scaled = t.scale(&q);
            let mut weights = t.matmul(&scaled, &t.transpose(&k, 1, 2));
            weights = t.softmax(&weights, None);
            let mut out = t.matmul(&weights, &v);
            out = t.contiguous(&t.transpose(&out, 0, 1));
            out = t.view(&out, [queries * batch, width]);
            out = self.out_proj.call(t, &out);
            out = t.view(&out, [queries, batch, width]);
            let shaped = t.view(&weights, [batch, self.heads, queries, k.size(1)]);
            let mean = t.mean(&shaped, 1);
            drop((q, k, v));
            (t.transpose(&out, 0, 1), mean)
        })
    }

    /// `_in_projection_packed` of queries and of keys and values, which come stacked.
    fn project(&self, t: &Tape, query: &Tensor, context: &Tensor) -> (Tensor, Tensor) {
        let [keys, batch, width] = [context.size(0), context.size(1), context.size(2)];
        let weights = t.split(&self.in_proj_weight, 0, &[width, 2 * width]);
        let biases = t.split(&self.in_proj_bias, 0, &[width, 2 * width]);
        let q = t.linear(query, &weights[0], Some(&biases[0]));
        let mut kv = t.linear(context, &weights[1], Some(&biases[1]));
        let stacked = t.transpose(&t.unsqueeze(&t.view(&kv, [keys, batch, 2, width]), 0), 0, 3);
        kv = t.contiguous(&t.squeeze(&stacked, 3));
        (q, kv)
    }
}
