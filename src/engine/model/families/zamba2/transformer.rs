//! The transformer blocks that hybrid layers share in turn.

use super::config::Zamba2Config;
use super::layer::Transform;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::block::BlockContext;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Zamba2AttentionDecoderLayer`.
pub(super) struct SharedTransformer {
    module: Module,
    attention: SelfAttention,
    feed_forward: FeedForward,
    input_norm: RmsNorm,
    pre_ff_norm: RmsNorm,
}

/// Adapters of a projection, one for each hybrid layer: two narrower linear layers, and none for layers of another block.
struct Adapters(Vec<Option<(Module, [Linear; 2])>>);

/// `Zamba2Attention`.
struct SelfAttention {
    module: Module,
    qkv: [Linear; 3],
    output: Linear,
    adapters: Option<[Adapters; 3]>,
    heads: [u64; 2],
    head_dim: u64,
    has_rope: bool,
    dropout: f64,
}

/// `Zamba2MLP`.
struct FeedForward {
    module: Module,
    gate_up: Linear,
    down: Linear,
    adapters: Adapters,
    activation: Activation,
}

/// Names of the projections of attention, and of what adapts them.
const MAPS: [(&str, &str); 3] = [
    ("q_proj", "linear_q_adapter_list"),
    ("k_proj", "linear_k_adapter_list"),
    ("v_proj", "linear_v_adapter_list"),
];

impl Adapters {
    /// Those of the block of this number, from and to these widths.
    fn new(b: &Builder, name: &'static str, c: &Zamba2Config, block: u64, [input, output]: [u64; 2]) -> Self {
        let t = b.tape();
        let hybrid = c.is_hybrid.iter().filter(|&&hybrid| hybrid).count();
        let adapter = |i: usize| {
            (i as u64 % c.blocks == block).then(|| {
                t.layer(name, i, || {
                    let first = Linear::new(b, "0", input, c.rank, false);
                    (b.module(), [first, Linear::new(b, "1", c.rank, output, false)])
                })
            })
        };
        Self((0..hybrid).map(adapter).collect())
    }

    /// `h` with what the adapter of the hybrid layer `index` makes of `x`.
    fn added(&self, t: &Tape, index: usize, h: &Tensor, x: &Tensor) -> Tensor {
        let Some((module, [first, second])) = &self.0[index] else {
            unreachable!("a layer uses the block that has its adapter")
        };
        let adapted = module.call(t, || {
            let low = first.call(t, x);
            second.call(t, &low)
        });
        t.add(h, &adapted)
    }
}

impl SharedTransformer {
    /// Makes the block of this number.
    pub fn new(b: &Builder, c: &Zamba2Config, block: u64) -> Self {
        let t = b.tape();
        Self {
            module: b.module(),
            attention: t.scope("self_attn", || SelfAttention::new(b, c, block)),
            feed_forward: t.scope("feed_forward", || FeedForward {
                module: b.module(),
                gate_up: Linear::new(b, "gate_up_proj", c.hidden, 2 * c.intermediate, c.bias),
                down: Linear::new(b, "down_proj", c.intermediate, c.hidden, c.bias),
                adapters: Adapters::new(b, "gate_up_proj_adapter_list", c, block, [c.hidden, 2 * c.intermediate]),
                activation: c.activation,
            }),
            input_norm: RmsNorm::new(b, "input_layernorm", 2 * c.hidden),
            pre_ff_norm: RmsNorm::new(b, "pre_ff_layernorm", c.hidden),
        }
    }
}

impl Transform for SharedTransformer {
    fn call(&self, t: &Tape, shared: &BlockContext, index: usize, [x, embeds]: [&Tensor; 2]) -> Tensor {
        self.module.call(t, || {
            let mut h = t.cat(&[x, embeds], 2);
            h = self.input_norm.call(t, &h);
            let (attended, _weights) = self.attention.call(t, shared, index, &h);
            h = attended;
            h = self.pre_ff_norm.call(t, &h);
            self.feed_forward.call(t, index, &h)
        })
    }
}

impl FeedForward {
    fn call(&self, t: &Tape, index: usize, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut fused = self.gate_up.call(t, x);
            fused = self.adapters.added(t, index, &fused, x);
            let half = fused.last() / 2;
            let parts = t.split(&fused, fused.dim() - 1, &[half; 2]);
            drop(fused);
            let product = {
                let activated = nn::activate(t, self.activation, parts[0].clone());
                t.mul(&activated, &parts[1])
            };
            self.down.call(t, &product)
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Zamba2Config, block: u64) -> Self {
        let (wide, head_dim) = (2 * c.hidden, c.head_dim());
        let widths = [c.heads, c.kv_heads, c.kv_heads].map(|heads| heads * head_dim);
        let qkv = [0, 1, 2].map(|i| Linear::new(b, MAPS[i].0, wide, widths[i], false));
        let output = Linear::new(b, "o_proj", c.heads * head_dim, c.hidden, false);
        let adapters = || MAPS.map(|(_, name)| Adapters::new(b, name, c, block, [wide; 2]));
        Self {
            module: b.module(),
            qkv,
            output,
            adapters: c.adapts_attention.then(adapters),
            heads: [c.heads, c.kv_heads],
            head_dim,
            has_rope: c.rope.is_some(),
            dropout: c.attention_dropout,
        }
    }

    /// Output and weights.
    fn call(&self, t: &Tape, shared: &BlockContext, index: usize, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let mut flat = [0, 1, 2].map(|i| self.qkv[i].call(t, x));
            if let Some(adapters) = &self.adapters {
                for (h, adapters) in flat.iter_mut().zip(adapters) {
                    *h = adapters.added(t, index, h, x);
                }
            }
            let [heads, kv_heads] = self.heads;
            let split = |flat: Tensor, heads| {
                let split = t.view(&flat, [batch, seq, heads, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let [q, k, v] = flat;
            let (mut q, mut k, mut v) = (split(q, heads), split(k, kv_heads), split(v, kv_heads));
            if self.has_rope {
                let [cos, sin] = [&shared.cos, &shared.sin].map(|wave| t.unsqueeze(wave, 1));
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
            out = t.reshape(&out, [batch, seq, heads * self.head_dim]);
            (self.output.call(t, &out), weights)
        })
    }
}
