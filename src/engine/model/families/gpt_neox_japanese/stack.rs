//! Embeddings, blocks and last norm of GPT-NeoX Japanese
//! (`transformers/models/gpt_neox_japanese/modeling_gpt_neox_japanese.py`).

use std::rc::Rc;

use super::GptNeoxJapaneseConfig;
use crate::model::forward::Run;
use crate::model::parts::text::{MlpForm, Outputs, PlainMlp, Stack, run_blocks_with_weights};
use crate::nn::{self, Builder, Embedding, KvCache, LayerNorm, Linear, Numbered, Rotary};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// `GPTNeoXJapaneseModel`.
pub(super) struct JapaneseStack {
    embed_in: Embedding,
    layers: Vec<Numbered<Layer>>,
    final_layer_norm: LayerNorm,
    rotary: Rotary,
}

/// `GPTNeoXJapaneseLayer`.
struct Layer {
    input_layernorm: LayerNorm,
    post_attention_layernorm: LayerNorm,
    attention: SelfAttention,
    mlp: PlainMlp,
    dropout: f64,
}

/// `GPTNeoXJapaneseAttention`.
struct SelfAttention {
    module: Module,
    query_key_value: Linear,
    dense: Linear,
    /// Bias that the last block adds to what its attention makes.
    dense_bias: Option<Tensor>,
    heads: u64,
    dropout: f64,
}

/// State that all blocks of one forward share.
struct Shared {
    mask: Option<Mask>,
    cos: Tensor,
    sin: Tensor,
    cache: Option<KvCache>,
    /// Held until the last block returns.
    _position_ids: Tensor,
}

impl JapaneseStack {
    pub fn new(b: &Builder, c: &GptNeoxJapaneseConfig) -> Self {
        let is_last = |i: usize| i + 1 == c.layers as usize;
        Self {
            embed_in: Embedding::new(b, "embed_in", c.vocab, c.hidden),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, is_last(i)))))
                .collect(),
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", c.hidden),
            rotary: Rotary::new(b, c.hidden / c.heads)
                .dynamic(c.rope.is_dynamic())
                .initialised(b.tape()),
        }
    }
}

impl Stack for JapaneseStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embed_in.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let position_ids = nn::position_ids(t, &embeds);
        let mask = nn::causal_mask(t, Attention::Eager, &embeds);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = Rc::new(Shared {
            mask,
            cos,
            sin,
            cache,
            _position_ids: position_ids,
        });
        let h = embeds.clone();
        let (last, held) = run_blocks_with_weights(t, run, (&self.layers, &shared), h, Layer::forward);
        let out = self.final_layer_norm.call(t, &last);
        drop((held, shared, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embed_in.weight()
    }
}

impl Layer {
    fn new(b: &Builder, c: &GptNeoxJapaneseConfig, is_last: bool) -> Self {
        let t = b.tape();
        let mlp = MlpForm {
            names: ["dense_h_to_4h", "dense_4h_to_h"],
            bias: false,
        };
        Self {
            input_layernorm: LayerNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: LayerNorm::new(b, "post_attention_layernorm", c.hidden),
            attention: t.scope("attention", || SelfAttention::new(b, c, is_last)),
            mlp: t.scope("mlp", || {
                PlainMlp::new(b, mlp, [c.hidden, c.intermediate], c.activation)
            }),
            dropout: c.hidden_dropout,
        }
    }

    /// `bias_dropout_add`: what a part made, with a bias or without, is dropped out and added to the stream.
    fn added(&self, t: &Tape, part: &Tensor, bias: Option<&Tensor>, residual: &Tensor) -> Tensor {
        let biased = match bias {
            Some(bias) => t.add(part, &t.expand(bias, *residual.shape())),
            None => part.clone(),
        };
        let dropped = t.functional_dropout(&biased, self.dropout);
        t.add(residual, &dropped)
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Outputs {
        let normed = self.input_layernorm.call(t, &x);
        let (part, weights) = self.attention.call(t, shared, &normed);
        let h = self.added(t, &part, self.attention.dense_bias.as_ref(), &x);
        drop(part);
        let of_mlp = {
            let normed = self.post_attention_layernorm.call(t, &h);
            self.mlp.call(t, &normed)
        };
        let out = self.added(t, &of_mlp, None, &h);
        drop((of_mlp, normed));
        (out, Some(weights))
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &GptNeoxJapaneseConfig, is_last: bool) -> Self {
        let maps = || {
            (
                Linear::new(b, "query_key_value", c.hidden, 3 * c.hidden, false),
                Linear::new(b, "dense", c.hidden, c.hidden, false),
            )
        };
        // Parameters of the module itself come before those of its modules.
        let bias = || is_last.then(|| b.weight("dense_bias", [c.hidden]));
        let ((query_key_value, dense), dense_bias) = b.early(maps, bias);
        Self {
            module: b.module(),
            query_key_value,
            dense,
            dense_bias,
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    /// [batch, seq, hidden] → the same, and the weights.
    fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let width = hidden / self.heads;
            let fused = t.view(&self.query_key_value.call(t, x), [batch, seq, self.heads, 3 * width]);
            let [mut q, mut k, mut v] = [0, 1, 2].map(|_| t.permute(&t.narrow(&fused, 3, width), &[0, 2, 1, 3]));
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                let rotated = nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin);
                rotated.map(|x| t.contiguous(&x))
            };
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let (mut out, weights) = self.attend(t, [&q, &k, &v], shared.mask.as_ref());
            out = t.contiguous(&t.permute(&out, &[0, 2, 1, 3]));
            out = t.view(&out, [batch, seq, hidden]);
            out = self.dense.call(t, &out);
            (out, weights)
        })
    }

    /// `_attn`: output [batch, heads, seq, width], and the weights.
    fn attend(&self, t: &Tape, [q, k, v]: [&Tensor; 3], mask: Option<&Mask>) -> (Tensor, Tensor) {
        let [batch, heads, queries, width] = [q.size(0), q.size(1), q.size(2), q.size(3)];
        let keys = k.size(2);
        let q = t.view(q, [batch * heads, queries, width]);
        let k = t.view(k, [batch * heads, keys, width]);
        let zeros = t.empty([batch * heads, queries, keys], q.dtype(), "zeros");
        let mut scores = {
            let transposed = t.transpose(&k, 1, 2);
            let [k, q, zeros] = [&transposed, &q, &zeros].map(|x| t.cast_low(x));
            t.scaled_baddbmm(&zeros, &q, &k)
        };
        scores = t.view(&scores, [batch, heads, queries, keys]);
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            scores = t.add(&scores, bias);
        }
        let mut weights = t.softmax(&scores, None);
        weights = t.dropout(&weights, self.dropout);
        weights = t.to_dtype(&weights, v.dtype());
        let out = t.matmul(&weights, v);
        drop((scores, zeros));
        (out, weights)
    }
}
