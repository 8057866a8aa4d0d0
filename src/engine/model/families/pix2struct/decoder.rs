//! Pix2Struct's decoder, which is T5's with other names (`Pix2StructTextModel`).

use std::rc::Rc;

use super::attention::{AttentionSizes, SelfAttention, Shared};
use super::config::TextConfig;
use super::encoder::no_padding;
use super::mlp::GatedMlp;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::nn::{self, Builder, Embedding, Linear, Numbered, T5LayerNorm};
use crate::setup::Attention;
use crate::tape::{Component, Module, Tape, Tensor};

/// Token embedding, blocks, a norm, and the head.
pub(super) struct Decoder {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Block>>,
    final_layer_norm: T5LayerNorm,
    lm_head: Linear,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &TextConfig) -> Self {
        let (t, hidden) = (b.tape(), c.block.hidden);
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, hidden);
        let layers = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "layer", i, || Rc::new(Block::new(b, c, i == 0))))
            .collect();
        let final_layer_norm = T5LayerNorm::new(b, "final_layer_norm", hidden);
        let lm_head = t.component("", Component::Head, || match c.tie_word_embeddings {
            true => Linear::tied(b, "lm_head", embed_tokens.weight()),
            false => Linear::new(b, "lm_head", hidden, c.vocab, false),
        });
        Self {
            embed_tokens,
            layers,
            final_layer_norm,
            lm_head,
            dropout: c.block.dropout,
        }
    }

    /// Token ids [batch, seq] and what the tower made, [batch, patches, hidden] → the logits, or those of the last position if
    /// there are no `labels`, and the loss of `labels`.
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        (ids, labels): (&Tensor, Option<&Tensor>),
        features: &Tensor,
    ) -> (Tensor, Option<Tensor>) {
        let embeds = run.embedded(t, self.embed_tokens.call(t, ids));
        let shared = Shared {
            attn: run.attn,
            mask: nn::causal_mask(t, run.attn, &embeds).filter(|_| run.attn == Attention::Eager),
            cache: run.cache(&[]),
        };
        no_padding(t, features.size(0), features.size(1));
        let mut h = t.dropout(&embeds, self.dropout);
        let mut biases = [None, None];
        let mut _weights = [None, None];
        for layer in &self.layers {
            let out = layer.enter(t, || layer.forward(t, &shared, (h.clone(), features), biases.clone()));
            h = out.h;
            biases = out.biases.map(Some);
            _weights = out.weights;
        }
        h = self.final_layer_norm.call(t, &h);
        h = t.dropout(&h, self.dropout);
        let (logits, loss) = t.component("", Component::Head, || match labels {
            Some(labels) => {
                let logits = self.lm_head.call(t, &h);
                let loss = nn::unshifted_lm_loss(t, &logits, labels);
                (logits, Some(loss))
            }
            None => (self.lm_head.call(t, &t.slice(&h, 1, 1)), None),
        });
        drop((h, biases, shared, embeds));
        (logits, loss)
    }
}

/// Outputs of a block.
struct Outputs {
    h: Tensor,
    /// Biases of attention to the text and to the patches, which the next block gets.
    biases: [Tensor; 2],
    weights: [Option<Tensor>; 2],
}

/// `Pix2StructTextBlock`.
struct Block {
    self_attention: AttentionLayer,
    encoder_decoder_attention: AttentionLayer,
    mlp: FeedForward,
}

impl Block {
    fn new(b: &Builder, c: &TextConfig, is_first: bool) -> Self {
        let t = b.tape();
        let attention = |name, has_table| t.scope(name, || AttentionLayer::new(b, c, has_table));
        Self {
            self_attention: attention("self_attention", is_first),
            encoder_decoder_attention: attention("encoder_decoder_attention", false),
            mlp: t.scope("mlp", || FeedForward {
                module: b.module(),
                dense: t.scope("DenseReluDense", || GatedMlp::new(b, &c.block)),
                layer_norm: T5LayerNorm::new(b, "layer_norm", c.block.hidden),
                dropout: c.block.dropout,
            }),
        }
    }

    fn forward(
        &self,
        t: &Tape,
        shared: &Shared,
        (x, features): (Tensor, &Tensor),
        [of_text, of_patches]: [Option<Tensor>; 2],
    ) -> Outputs {
        let (h, bias, weights) = self.self_attention.call(t, shared, (&x, None), of_text);
        let across = (&h, Some(features));
        let (h, bias_across, weights_across) = self.encoder_decoder_attention.call(t, shared, across, of_patches);
        Outputs {
            h: self.mlp.call(t, &h),
            biases: [bias, bias_across],
            weights: [weights, weights_across],
        }
    }
}

/// `Pix2StructTextLayerSelfAttention` and `Pix2StructTextLayerCrossAttention`.
struct AttentionLayer {
    module: Module,
    attention: SelfAttention,
    layer_norm: T5LayerNorm,
    dropout: f64,
}

impl AttentionLayer {
    fn new(b: &Builder, c: &TextConfig, has_table: bool) -> Self {
        let sizes = AttentionSizes {
            hidden: c.block.hidden,
            heads: c.heads,
            head_width: c.head_width,
            dropout: c.block.dropout,
            buckets: has_table.then_some(c.buckets),
        };
        Self {
            module: b.module(),
            attention: b.tape().scope("attention", || SelfAttention::new(b, sizes)),
            layer_norm: T5LayerNorm::new(b, "layer_norm", c.block.hidden),
            dropout: c.block.dropout,
        }
    }

    fn call(
        &self,
        t: &Tape,
        shared: &Shared,
        (x, across): (&Tensor, Option<&Tensor>),
        bias: Option<Tensor>,
    ) -> (Tensor, Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let normed = self.layer_norm.call(t, x);
            let (attended, bias, weights) = self.attention.call(t, shared, (&normed, across), bias);
            let out = {
                let dropped = t.dropout(&attended, self.dropout);
                t.add(x, &dropped)
            };
            drop((attended, normed));
            (out, bias, weights)
        })
    }
}

/// `Pix2StructTextLayerFF`.
struct FeedForward {
    module: Module,
    dense: GatedMlp,
    layer_norm: T5LayerNorm,
    dropout: f64,
}

impl FeedForward {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let fed = self.dense.call(t, self.layer_norm.call(t, x));
            let out = {
                let dropped = t.dropout(&fed, self.dropout);
                t.add(x, &dropped)
            };
            drop(fed);
            out
        })
    }
}

/// `_shift_right`: what the decoder reads of labels [batch, seq], and the mask of it, whose values it does not look at one by
/// one.
pub(super) fn shifted_right(t: &Tape, labels: &Tensor) -> [Tensor; 2] {
    let [batch, seq] = [labels.size(0), labels.size(1)];
    let ids = t.compute(labels, DType::I64, "zeros");
    drop(nn::ids(t, &[batch, seq - 1], "clone"));
    drop(t.compute(&ids, DType::Bool, "ids = -100"));
    let mask = {
        let real = t.compute(&ids, DType::Bool, "ids that are no padding");
        let mask = t.compute(&ids, DType::F32, "mask");
        drop(real);
        mask
    };
    [ids, mask]
}
