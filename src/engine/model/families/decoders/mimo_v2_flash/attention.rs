//! MiMo-V2-Flash's attention (`transformers/models/mimo_v2_flash/modeling_mimo_v2_flash.py`).

use crate::model::decoder::block::BlockContext;
use crate::model::decoder::layer::Attend;
use crate::model::decoder::{DecoderConfig, OwnSizes};
use crate::nn::{self, AttentionCall, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `MiMoV2FlashAttention`.
pub(super) struct Attention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// A score of each head that no key has, in sliding blocks.
    sinks: Option<Tensor>,
    head_dim: u64,
    value_dim: u64,
    dropout: f64,
}

impl Attention {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let OwnSizes::ValueHeads(value_dim) = c.own else {
            unreachable!("the family has the elements of a value's head")
        };
        let slides = c.windows[index].is_some();
        let kv_heads = if slides { 2 * c.kv_heads } else { c.kv_heads };
        let map = |name, width| Linear::adapted(b, name, c.hidden, width, c.qkv_bias);
        let maps = || {
            (
                map("q_proj", c.heads * c.head_dim),
                map("k_proj", kv_heads * c.head_dim),
                map("v_proj", kv_heads * value_dim),
                Linear::adapted(b, "o_proj", c.heads * value_dim, c.hidden, false),
            )
        };
        // Parameters of the module itself come before those of its modules.
        let ((q_proj, k_proj, v_proj, o_proj), sinks) = b.early(maps, || slides.then(|| b.weight("sinks", [c.heads])));
        Self {
            module: b.module(),
            q_proj,
            k_proj,
            v_proj,
            o_proj,
            sinks,
            head_dim: c.head_dim,
            value_dim,
            dropout: c.attention_dropout,
        }
    }
}

impl Attend for Attention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |proj: &Linear, width: u64| {
                let flat = proj.call(t, &x);
                let split = t.view(&flat, [batch, seq, flat.last() / width, width]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(&self.q_proj, self.head_dim);
            let mut k = heads(&self.k_proj, self.head_dim);
            let mut v = t.scale(&heads(&self.v_proj, self.value_dim));
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin)
            };
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(q.dtype()),
            };
            let (mut out, weights) = nn::shifted_attention(t, &call, self.sinks.as_ref());
            out = t.contiguous(&t.reshape(&out, [batch, seq, q.size(1) * self.value_dim]));
            out = self.o_proj.call(t, &out);
            (out, Some(weights))
        })
    }
}
