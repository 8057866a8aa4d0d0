//! Embeddings, blocks and last norm of the decoders.

use std::rc::Rc;

use super::attention::{BlockContext, SelfAttention};
use super::config::BartConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// Entries of the position embedding before the first position.
const OFFSET: u64 = 2;

/// A decoder without its head.
pub(super) struct BartStack {
    embed_tokens: Embedding,
    positions: Positions,
    layers: Vec<Rc<Layer>>,
    layer_norm: LayerNorm,
    dropout: f64,
}

enum Positions {
    Learned(Embedding),
    /// Sines and cosines, [entries, hidden].
    Sinusoids(Tensor),
}

struct Layer {
    self_attn: SelfAttention,
    self_attn_layer_norm: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    final_layer_norm: LayerNorm,
    activation: Activation,
    dropout: f64,
    activation_dropout: f64,
    /// True if the MLP's first half is one expression.
    is_xglm: bool,
}

impl BartStack {
    pub fn new(b: &Builder, c: &BartConfig) -> Self {
        let t = b.tape();
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let (name, entries) = ("embed_positions", c.positions + OFFSET);
        let shape = [entries, c.hidden];
        let positions = if c.form.is_xglm {
            let weights = || b.buffer("weights", shape, b.dtype());
            Positions::Sinusoids(t.scope(name, || sinusoids(t, b.dtype(), shape, weights)))
        } else {
            Positions::Learned(Embedding::new(b, name, entries, c.hidden))
        };
        let layers = (0..c.layers as usize)
            .map(|i| t.layer("layers", i, || Rc::new(Layer::new(b, c))))
            .collect();
        let layer_norm = LayerNorm::new(b, "layer_norm", c.hidden);
        if c.form.is_xglm {
            drop(sinusoids(t, b.dtype(), shape, || {
                t.empty(shape, b.dtype(), "weights again")
            }));
        }
        Self {
            embed_tokens,
            positions,
            layers,
            layer_norm,
            dropout: c.dropout,
        }
    }
}

impl Stack for BartStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let is_xglm = matches!(self.positions, Positions::Sinusoids(_));
        let embeds = t.scope("embed_tokens", || {
            let looked_up = self.embed_tokens.forward(t, ids);
            let scaled = t.scale(&looked_up);
            drop(looked_up);
            run.embedded(t, scaled)
        });
        let cache = run.cache(&[]);
        let attn = if is_xglm { Attention::Eager } else { run.attn };
        let mask = nn::causal_mask(t, attn, &embeds);
        let (positions, ids) = self.positioned(t, &embeds);
        let mut h = t.add(&embeds, &positions);
        let positions = (!is_xglm).then_some(positions);
        h = t.dropout(&h, self.dropout);
        let shared = Rc::new(BlockContext {
            attn,
            mask,
            cache,
            _position_ids: (!is_xglm).then(|| ids.clone()),
        });
        h = run_blocks(t, run, "layers", (&self.layers, &shared), h, Layer::forward);
        let out = t.scope("layer_norm", || self.layer_norm.forward(t, &h));
        drop((shared, ids, positions, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}

impl BartStack {
    /// Embedded positions, [1, seq, hidden], and the position ids, which live as long as the forward.
    fn positioned(&self, t: &Tape, embeds: &Tensor) -> (Tensor, Tensor) {
        let seq = embeds.size(1);
        match &self.positions {
            Positions::Learned(table) => {
                let ids = nn::position_ids(t, embeds);
                let embedded = t.scope("embed_positions", || {
                    let shifted = t.compute(&ids, ids.dtype(), "position ids + 2");
                    table.forward(t, &shifted)
                });
                (embedded, ids)
            }
            Positions::Sinusoids(weights) => {
                let ids = nn::ids(t, &[1, seq], "position_ids");
                let embedded = t.scope("embed_positions", || {
                    let _shifted = t.compute(&ids, ids.dtype(), "position ids + 2");
                    t.empty([1, seq, weights.size(1)], weights.dtype(), "index_select")
                });
                (embedded, ids)
            }
        }
    }
}

/// `get_embedding`: sines and cosines of this shape in type `dtype`, made by `last`.
fn sinusoids(t: &Tape, dtype: DType, [entries, width]: [u64; 2], last: impl FnOnce() -> Tensor) -> Tensor {
    let half = width / 2;
    let f32s = |shape: &[u64], name| t.empty(shape, DType::F32, name);
    let frequencies = {
        let steps = nn::ids(t, &[half], "arange");
        let wide = f32s(&[half], "float");
        drop(steps);
        let scaled = f32s(&[half], "mul");
        drop(wide);
        let out = f32s(&[half], "exp");
        drop(scaled);
        out
    };
    let angles = {
        let steps = nn::ids(t, &[entries], "arange");
        let wide = f32s(&[entries], "float");
        drop(steps);
        let out = f32s(&[entries, half], "mul");
        drop(wide);
        out
    };
    drop(frequencies);
    let waves = [f32s(&[entries, half], "sin"), f32s(&[entries, half], "cos")];
    if dtype == DType::F32 {
        let joined = last();
        drop((waves, angles));
        return joined;
    }
    let joined = f32s(&[entries, width], "cat");
    drop((waves, angles));
    let narrow = last();
    drop(joined);
    narrow
}

impl Layer {
    fn new(b: &Builder, c: &BartConfig) -> Self {
        Self {
            self_attn: b.tape().scope("self_attn", || SelfAttention::new(b, c)),
            self_attn_layer_norm: LayerNorm::new(b, "self_attn_layer_norm", c.hidden),
            fc1: Linear::new(b, "fc1", c.hidden, c.intermediate, true),
            fc2: Linear::new(b, "fc2", c.intermediate, c.hidden, true),
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", c.hidden),
            activation: c.activation,
            dropout: c.dropout,
            activation_dropout: c.activation_dropout,
            is_xglm: c.form.is_xglm,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let mut h = t.scope("self_attn_layer_norm", || self.self_attn_layer_norm.forward(t, &x));
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, &h));
        h = out;
        h = t.dropout(&h, self.dropout);
        h = t.add(&x, &h);
        let residual = h.clone();
        h = t.scope("final_layer_norm", || self.final_layer_norm.forward(t, &h));
        let normed = self.is_xglm.then(|| h.clone());
        h = t.scope("fc1", || self.fc1.forward(t, &h));
        h = nn::activate(t, self.activation, h);
        drop(normed);
        h = t.dropout(&h, self.activation_dropout);
        h = t.scope("fc2", || self.fc2.forward(t, &h));
        h = t.dropout(&h, self.dropout);
        t.add(&residual, &h)
    }
}
