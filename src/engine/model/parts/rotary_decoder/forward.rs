//! Embeddings, blocks and last norm of the decoders.

use std::rc::Rc;

use super::attention::SelfAttention;
use super::config::{FeedForwardForm, Form, Residual, RotaryDecoderConfig};
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::model::parts::text::{PlainMlp, Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered, Pattern, Rotary};
use crate::tape::{Tape, Tensor};

/// Names of a block's norms, before attention and before the MLP.
const NORMS: [&str; 2] = ["input_layernorm", "post_attention_layernorm"];

/// A decoder without its head.
pub(crate) struct RotaryDecoder {
    embedding: Embedding,
    layers: Vec<Numbered<Layer>>,
    final_norm: LayerNorm,
    rotary: Rotary,
    /// Dropout of embeddings.
    dropout: f64,
}

struct Layer {
    form: &'static Form,
    attention: SelfAttention,
    mlp: FeedForward,
    norms: [Option<LayerNorm>; 2],
    parallel: bool,
    dropout: f64,
}

enum FeedForward {
    Gated(Box<Mlp>),
    Plain(Box<PlainMlp>),
}

impl FeedForward {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self {
            Self::Gated(mlp) => mlp.call(t, x.clone()),
            Self::Plain(mlp) => mlp.call(t, x),
        }
    }
}

impl RotaryDecoder {
    pub fn new(b: &Builder, c: &RotaryDecoderConfig) -> Self {
        let t = b.tape();
        Self {
            embedding: Embedding::new(b, c.form.embedding, c.vocab, c.hidden),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c))))
                .collect(),
            final_norm: LayerNorm::new(b, c.form.final_norm, c.hidden),
            rotary: Rotary::new(b, c.rope.rotated(c.head_dim()))
                .dynamic(c.rope.is_dynamic())
                .initialised(t),
            dropout: match c.form.residual {
                Residual::PartsFirst => c.hidden_dropout,
                Residual::StreamFirst | Residual::InTurn => 0.0,
            },
        }
    }

    /// Token ids [batch, seq] → [batch, seq, hidden].
    pub fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embedding.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    /// Embeddings [batch, seq, hidden] at positions [batch or 1, seq] → last hidden states; samples are packed into one
    /// row if `is_packed`.
    pub fn forward(&self, t: &Tape, run: &Run, embeds: Tensor, position_ids: Tensor, is_packed: bool) -> Tensor {
        let cache = run.cache(&[]);
        let packed = is_packed.then_some(&position_ids);
        let mask = nn::text_mask(t, run.attn, &embeds, packed, Pattern::Causal);
        let h = t.dropout(&embeds, self.dropout);
        let (cos, sin) = self.rotary.call(t, &h, &position_ids);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: false,
            position_ids: Some(position_ids),
            cache,
        });
        let h = run_blocks(t, run, (&self.layers, &shared), h, Layer::forward);
        let out = self.final_norm.call(t, &h);
        drop((shared, embeds));
        out
    }
}

impl Stack for RotaryDecoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor {
        let embeds = self.embed(t, run, ids);
        let position_ids = packed.cloned().unwrap_or_else(|| run.position_ids(t, &embeds));
        self.forward(t, run, embeds, position_ids, packed.is_some())
    }

    fn table(&self) -> &Tensor {
        self.embedding.weight()
    }
}

impl Layer {
    fn new(b: &Builder, c: &RotaryDecoderConfig) -> Self {
        let (t, form) = (b.tape(), c.form);
        let second = !(c.parallel && form.residual == Residual::StreamFirst);
        let norms = || {
            let [first, other] = NORMS;
            [Some(first), second.then_some(other)].map(|name| name.map(|name| LayerNorm::new(b, name, c.hidden)))
        };
        let parts = || {
            let attention = t.scope(form.attention, || SelfAttention::new(b, c));
            let widths = [c.hidden, c.intermediate];
            let mlp = t.scope("mlp", || match form.mlp {
                FeedForwardForm::Gated => FeedForward::Gated(Box::new(Mlp::of(b, widths, false, c.activation))),
                FeedForwardForm::Plain(mlp) => {
                    FeedForward::Plain(Box::new(PlainMlp::new(b, mlp, widths, c.activation)))
                }
            });
            (attention, mlp)
        };
        let (norms, (attention, mlp)) = if form.norms_first {
            (norms(), parts())
        } else {
            let parts = parts();
            (norms(), parts)
        };
        Self {
            form,
            attention,
            mlp,
            norms,
            parallel: c.parallel,
            dropout: c.hidden_dropout,
        }
    }

    /// Runs one of the norms; a block with only one has both parts take what that gives.
    fn normed(&self, t: &Tape, which: usize, x: &Tensor) -> Option<Tensor> {
        let norm = self.norms[which].as_ref()?;
        Some(norm.call(t, x))
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = self.form.residual;
        let input = self.normed(t, 0, &x);
        let (mut attended, _weights) = self.attention.call(t, shared, input.as_ref().unwrap_or(&x));
        // StableLM's block holds it in a variable, for the MLP; the others free it here.
        let input = input.filter(|_| residual == Residual::StreamFirst);
        if residual == Residual::PartsFirst {
            attended = t.dropout(&attended, self.dropout);
        }
        if self.parallel {
            let own = self.normed(t, 1, &x);
            let mut fed = self.mlp.call(t, own.as_ref().or(input.as_ref()).unwrap_or(&x));
            drop(own);
            fed = t.dropout(&fed, self.dropout);
            return match residual {
                Residual::PartsFirst => t.add(&t.add(&fed, &attended), &x),
                Residual::StreamFirst | Residual::InTurn => t.add(&t.add(&x, &attended), &fed),
            };
        }
        let middle = t.add(&x, &attended);
        // The output of attention: StableLM's block holds it in a variable to its end, the other blocks free it here.
        let _attended = (residual == Residual::StreamFirst).then_some(attended);
        let normed = self.normed(t, 1, &middle);
        let mut fed = self.mlp.call(t, normed.as_ref().unwrap_or(&middle));
        drop(normed);
        fed = t.dropout(&fed, self.dropout);
        t.add(&middle, &fed)
    }
}
