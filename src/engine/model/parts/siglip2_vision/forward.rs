//! SigLIP 2's vision tower (`transformers/models/siglip2/modeling_siglip2.py`).

use super::config::Siglip2VisionConfig;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::encoder::{Block, BlockConfig, make_blocks, run_blocks};
use crate::model::parts::siglip_vision::{BLOCKS, PoolingHead};
use crate::nn::{Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::tape::{Tape, Tensor};

/// `Siglip2VisionModel`.
pub struct Siglip2Vision {
    patch_embedding: Linear,
    position_embedding: Embedding,
    layers: Vec<Numbered<Block>>,
    post_layernorm: LayerNorm,
    head: Option<PoolingHead>,
    side: u64,
}

impl Siglip2Vision {
    pub fn new(b: &Builder, c: &Siglip2VisionConfig) -> Self {
        let hidden = c.shape.hidden;
        let (patch_embedding, position_embedding) = b.tape().scope("embeddings", || {
            (
                Linear::new(b, "patch_embedding", c.patch_elements(), hidden, true),
                Embedding::new(b, "position_embedding", c.side * c.side, hidden),
            )
        });
        let blocks = BlockConfig {
            form: &BLOCKS,
            shape: c.shape,
            activation: c.activation,
            attention_dropout: c.attention_dropout,
            dropout: 0.0,
            qkv_bias: true,
        };
        Self {
            patch_embedding,
            position_embedding,
            layers: make_blocks(b, "encoder.layers", &blocks),
            post_layernorm: LayerNorm::new(b, "post_layernorm", hidden),
            head: c.head.then(|| PoolingHead::new(b, c.shape, c.activation)),
            side: c.side,
        }
    }

    /// Patches [images, patches, elements of a patch] of images of `[rows, columns]` patches each, all without padding →
    /// last hidden states [images, patches, hidden], and the output of the pooling head, if there is one.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, grid: [u64; 2]) -> (Tensor, Option<Tensor>) {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels, grid));
        let shape = [embedded.size(0), embedded.size(1)];
        look_for_padding(t, shape);
        let h = run_blocks(t, run, &self.layers, &None, embedded.clone(), |_| ());
        let last = self.post_layernorm.call(t, &h);
        let pool = |head: &PoolingHead| head.call_masked(t, &last, || look_for_padding(t, shape));
        let pooled = self.head.as_ref().map(pool);
        drop((h, embedded));
        (last, pooled)
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor, grid: [u64; 2]) -> Tensor {
        let pixels = t.to_dtype(pixels, self.position_embedding.weight().dtype());
        let patches = self
            .patch_embedding
            .call_hooked(t, &pixels, |embeds| run.embedded(t, embeds));
        drop(pixels);
        let positions = self.resized_positions(t, [patches.size(0), patches.size(1)], grid);
        t.add(&patches, &positions)
    }

    /// `resize_positional_embeddings`: [images, patches, hidden].
    fn resized_positions(&self, t: &Tape, [images, patches]: [u64; 2], [rows, columns]: [u64; 2]) -> Tensor {
        let weight = self.position_embedding.weight();
        let hidden = weight.last();
        let square = t.view(weight, [self.side, self.side, hidden]);
        let mut all = t.empty([images, patches, hidden], weight.dtype(), "positions");
        let table = t.unsqueeze(&t.permute(&square, &[2, 0, 1]), 0);
        let mut _resized = None;
        for _ in 0..images {
            let image = t.interpolate_antialiased(&table, [rows, columns]);
            let image = t.transpose(&t.reshape(&image, [hidden, rows * columns]), 0, 1);
            let image = t.to_dtype(&image, weight.dtype());
            all = t.set_rows(all, &image);
            // Positions of padding, of which there is none, are the first one's.
            let first = t.expand(&t.select(&image, 0), [patches - rows * columns, hidden]);
            all = t.set_rows(all, &first);
            _resized = Some(image);
        }
        all
    }
}

/// `create_bidirectional_mask`, which finds no padding in a mask of [images, patches].
fn look_for_padding(t: &Tape, shape: [u64; 2]) {
    let mask = t.empty(shape, DType::Bool, "padding mask");
    drop(t.all(&mask));
}
