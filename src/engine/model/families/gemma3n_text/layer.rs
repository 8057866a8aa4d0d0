//! A layer of Gemma 3n's language model (`transformers/models/gemma3n/modeling_gemma3n.py`).

use super::alt_up::{AltUp, Mlp};
use super::config::Gemma3nTextConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::families::gemma4_text::LayerContext;
use crate::nn::{self, AttentionCall, Builder, Linear, PowerRmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Gemma3nTextDecoderLayer`.
pub(super) struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: PowerRmsNorm,
    post_attention_layernorm: PowerRmsNorm,
    pre_feedforward_layernorm: PowerRmsNorm,
    post_feedforward_layernorm: PowerRmsNorm,
    altup: AltUp,
    laurel: Laurel,
    per_layer_input_gate: Linear,
    per_layer_projection: Linear,
    post_per_layer_input_norm: PowerRmsNorm,
    activation: Activation,
    scales_corrected: bool,
}

/// `Gemma3nTextLaurelBlock`.
struct Laurel {
    module: Module,
    linear_left: Linear,
    linear_right: Linear,
    post_laurel_norm: PowerRmsNorm,
}

/// `Gemma3nTextAttention`.
struct SelfAttention {
    module: Module,
    q_proj: Linear,
    q_norm: PowerRmsNorm,
    /// `None` in layers that take keys and values from another.
    keys_values: Option<KeysValues>,
    o_proj: Linear,
    head_dim: u64,
    dropout: f64,
    /// 0 for full layers, 1 for sliding ones.
    kind: usize,
    /// True if later layers take its keys and values.
    stores: bool,
}

struct KeysValues {
    k_proj: Linear,
    v_proj: Linear,
    k_norm: PowerRmsNorm,
    v_norm: PowerRmsNorm,
}

impl Layer {
    pub fn new(b: &Builder, c: &Gemma3nTextConfig, place: usize) -> Self {
        let t = b.tape();
        let norm = |name| PowerRmsNorm::new(b, name, c.hidden);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c, place)),
            mlp: t.scope("mlp", || Mlp::new(b, c, c.mlps[place])),
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
            pre_feedforward_layernorm: norm("pre_feedforward_layernorm"),
            post_feedforward_layernorm: norm("post_feedforward_layernorm"),
            altup: t.scope("altup", || AltUp::new(b, c)),
            laurel: t.scope("laurel", || Laurel::new(b, c)),
            per_layer_input_gate: Linear::new(b, "per_layer_input_gate", c.hidden, c.input_width, false),
            per_layer_projection: Linear::new(b, "per_layer_projection", c.input_width, c.hidden, false),
            post_per_layer_input_norm: norm("post_per_layer_input_norm"),
            activation: c.activation,
            scales_corrected: c.scales_corrected,
        }
    }

    /// Hidden states [streams, batch, seq, hidden] and the layer's own input [batch, seq, width] → hidden states.
    pub fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor, own_input: &Tensor) -> Tensor {
        let predictions = self.altup.predict(t, &x);
        let active = t.select(&predictions, 0);
        let normed = self.input_layernorm.call(t, &active);
        let laurel = self.laurel.call(t, &normed);
        let (mut attn, _weights) = self.self_attn.call(t, shared, &normed);
        attn = self.post_attention_layernorm.call(t, &attn);
        let gated = t.add(&active, &attn);
        let both = {
            let sum = t.add(&gated, &laurel);
            t.scale(&sum)
        };
        let attn_norm = self.pre_feedforward_layernorm.call(t, &both);
        let ffw = self.mlp.call(t, &attn_norm);
        let ffw_norm = self.post_feedforward_layernorm.call(t, &ffw);
        let activated = t.add(&both, &ffw_norm);
        let corrected = self.altup.correct(t, &predictions, &activated);
        let mut first = t.clone_of(&t.select(&corrected, 0));
        if self.scales_corrected {
            first = self.altup.scale_corrected(t, &first);
        }
        first = self.per_layer_input_gate.call(t, &first);
        first = nn::activate(t, self.activation, first);
        first = t.mul(&first, own_input);
        first = self.per_layer_projection.call(t, &first);
        first = self.post_per_layer_input_norm.call(t, &first);
        let others = corrected.size(0) - 1;
        let out = t.add_to_slice(corrected, others, &first);
        drop((first, activated, ffw_norm, ffw, attn_norm, both, gated, attn));
        drop((laurel, normed, active, predictions, x));
        out
    }
}

impl Laurel {
    fn new(b: &Builder, c: &Gemma3nTextConfig) -> Self {
        Self {
            module: b.module(),
            linear_left: Linear::new(b, "linear_left", c.hidden, c.laurel_rank, false),
            linear_right: Linear::new(b, "linear_right", c.laurel_rank, c.hidden, false),
            post_laurel_norm: PowerRmsNorm::new(b, "post_laurel_norm", c.hidden),
        }
    }

    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut h = self.linear_left.call(t, x);
            h = self.linear_right.call(t, &h);
            let normed = self.post_laurel_norm.call(t, &h);
            let out = t.add(x, &normed);
            drop((normed, h));
            out
        })
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Gemma3nTextConfig, place: usize) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let linear = |name, input, output| Linear::adapted(b, name, input, output, c.attention_bias);
        let norm = |name| PowerRmsNorm::new(b, name, c.head_dim);
        Self {
            module: b.module(),
            q_proj: linear("q_proj", c.hidden, q),
            q_norm: norm("q_norm"),
            keys_values: (place < c.own_layers()).then(|| KeysValues {
                k_proj: linear("k_proj", c.hidden, kv),
                v_proj: linear("v_proj", c.hidden, kv),
                k_norm: norm("k_norm"),
                v_norm: PowerRmsNorm::plain("v_norm"),
            }),
            o_proj: linear("o_proj", q, c.hidden),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
            kind: usize::from(c.slides[place]),
            stores: c.stores(place),
        }
    }

    /// [batch, seq, hidden] → the same, and the weights that eager attention returns.
    fn call(&self, t: &Tape, shared: &LayerContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: &Tensor| t.view(x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            let rotated = |x: &Tensor| {
                let (cos, sin) = (t.unsqueeze(&shared.cos, 2), t.unsqueeze(&shared.sin, 2));
                nn::apply_rotary(t, x, &cos, &sin)
            };
            let mut q = heads(&self.q_proj.call(t, x));
            q = self.q_norm.call(t, &q);
            q = rotated(&q);
            q = t.transpose(&q, 1, 2);
            let (mut k, mut v);
            match &self.keys_values {
                None => {
                    let states = shared.shared.borrow()[self.kind].clone();
                    (k, v) = states.unwrap_or_else(|| unreachable!("a layer of the kind has stored its keys"));
                }
                Some(own) => {
                    k = heads(&own.k_proj.call(t, x));
                    k = own.k_norm.call(t, &k);
                    k = rotated(&k);
                    k = t.transpose(&k, 1, 2);
                    v = heads(&own.v_proj.call(t, x));
                    v = own.v_norm.call(t, &v);
                    v = t.transpose(&v, 1, 2);
                    if let Some(cache) = &shared.cache {
                        (k, v) = cache.update(t, &k, &v);
                    }
                }
            }
            if self.stores {
                shared.shared.borrow_mut()[self.kind] = Some((k.clone(), v.clone()));
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
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
