//! `MiniMaxForCausalLM` (`transformers/models/minimax/modeling_minimax.py`).

use std::rc::Rc;

use super::config::MiniMaxConfig;
use super::lightning::LightningAttention;
use crate::model::decoder::head::{Logits, head_for};
use crate::model::decoder::layer::{Attend, FeedForward, SelfAttention};
use crate::model::decoder::sparse::SparseMlp;
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, MixedLayer, MixedLm, run_layers};
use crate::nn::{Builder, Embedding, Numbered, RmsNorm, Rotary};
use crate::tape::{Component, Tape, Tensor};

/// `MiniMaxModel`.
pub struct MiniMax {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    is_linear: Vec<bool>,
    norm: RmsNorm,
    rotary: Rotary,
}

/// `MiniMaxDecoderLayer`.
struct Layer {
    attention: Attention,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    mlp: SparseMlp,
}

/// `self_attn` of either kind.
enum Attention {
    Full(Box<SelfAttention>),
    Lightning(Box<LightningAttention>),
}

/// Makes the model.
pub fn model(b: &Builder, c: &MiniMaxConfig) -> MixedLm<MiniMax> {
    let model = b
        .tape()
        .component("model", Component::LanguageModel, || MiniMax::new(b, c));
    MixedLm {
        lm_head: head_for(b, model.embed_tokens.weight(), c.text.tie_word_embeddings),
        model,
        logits: Logits::AsTheyAre,
    }
}

impl MiniMax {
    fn new(b: &Builder, c: &MiniMaxConfig) -> Self {
        let text = &c.text;
        let embed_tokens = Embedding::new(b, "embed_tokens", text.vocab, text.hidden);
        let layer = |i: usize| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers = (0..c.is_linear.len()).map(layer).collect();
        let norm = RmsNorm::new(b, "norm", text.hidden);
        let rotary = Rotary::new(b, text.head_dim).dynamic(text.rope.is_dynamic());
        Self {
            embed_tokens,
            layers,
            is_linear: c.is_linear.clone(),
            norm,
            rotary: rotary.initialised(b.tape()),
        }
    }
}

impl Layer {
    fn new(b: &Builder, c: &MiniMaxConfig, index: usize) -> Self {
        let (t, text) = (b.tape(), &c.text);
        let attention = t.scope("self_attn", || match c.is_linear[index] {
            false => Attention::Full(Box::new(SelfAttention::new(b, text, index))),
            true => Attention::Lightning(Box::new(LightningAttention::new(b, c))),
        });
        let norm = |name| RmsNorm::new(b, name, text.hidden);
        let Some(experts) = &text.experts else {
            unreachable!("the family has experts")
        };
        Self {
            attention,
            input_layernorm: norm("input_layernorm"),
            post_attention_layernorm: norm("post_attention_layernorm"),
            mlp: t.scope("mlp", || SparseMlp::new(b, (text.activation, text.mlp_bias), experts)),
        }
    }
}

impl MixedLayer for Layer {
    fn forward(&self, t: &Tape, shared: &LayerContext, x: Tensor) -> Tensor {
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let mut residual = h.clone();
        let (out, _second) = match &self.attention {
            Attention::Full(attention) => attention.call(t, &shared.block, h),
            Attention::Lightning(attention) => {
                let [out, state] = attention.call(t, shared.block.cache.as_ref(), &h);
                drop(h);
                (out, Some(state))
            }
        };
        h = scaled_sum(t, &residual, out);
        h = self.post_attention_layernorm.call(t, &h);
        residual = h.clone();
        h = self.mlp.call(t, h);
        scaled_sum(t, &residual, h)
    }
}

/// Sum of the stream and a part's output, each times a number.
fn scaled_sum(t: &Tape, residual: &Tensor, out: Tensor) -> Tensor {
    let scaled = t.scale(residual);
    let of_part = t.scale(&out);
    let sum = t.add(&scaled, &of_part);
    drop((scaled, of_part, out));
    sum
}

impl MixedDecoder for MiniMax {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let shared = LayerContext::new(t, run, &embeds, packed, padding, |position_ids| {
            self.rotary.call(t, &embeds, position_ids)
        });
        run_layers(t, run, (&self.layers, &self.is_linear), &self.norm, shared, embeds)
    }
}
