//! KOSMOS-2.5's vision tower, over flattened patches (`transformers/models/kosmos2_5/modeling_kosmos2_5.py`).

use std::rc::Rc;

use super::config::Kosmos25VisionConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::text::run_blocks;
use crate::nn::{self, AttentionCall, Builder, Embedding, Linear, Numbered, T5LayerNorm};
use crate::setup::Attention;
use crate::tape::{Mask, Module, Tape, Tensor};

/// Elements of a patch before its pixels: its row and its column.
pub const PLACES: u64 = 2;

/// `Kosmos2_5VisionModel`.
pub struct PatchesVision {
    patch_projection: Linear,
    row_embedder: Embedding,
    column_embedder: Embedding,
    dropout: f64,
    layers: Vec<Numbered<Layer>>,
    layernorm: T5LayerNorm,
}

struct Layer {
    attention: SelfAttention,
    mlp: GatedMlp,
    pre_mlp_layer_norm: T5LayerNorm,
    pre_attention_layer_norm: T5LayerNorm,
}

struct SelfAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    head_dim: u64,
    dropout: f64,
}

struct GatedMlp {
    module: Module,
    wi_0: Linear,
    wi_1: Linear,
    wo: Linear,
    activation: Activation,
    dropout: f64,
    dtype: DType,
}

impl PatchesVision {
    pub fn new(b: &Builder, c: &Kosmos25VisionConfig) -> Self {
        let t = b.tape();
        let (patch_projection, row_embedder, column_embedder) = t.scope("embeddings", || {
            (
                Linear::new(b, "patch_projection", c.patch, c.hidden, true),
                Embedding::new(b, "row_embedder", c.patches, c.hidden),
                Embedding::new(b, "column_embedder", c.patches, c.hidden),
            )
        });
        let layers = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "encoder.layer", i, || Rc::new(Layer::new(b, c))))
            .collect();
        Self {
            patch_projection,
            row_embedder,
            column_embedder,
            dropout: c.dropout,
            layers,
            layernorm: T5LayerNorm::new(b, "layernorm", c.hidden),
        }
    }

    /// Flat patches [images, patches, 2 + elements] → [images, patches, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, flat: &Tensor) -> Tensor {
        let marks = {
            let sums = t.sum_last(flat);
            let marked = t.compute(&sums, DType::Bool, "patches that are not zero");
            drop(sums);
            t.compute(&marked, DType::F32, "attention mask")
        };
        let embedded = t.scope("embeddings", || self.embed(t, run, flat));
        let mask = Rc::new(Mask::Bias(expanded(t, &marks, embedded.dtype())));
        let h = run_blocks(t, run, (&self.layers, &mask), embedded.clone(), Layer::forward);
        drop(mask);
        let out = self.layernorm.call(t, &h);
        drop((h, embedded, marks));
        out
    }

    fn embed(&self, t: &Tape, run: &Run, flat: &Tensor) -> Tensor {
        let place = |name| t.empty([flat.size(0), flat.size(1)], DType::I64, name);
        let (rows, columns) = (place("row indices"), place("column indices"));
        let pixels = t.narrow(flat, 2, flat.last() - PLACES);
        let mut h = self
            .patch_projection
            .call_hooked(t, &pixels, |embeds| run.embedded(t, embeds));
        let of_rows = self.row_embedder.call(t, &rows);
        let of_columns = self.column_embedder.call(t, &columns);
        h = {
            let sum = t.add(&h, &of_rows);
            t.add(&sum, &of_columns)
        };
        h = t.functional_dropout(&h, self.dropout);
        drop((of_columns, of_rows, columns, rows));
        h
    }
}

/// `_expand_mask` of marks [images, patches] in fp32: a bias of [images, 1, patches, patches].
fn expanded(t: &Tape, marks: &Tensor, dtype: DType) -> Tensor {
    let [images, patches] = [marks.size(0), marks.size(1)];
    let shape = [images, 1, patches, patches];
    let expanded = (dtype != DType::F32).then(|| t.empty(shape, dtype, "expanded mask"));
    let inverted = t.empty(shape, dtype, "inverted mask");
    let padding = t.empty(shape, DType::Bool, "padding");
    let out = t.empty(shape, dtype, "masked_fill");
    drop((padding, inverted, expanded));
    out
}

impl Layer {
    fn new(b: &Builder, c: &Kosmos25VisionConfig) -> Self {
        let t = b.tape();
        let inner = c.heads * c.head_dim;
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        let attention = t.scope("attention", || SelfAttention {
            module: b.module(),
            query: linear("query", c.hidden, inner),
            key: linear("key", c.hidden, inner),
            value: linear("value", c.hidden, inner),
            output: linear("output", inner, c.hidden),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        });
        let mlp = t.scope("mlp", || GatedMlp {
            module: b.module(),
            wi_0: linear("wi_0", c.hidden, c.intermediate),
            wi_1: linear("wi_1", c.hidden, c.intermediate),
            wo: linear("wo", c.intermediate, c.hidden),
            activation: c.activation,
            dropout: c.dropout,
            dtype: b.dtype(),
        });
        Self {
            attention,
            mlp,
            pre_mlp_layer_norm: T5LayerNorm::new(b, "pre_mlp_layer_norm", c.hidden),
            pre_attention_layer_norm: T5LayerNorm::new(b, "pre_attention_layer_norm", c.hidden),
        }
    }

    fn forward(&self, t: &Tape, mask: &Mask, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.pre_attention_layer_norm.call(t, &x);
        drop(x);
        let (attended, _weights) = self.attention.call(t, mask, &h);
        h = t.add(&attended, &residual);
        let normed = self.pre_mlp_layer_norm.call(t, &h);
        let out = {
            let of_mlp = self.mlp.call(t, &normed);
            t.add(&of_mlp, &h)
        };
        drop((normed, attended, h, residual));
        out
    }
}

impl SelfAttention {
    /// Eager attention, whichever is asked for: `getattr` finds no other.
    fn call(&self, t: &Tape, mask: &Mask, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [images, patches] = [x.size(0), x.size(1)];
            let project = |proj: &Linear| {
                let out = proj.call(t, x);
                let split = t.view(&out, [images, patches, out.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let q = project(&self.query);
            let k = project(&self.key);
            let v = project(&self.value);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: Some(mask),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, Attention::Eager, &call);
            out = t.reshape(&out, [images, patches, q.size(1) * self.head_dim]);
            out = self.output.call(t, &out);
            (out, weights)
        })
    }
}

impl GatedMlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let gate = nn::activate(t, self.activation, self.wi_0.call(t, x));
            let linear = self.wi_1.call(t, x);
            let mut h = t.mul(&gate, &linear);
            h = t.functional_dropout(&h, self.dropout);
            h = t.to_dtype(&h, self.dtype);
            h = self.wo.call(t, &h);
            drop((linear, gate));
            h
        })
    }
}
