//! The vision tower of Idefics2, Idefics3 and SmolVLM (`transformers/models/{idefics2,idefics3,smolvlm}/modeling_*.py`).

use super::config::IdeficsVisionConfig;
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::forward::Run;
use crate::model::parts::encoder::{Block, BlockConfig, BlockForm, BlockOrder, make_blocks, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Module, Tape, Tensor};

/// Form of the blocks of the tower.
const BLOCKS: BlockForm = BlockForm {
    attention: "self_attn",
    out_proj: "out_proj",
    norms: ["layer_norm1", "layer_norm2"],
    order: BlockOrder::PartsFirst,
    query_first: false,
    splits_late: false,
    wide_softmax: true,
};

/// `Idefics3VisionTransformer`.
pub struct IdeficsVision {
    embeddings: Embeddings,
    layers: Vec<Numbered<Block>>,
    post_layernorm: LayerNorm,
}

struct Embeddings {
    module: Module,
    patch_weight: Tensor,
    patch_bias: Tensor,
    position_embedding: Embedding,
    grid: PatchGrid,
}

impl IdeficsVision {
    pub fn new(b: &Builder, c: &IdeficsVisionConfig) -> Self {
        let blocks = BlockConfig {
            form: &BLOCKS,
            shape: c.shape,
            activation: c.activation,
            attention_dropout: c.attention_dropout,
            dropout: 0.0,
            qkv_bias: true,
        };
        Self {
            embeddings: b.tape().scope("embeddings", || Embeddings::new(b, c)),
            layers: make_blocks(b, "encoder.layers", &blocks),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.shape.hidden),
        }
    }

    /// Pixels [tiles, channels, side, side] and the mask of real patches, [tiles, rows, columns] → [tiles, patches,
    /// hidden].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, patches: &Tensor) -> Tensor {
        let embedded = self.embeddings.call(t, run, pixels, patches);
        // `create_bidirectional_mask` finds no padding.
        drop(t.empty([], DType::Bool, "all"));
        let h = run_blocks(t, run, &self.layers, &None, embedded.clone(), |_| ());
        self.post_layernorm.call(t, &h)
    }
}

impl IdeficsVision {
    /// Pixels [images, channels, side, side] without a mask of real patches → the hidden states, from the embedding to the
    /// last block's, and the output.
    pub fn states(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Vec<Tensor>, Tensor) {
        let side = self.embeddings.grid.side();
        let mut h = {
            let patches = t.empty([pixels.size(0), side, side], DType::Bool, "real patches");
            let embedded = self.embeddings.call(t, run, pixels, &patches);
            drop(t.empty([], DType::Bool, "all"));
            embedded
        };
        let mut states = vec![h.clone()];
        h = run_blocks(t, run, &self.layers, &None, h, |state| states.push(state.clone()));
        let last = self.post_layernorm.call(t, &h);
        (states, last)
    }
}

impl Embeddings {
    fn new(b: &Builder, c: &IdeficsVisionConfig) -> Self {
        let (hidden, grid) = (c.shape.hidden, c.grid);
        let (patch_weight, patch_bias) = b.tape().scope("patch_embedding", || {
            let weight = b.weight("weight", [hidden, grid.channels, grid.patch, grid.patch]);
            (weight, b.weight("bias", [hidden]))
        });
        Self {
            module: b.module(),
            patch_weight,
            patch_bias,
            position_embedding: Embedding::new(b, "position_embedding", grid.patches(), hidden),
            grid,
        }
    }

    fn call(&self, t: &Tape, run: &Run, pixels: &Tensor, patches: &Tensor) -> Tensor {
        self.module
            .call(t, || run.embedded(t, self.forward(t, pixels, patches)))
    }

    fn forward(&self, t: &Tape, pixels: &Tensor, patches: &Tensor) -> Tensor {
        let grid = t.conv_patches(pixels, &self.patch_weight, Some(&self.patch_bias));
        let [tiles, hidden] = [grid.size(0), grid.size(1)];
        let embedded = t.transpose(&t.view(&grid, [tiles, hidden, self.grid.patches()]), 1, 2);
        drop(grid);
        let (position_ids, _locals) = self.position_ids(t, pixels, patches);
        let positions = self.position_embedding.call(t, &position_ids);
        t.add(&embedded, &positions)
    }

    /// Index of each patch among the learned positions, [tiles, patches], and the tensors that Python's function still
    /// holds when it adds their embeddings.
    fn position_ids(&self, t: &Tape, pixels: &Tensor, patches: &Tensor) -> (Tensor, Vec<Tensor>) {
        let (tiles, side) = (pixels.size(0), self.grid.side());
        let boundaries = t.empty([boundaries(side)], DType::F32, "boundaries");
        let position_ids = nn::ids(t, &[tiles, side * side], "position ids");
        let real = |dim| t.count(&t.select(patches, dim), &[1]);
        let (rows, columns) = (real(2), real(1));
        let step = |n: &Tensor| {
            let inverse = t.compute(n, DType::F32, "reciprocal");
            t.compute(&inverse, DType::F32, "step")
        };
        let (step_rows, step_columns) = (step(&rows), step(&columns));
        let arange = || t.empty([side], DType::F32, "arange");
        let (row_indices, column_indices) = (arange(), arange());
        let per_side = |name| t.empty([tiles, side], DType::F32, name);
        let mut coordinates = [per_side("coordinates"), per_side("coordinates")];
        for x in &mut coordinates {
            *x = t.compute(x, DType::F32, "clamp");
        }
        for x in &mut coordinates {
            *x = t.to_dtype(x, pixels.dtype());
        }
        let buckets = coordinates.each_ref().map(|x| bucketize(t, x));
        let found = {
            let scaled = t.compute(&buckets[0], DType::I64, "row × columns");
            let sum = nn::ids(t, &[tiles, side, side], "positions");
            drop(scaled);
            t.view(&sum, [tiles, side * side])
        };
        let mask = t.view(patches, [tiles, side * side]);
        let chosen = t.index_ids(&mask, mask.numel(), DType::I64);
        drop(t.nonzero(&mask, mask.numel()));
        drop(chosen);
        let [x, y] = coordinates;
        let [u, v] = buckets;
        let steps = [step_rows, step_columns, row_indices, column_indices, x, y, u, v];
        let mut locals = vec![boundaries, rows, columns, found];
        locals.extend(steps);
        (position_ids, locals)
    }
}

/// `len(torch.arange(1 / side, 1.0, 1 / side))`: rounding decides if the last one counts.
fn boundaries(side: u64) -> u64 {
    let step = 1.0 / side as f64;
    ((1.0 - step) / step).ceil() as u64
}

/// `torch.bucketize(x, boundaries)`: casts `x` to fp32, the type of the boundaries.
fn bucketize(t: &Tape, x: &Tensor) -> Tensor {
    let out = t.compute(x, DType::I64, "bucketize");
    drop(t.to_dtype(x, DType::F32));
    out
}

#[cfg(test)]
mod tests {
    use super::boundaries;

    /// SmolVLM2's trace has 108 bytes for 27 patches a side; 1/16 and 1/32 are exact.
    #[test]
    fn boundaries_round_as_in_the_traces() {
        assert_eq!([27, 16, 32].map(boundaries), [27, 15, 31]);
    }
}
