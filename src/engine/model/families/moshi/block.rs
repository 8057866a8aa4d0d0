//! A block: attention, whose maps are modules within modules, and a gated MLP.

use super::MoshiConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear, RmsNorm, RmsScale, Rotary};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct Shared {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub position_ids: Tensor,
    pub cache: Option<KvCache>,
}

/// `MoshiDecoderLayer`.
pub(super) struct Block {
    attention: SelfAttention,
    mlp: Mlp,
    norms: [RmsNorm; 2],
}

/// `MoshiAttention`.
struct SelfAttention {
    module: Module,
    /// Queries, keys, values and the output: each a `MoshiLinear`.
    maps: [(Module, Linear); 4],
    rotary: Rotary,
    head_dim: u64,
    dropout: f64,
}

/// `MoshiGatingMLP`.
struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl Block {
    /// Makes a block.
    pub fn new(b: &Builder, c: &MoshiConfig) -> Self {
        let t = b.tape();
        let attention = t.scope("self_attn", || SelfAttention::new(b, c));
        let mlp = t.scope("mlp", || Mlp {
            module: b.module(),
            fc1: Linear::new(b, "fc1", c.hidden, c.fused, false),
            fc2: Linear::new(b, "fc2", c.fused / 2, c.hidden, false),
            activation: c.activation,
        });
        let names = ["input_layernorm", "post_attention_layernorm"];
        Self {
            attention,
            mlp,
            norms: names.map(|name| RmsNorm::scaled(b, name, c.hidden, RmsScale::WideWeight)),
        }
    }

    /// [batch, seq, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let mut h = self.norms[0].call(t, &x);
        let (out, _weights) = self.attention.call(t, shared, &h);
        h = out;
        h = t.add(&x, &h);
        drop(x);
        let residual = h.clone();
        h = self.norms[1].call(t, &h);
        h = self.mlp.call(t, &h);
        t.add(&residual, &h)
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut h = self.fc1.call(t, x);
            h = t.view(&h, [h.size(0), h.size(1), 2, h.last() / 2]);
            h = {
                let activated = nn::activate(t, self.activation, t.select(&h, 2));
                t.mul(&activated, &t.select(&h, 2))
            };
            self.fc2.call(t, &h)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &MoshiConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let maps = [
            ("q_proj", c.hidden, q),
            ("k_proj", c.hidden, kv),
            ("v_proj", c.hidden, kv),
            ("o_proj", q, c.hidden),
        ];
        let map = |(name, input, output)| {
            let make = || (b.module(), Linear::new(b, "linear", input, output, false));
            b.tape().scope(name, make)
        };
        Self {
            module: b.module(),
            maps: maps.map(map),
            rotary: Rotary::new(b, c.head_dim)
                .dynamic(c.rope.is_dynamic())
                .initialised(b.tape()),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn mapped(&self, t: &Tape, which: usize, x: &Tensor) -> Tensor {
        let (module, map) = &self.maps[which];
        module.call(t, || map.call(t, x))
    }

    /// Output and weights.
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |which| {
                let flat = self.mapped(t, which, x);
                let split = t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let [mut q, mut k, mut v] = [0, 1, 2].map(heads);
            let (cos, sin) = self.rotary.call(t, &v, &shared.position_ids);
            {
                let [cos, sin] = [&cos, &sin].map(|wave| t.unsqueeze(wave, 1));
                let rotated = [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin));
                [q, k] = rotated;
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            let projected = self.mapped(t, 3, &out);
            drop(out);
            (projected, weights)
        })
    }
}
