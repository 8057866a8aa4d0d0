//! `BartForCausalLM` and its kin (`transformers/models/{bart,mbart,pegasus,…}/modeling_*.py`).

use std::rc::Rc;

use super::attention::{BlockContext, SelfAttention};
use super::config::BartConfig;
use super::forms::{EmbeddingNorm, Form, PackingForm, PositionTable, Scale};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::text::run_blocks;
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, Pattern};
use crate::setup::Attention;
use crate::tape::{Component, Mask, Tape, Tensor};

/// A decoder and its head.
pub(super) struct Bart {
    decoder: Decoder,
    lm_head: Linear,
}

/// `BartDecoder`: embeddings, blocks, norms.
struct Decoder {
    form: &'static Form,
    embed_tokens: Embedding,
    embed_positions: Embedding,
    layers: Vec<Rc<Layer>>,
    embedding_norm: Option<LayerNorm>,
    final_norm: Option<LayerNorm>,
    dropout: f64,
}

struct Layer {
    norm_before: bool,
    self_attn: SelfAttention,
    self_attn_layer_norm: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    final_layer_norm: LayerNorm,
    activation: Activation,
    dropout: f64,
    activation_dropout: f64,
}

impl Bart {
    pub fn new(b: &Builder, c: &BartConfig) -> Self {
        let t = b.tape();
        let decoder = t.component("model.decoder", Component::LanguageModel, || Decoder::new(b, c));
        let name = c.form.head;
        let lm_head = t.component("", Component::Head, || match c.tie_word_embeddings {
            true => Linear::tied(b, name, decoder.embed_tokens.weight()),
            false => Linear::new(b, name, c.hidden, c.vocab, false),
        });
        Self { decoder, lm_head }
    }
}

