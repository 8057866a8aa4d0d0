//! DeepSeek-V2's decoder in its own code (`DeepseekV2Model` of `modeling_deepseek.py`).

use std::rc::Rc;

use super::attention::{SelfAttention, Shared};
use super::config::LanguageConfig;
use super::experts::Experts;
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::nn::{Builder, Embedding, Numbered, RmsNorm, ids};
use crate::tape::{Mask, Tape, Tensor, where_graph_begins};

/// `DeepseekV2Model`.
pub struct Language {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    norm: RmsNorm,
    /// True for each layer with experts.
    sparse: Vec<bool>,
}

/// `DeepseekV2DecoderLayer`.
struct Layer {
    self_attn: SelfAttention,
    mlp: FeedForward,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
}

enum FeedForward {
    Mlp(Box<Mlp>),
    Experts(Box<Experts>),
}

impl Language {
    pub fn new(b: &Builder, c: &LanguageConfig) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layers = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i))))
            .collect();
        Self {
            embed_tokens,
            layers,
            norm: RmsNorm::new(b, "norm", c.hidden),
            sparse: (0..c.layers as usize)
                .map(|i| c.experts.as_ref().is_some_and(|e| e.sparse[i]))
                .collect(),
        }
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |x| run.embedded(t, x))
    }

    /// Weight of the token embedding.
    pub fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }

    /// Embeddings [batch, seq, hidden] → last hidden states of the same shape.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
        let positions = t.unsqueeze(&ids(t, &[embeds.size(1)], "arange"), 0);
        let shared = Rc::new(Shared {
            mask: causal_mask(t, &embeds),
            positions,
        });
        let mut _layer_outputs = embeds.clone();
        let mut h = Some(embeds.clone());
        let kinds: Vec<u64> = self.sparse.iter().map(|&is_sparse| u64::from(is_sparse)).collect();
        t.stack(&where_graph_begins(kinds, &embeds), &mut |i| {
            let (layer, shared) = (self.layers[i].clone(), shared.clone());
            let forward = move |t: &Tape, x: Tensor| layer.forward(t, &shared, x);
            let Some(input) = h.take() else {
                unreachable!("each layer has an input")
            };
            let output = run.block(t, &self.layers[i], input, forward);
            _layer_outputs = output.clone();
            h = Some(output);
        });
        let Some(h) = h else {
            unreachable!("each layer has an output")
        };
        let out = self.norm.call(t, &h);
        drop((h, embeds, shared));
        out
    }
}

impl Layer {
    fn new(b: &Builder, c: &LanguageConfig, index: usize) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || SelfAttention::new(b, c));
        let experts = c.experts.as_ref().filter(|e| e.sparse[index]);
        let mlp = t.scope("mlp", || match experts {
            Some(e) => FeedForward::Experts(Box::new(Experts::new(b, c, e))),
            None => FeedForward::Mlp(Box::new(Mlp::of(b, [c.hidden, c.intermediate], false, c.activation))),
        });
        Self {
            self_attn,
            mlp,
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
        }
    }

    fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        h = self.self_attn.call(t, shared, h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = match &self.mlp {
            FeedForward::Mlp(mlp) => mlp.call(t, h),
            FeedForward::Experts(experts) => experts.call(t, h),
        };
        t.add(&residual, &h)
    }
}

/// `_prepare_4d_causal_attention_mask` of a padding mask (`transformers/modeling_attn_mask_utils.py` of 4.41): [batch, 1, seq,
/// seq] in the type of the embeddings.
fn causal_mask(t: &Tape, embeds: &Tensor) -> Mask {
    let ([batch, seq], dtype) = ([embeds.size(0), embeds.size(1)], embeds.dtype());
    let whole = |dtype, name| t.empty([batch, 1, seq, seq], dtype, name);
    let causal = {
        let wide = t.empty([seq, seq], DType::F32, "full");
        let steps = ids(t, &[seq], "arange");
        {
            let _next = ids(t, &[seq], "add a number");
            drop(t.empty([seq, seq], DType::Bool, "lt"));
        }
        let causal = t.no_grad(|| t.to_dtype(&wide, dtype));
        drop((steps, wide));
        causal
    };
    let padding = {
        let expanded = whole(dtype, "padding");
        let inverted = whole(dtype, "rsub");
        let padding = {
            let _is_padding = whole(DType::Bool, "to bool");
            whole(dtype, "masked_fill")
        };
        drop((inverted, expanded));
        padding
    };
    let mask = {
        let _is_padding = whole(DType::Bool, "to bool");
        whole(dtype, "masked_fill")
    };
    drop((padding, causal));
    Mask::Bias(mask)
}
