//! Attention with sinks of Granite with sliding windows (`transformers/models/granite_swa/modeling_granite_swa.py`).

use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::layer::{Attend, Layer as DecoderLayer};
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, Builder, Linear, SinkCall};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block: Granite's, with another attention.
pub(crate) struct Layer;

impl Layer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> DecoderLayer {
        let attention = || Box::new(SinkAttention::new(b, c)) as _;
        DecoderLayer::with_parts(b, c, &attention, &|| Box::new(Mlp::new(b, c)))
    }
}

/// `GraniteSWAAttention`.
pub(crate) struct SinkAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// A score of each head that no key has.
    sinks: Tensor,
    head_dim: u64,
    dropout: f64,
}

impl SinkAttention {
    pub(crate) fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let maps = || {
            let maps = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)];
            let maps = maps.map(|(name, width)| Linear::adapted(b, name, c.hidden, width, c.qkv_bias));
            (maps, Linear::adapted(b, "o_proj", q, c.hidden, c.o_bias))
        };
        // Parameters of the module itself come before those of its modules.
        let (([q_proj, k_proj, v_proj], o_proj), sinks) = b.early(maps, || b.weight("sinks", [c.heads]));
        Self {
            module: b.module(),
            q_proj,
            k_proj,
            v_proj,
            o_proj,
            sinks,
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }
}

impl Attend for SinkAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |proj: &Linear| {
                let flat = proj.call(t, &x);
                let split = t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(&self.q_proj);
            let mut k = heads(&self.k_proj);
            let mut v = heads(&self.v_proj);
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin))
            };
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = SinkCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                sinks: &self.sinks,
                dropout: self.dropout,
            };
            let (mut out, weights) = nn::sink_scaled_attention(t, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, Some(weights))
        })
    }
}