impl Forward for Bart {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model.decoder", Component::LanguageModel, || {
            self.decoder.forward(t, run, ids, batch.positions.as_ref())
        });
        let Some(labels) = &batch.labels else {
            let last = t.slice(&h, 1, 1);
            return t.component("", Component::Head, || Output {
                loss: t.scope(self.decoder.form.head, || self.lm_head.forward(t, &last)),
                held: Vec::new(),
            });
        };
        t.component("", Component::Head, || {
            let logits = t.scope(self.decoder.form.head, || self.lm_head.forward(t, &h));
            let loss = t.scope("loss", || nn::unshifted_lm_loss(t, &logits, labels));
            // The hidden states are a local of the model's forward, freed when it returns.
            drop(h);
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}

impl Decoder {
    fn new(b: &Builder, c: &BartConfig) -> Self {
        let (t, form) = (b.tape(), c.form);
        let table = match form.positions {
            PositionTable::Frozen => Embedding::frozen,
            _ => Embedding::new,
        };
        let norm = |name| LayerNorm::new(b, name, c.hidden);
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let embed_positions = table(b, "embed_positions", c.position_entries(), c.hidden);
        let embedding_norm = || c.norms_embeddings.then(|| norm("layernorm_embedding"));
        let first = form.norm_made_first.then(embedding_norm);
        let layers = (0..c.layers as usize).map(|i| t.layer("layers", i, || Rc::new(Layer::new(b, c))));
        Self {
            form,
            embed_tokens,
            embed_positions,
            layers: layers.collect(),
            embedding_norm: first.unwrap_or_else(embedding_norm),
            final_norm: form.final_norm.map(norm),
            dropout: c.dropout,
        }
    }

    /// Token ids [batch, seq] → embeddings times their factor, [batch, seq, hidden].
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let looked_up = |scales: bool| {
            t.scope("embed_tokens", || {
                let embeds = self.embed_tokens.forward(t, ids);
                run.embedded(t, if scales { t.scale(&embeds) } else { embeds })
            })
        };
        match self.form.scale {
            Scale::InModule => looked_up(true),
            Scale::After => t.scale(&looked_up(false)),
            Scale::Never => looked_up(false),
        }
    }

    /// Position ids that the decoder itself makes: [seq], or [batch, seq] where each sample has its own.
    fn position_ids(&self, t: &Tape, embeds: &Tensor, packed: Option<&Tensor>) -> Option<Tensor> {
        let ids = || nn::position_ids(t, embeds);
        match self.form.positions {
            PositionTable::ShiftedEach => None,
            PositionTable::Indexed => Some(packed.map_or_else(|| t.repeat(&ids(), embeds.size(0)), Tensor::clone)),
            _ => Some(t.view(&ids(), [embeds.size(1)])),
        }
    }

    /// Embeddings of positions, [batch, seq, hidden], [1, seq, hidden] or [seq, hidden].
    fn embed_positions(&self, t: &Tape, embeds: &Tensor, ids: Option<&Tensor>) -> Tensor {
        let table = &self.embed_positions;
        t.scope("embed_positions", || match (self.form.positions, ids) {
            (PositionTable::Shifted, Some(ids)) => {
                let shifted = t.compute(&t.unsqueeze(ids, 0), ids.dtype(), "position ids + 2");
                table.forward(t, &shifted)
            }
            (PositionTable::Indexed, Some(ids)) => t.index_broadcast(table.weight(), std::slice::from_ref(ids)),
            (PositionTable::Frozen, Some(ids)) => t.no_grad(|| table.forward(t, ids)),
            (_, Some(ids)) => table.forward(t, ids),
            (_, None) => {
                let [batch, seq] = [embeds.size(0), embeds.size(1)];
                let _ids = nn::ids(t, &[seq], "arange");
                table.forward(t, &nn::ids(t, &[batch, seq], "position ids + 2"))
            }
        })
    }

    /// The blocks' mask.
    fn mask(&self, t: &Tape, attn: Attention, embeds: &Tensor, packed: Option<&Tensor>) -> Option<Mask> {
        match (self.form.packing, packed) {
            (PackingForm::Separate, packed) => nn::text_mask(t, attn, embeds, packed, Pattern::Causal),
            (PackingForm::Nothing, Some(_)) => Some(nn::unpadded_causal_mask(t, attn, embeds)),
            (PackingForm::Nothing, None) | (PackingForm::Ones, _) => nn::causal_mask(t, attn, embeds),
        }
    }

    /// The norm of embeddings, if it is in this place.
    fn normed(&self, t: &Tape, place: EmbeddingNorm, x: Tensor) -> Tensor {
        match &self.embedding_norm {
            Some(norm) if self.form.embedding_norm == place => t.scope("layernorm_embedding", || norm.forward(t, &x)),
            _ => x,
        }
    }

    fn forward(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor {
        let mut embeds = self.embed(t, run, ids);
        let cache = run.cache(&[]);
        let position_ids = self.position_ids(t, &embeds, packed);
        // Packed samples come without a padding mask.
        let ones = packed
            .filter(|_| self.form.packing == PackingForm::Ones)
            .map(|ids| t.empty(*ids.shape(), DType::F32, "attention mask of ones"));
        let attn = if self.form.eager_only {
            Attention::Eager
        } else {
            run.attn
        };
        let mask = |embeds: &Tensor| self.mask(t, attn, embeds, packed);
        let early = (!self.form.mask_last).then(|| mask(&embeds));
        let positions = self.embed_positions(t, &embeds, position_ids.as_ref());
        let kept = position_ids.filter(|_| self.form.keeps_ids);
        embeds = self.normed(t, EmbeddingNorm::OfTokens, embeds);
        let mut h = t.add(&embeds, &positions);
        h = self.normed(t, EmbeddingNorm::OfSum, h);
        h = t.dropout(&h, self.dropout);
        let mask = early.unwrap_or_else(|| mask(&embeds));
        let shared = Rc::new(BlockContext { attn, mask, cache });
        h = run_blocks(t, run, "layers", (&self.layers, &shared), h, Layer::forward);
        if let (Some(norm), Some(name)) = (&self.final_norm, self.form.final_norm) {
            h = t.scope(name, || norm.forward(t, &h));
        }
        drop((shared, positions, kept, embeds, ones));
        h
    }
}

impl Layer {
    fn new(b: &Builder, c: &BartConfig) -> Self {
        let t = b.tape();
        let self_attn = t.scope("self_attn", || SelfAttention::new(b, c));
        let self_attn_layer_norm = LayerNorm::new(b, "self_attn_layer_norm", c.hidden);
        // Cross attention, which runs only beside an encoder.
        drop(t.scope("encoder_attn", || SelfAttention::new(b, c)));
        drop(LayerNorm::new(b, "encoder_attn_layer_norm", c.hidden));
        Self {
            norm_before: c.form.norm_before,
            self_attn,
            self_attn_layer_norm,
            fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, true),
            fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, true),
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", c.hidden),
            activation: c.activation,
            dropout: c.dropout,
            activation_dropout: c.activation_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let attention_norm = |h: &Tensor| t.scope("self_attn_layer_norm", || self.self_attn_layer_norm.forward(t, h));
        let final_norm = |h: &Tensor| t.scope("final_layer_norm", || self.final_layer_norm.forward(t, h));
        let residual = x.clone();
        let mut h = x;
        if self.norm_before {
            h = attention_norm(&h);
        }
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, h));
        h = t.dropout(&out, self.dropout);
        drop(out);
        h = t.add(&residual, &h);
        if !self.norm_before {
            h = attention_norm(&h);
        }
        let residual = h.clone();
        if self.norm_before {
            h = final_norm(&h);
        }
        h = {
            let opened = t.scope("fc1", || self.fc1.forward(t, &h));
            nn::activate(t, self.activation, opened)
        };
        h = t.dropout(&h, self.activation_dropout);
        h = t.scope("fc2", || self.fc2.forward(t, &h));
        h = t.dropout(&h, self.dropout);
        h = t.add(&residual, &h);
        if !self.norm_before {
            h = final_norm(&h);
        }
        h
    }
}
