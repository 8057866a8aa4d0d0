//! Pix2Struct's tower (`Pix2StructVisionModel`).

use std::rc::Rc;

use super::attention::{AttentionSizes, SelfAttention};
use super::config::VisionConfig;
use super::mlp::GatedMlp;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::nn::{Builder, Embedding, Linear, Numbered, T5LayerNorm};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// Embeddings of patches, blocks, and a norm.
pub(super) struct Encoder {
    embeddings: Embeddings,
    layers: Vec<Numbered<Block>>,
    layernorm: T5LayerNorm,
}

impl Encoder {
    pub fn new(b: &Builder, c: &VisionConfig) -> Self {
        Self {
            embeddings: b.tape().scope("embeddings", || Embeddings::new(b, c)),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "encoder.layer", i, || Rc::new(Block::new(b, c))))
                .collect(),
            layernorm: T5LayerNorm::new(b, "layernorm", c.block.hidden),
        }
    }

    /// Patches [batch, patches, 2 + elements], none of which is padding → [batch, patches, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, patches: &Tensor) -> Tensor {
        let embedded = self.embeddings.call(t, run, patches);
        no_padding(t, patches.size(0), patches.size(1));
        let mut h = embedded.clone();
        for layer in &self.layers {
            let (called, attn) = (layer.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| called.forward(t, attn, x);
            h = run.block(t, layer, h.clone(), forward);
        }
        self.layernorm.call(t, &h)
    }
}

/// `create_bidirectional_mask` for a mask of patches that are all real: it looks, and makes none.
pub(super) fn no_padding(t: &Tape, batch: u64, patches: u64) {
    let real = t.empty([batch, patches], DType::Bool, "mask as booleans");
    drop(t.all(&real));
}

/// `Pix2StructVisionEmbeddings`.
struct Embeddings {
    module: Module,
    patch_projection: Linear,
    row_embedder: Embedding,
    column_embedder: Embedding,
    dropout: f64,
}

impl Embeddings {
    fn new(b: &Builder, c: &VisionConfig) -> Self {
        let hidden = c.block.hidden;
        Self {
            module: b.module(),
            patch_projection: Linear::new(b, "patch_projection", c.patch, hidden, true),
            row_embedder: Embedding::new(b, "row_embedder", c.positions, hidden),
            column_embedder: Embedding::new(b, "column_embedder", c.positions, hidden),
            dropout: c.block.dropout,
        }
    }

    fn call(&self, t: &Tape, run: &Run, patches: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [batch, n] = [patches.size(0), patches.size(1)];
            // The first two numbers of a patch are its row and its column.
            let place = |name| t.empty([batch, n], DType::I64, name);
            let (rows, columns) = (place("rows"), place("columns"));
            let elements = t.narrow(patches, 2, patches.last() - 2);
            let projected = run.embedded(t, self.patch_projection.call(t, &elements));
            let of_rows = self.row_embedder.call(t, &rows);
            let of_columns = self.column_embedder.call(t, &columns);
            let sum = {
                let first = t.add(&projected, &of_rows);
                t.add(&first, &of_columns)
            };
            drop(projected);
            let out = t.dropout(&sum, self.dropout);
            drop((sum, of_rows, of_columns, rows, columns));
            out
        })
    }
}

/// `Pix2StructVisionLayer`.
struct Block {
    attention: SelfAttention,
    mlp: GatedMlp,
    pre_mlp_layer_norm: T5LayerNorm,
    pre_attention_layer_norm: T5LayerNorm,
}

impl Block {
    fn new(b: &Builder, c: &VisionConfig) -> Self {
        let sizes = AttentionSizes {
            hidden: c.block.hidden,
            heads: c.heads,
            head_width: c.head_width,
            dropout: c.attention_dropout,
            buckets: None,
        };
        Self {
            attention: b.tape().scope("attention", || SelfAttention::new(b, sizes)),
            mlp: b.tape().scope("mlp", || GatedMlp::new(b, &c.block)),
            pre_mlp_layer_norm: T5LayerNorm::new(b, "pre_mlp_layer_norm", c.block.hidden),
            pre_attention_layer_norm: T5LayerNorm::new(b, "pre_attention_layer_norm", c.block.hidden),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.pre_attention_layer_norm.call(t, &x);
        drop(x);
        let (attended, _weights) = self.attention.call_plain(t, attn, &h);
        h = t.add(&attended, &residual);
        let normed = self.pre_mlp_layer_norm.call(t, &h);
        let out = {
            let fed = self.mlp.call(t, normed.clone());
            t.add(&fed, &h)
        };
        // Python's variable for the norm's output becomes that of the block's.
        drop((normed, h, attended));
        out
    }
}
