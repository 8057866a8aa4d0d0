//! Learned positions of GLM-4V's tower, a square grid that is interpolated at each patch.

use crate::dtype::DType;
use crate::nn::{Builder, ids};
use crate::tape::{Tape, Tensor};

/// `Glm4vVisionEmbeddings`.
pub struct LearnedPositions {
    /// Weight of `position_embedding`, [side², width].
    weight: Tensor,
    side: u64,
}

impl LearnedPositions {
    pub fn new(b: &Builder, side: u64, width: u64) -> Self {
        let weight = b
            .tape()
            .scope("position_embedding", || b.weight("weight", [side * side, width]));
        Self { weight, side }
    }

    /// Adds each patch's position to `embeddings` [patches, width]; `lengths` are the patches of each image.
    ///
    /// Names that begin with `_` are variables of the Python forward: nothing reads them here, but the tensors live until it
    /// returns.
    pub fn added(&self, t: &Tape, embeddings: &Tensor, lengths: &Tensor) -> Tensor {
        let (patches, width) = (embeddings.size(0), embeddings.size(1));
        let square = t.view(&self.weight, [self.side, self.side, width]);
        let planes = t.to_dtype(&t.unsqueeze(&t.permute(&square, &[2, 0, 1]), 0), DType::F32);
        let _token_positions = ids(t, &[patches], "arange");
        let _seq_ids = {
            let ends = t.cumsum_ids(lengths, DType::I64);
            let after = t.empty([lengths.size(0), patches], DType::Bool, "comparison");
            drop(ends);
            t.count(&after, &[0])
        };
        let float = |name| t.empty([patches], DType::F32, name);
        let target = || {
            let chosen = ids(t, &[patches], "index");
            let target = float("to dtype");
            drop(chosen);
            target
        };
        let _targets = [target(), target()];
        // `((coords + 0.5) / target) * 2 - 1`.
        let normed = || {
            let mut normed = float("add a number");
            for name in ["div", "mul by a number", "sub a number"] {
                normed = float(name);
            }
            normed
        };
        let _normed = [normed(), normed()];
        let grid = t.empty([1, patches, 1, 2], DType::F32, "stack");
        let sampled = t.grid_sample(&planes, &grid);
        let rows = t.permute(&t.squeeze(&t.squeeze(&sampled, 0), 2), &[1, 0]);
        let adapted = t.to_dtype(&rows, self.weight.dtype());
        t.add(embeddings, &adapted)
    }
}
