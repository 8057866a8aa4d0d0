//! Position embeddings of patches within a tile, and of tiles within an image
//! (`transformers/models/mllama/modeling_mllama.py`).

use super::config::MllamaVisionConfig;
use crate::nn::{self, Builder, Embedding};
use crate::tape::{Module, Tape, Tensor};

/// `MllamaPrecomputedAspectRatioEmbedding`: one vector for each tile of each arrangement.
pub struct TileEmbedding {
    module: Module,
    embedding: Embedding,
    gate: Tensor,
}

/// `MllamaPrecomputedPositionEmbedding`: one vector for each position of a tile, and one for each
/// position of each tile of each arrangement.
pub struct TilePositions {
    module: Module,
    gate: Tensor,
    embedding: Tensor,
    tile_embedding: Embedding,
}

/// Entries of a table by arrangement; the first is for no image.
fn arrangements(c: &MllamaVisionConfig) -> u64 {
    c.aspect_ratios + 1
}

impl TileEmbedding {
    pub fn new(b: &Builder, c: &MllamaVisionConfig) -> Self {
        Self {
            module: b.module(),
            embedding: Embedding::new(b, "embedding", arrangements(c), c.max_tiles * c.shape.hidden),
            gate: b.weight("gate", [1]),
        }
    }

    /// [images, tiles, positions, hidden] → [images, tiles, positions, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor, arrangements: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let [images, tiles, width] = [x.size(0), x.size(1), x.size(3)];
            let mut embeddings = t.watched("embedding", || self.embedding.forward(t, arrangements));
            embeddings = t.reshape(&embeddings, [images, tiles, 1, width]);
            embeddings = t.mul(&embeddings, &t.tanh(&self.gate));
            t.add(x, &embeddings)
        })
    }
}

impl TilePositions {
    pub fn new(b: &Builder, c: &MllamaVisionConfig) -> Self {
        let (positions, hidden) = (c.grid.patches() + 1, c.shape.hidden);
        let gate = b.weight("gate", [1]);
        // A local of the constructor; the embedding is `scale` times it.
        let position_embedding = b.tape().empty([positions, hidden], b.dtype(), "position_embedding");
        let made = Self {
            module: b.module(),
            gate,
            embedding: b.weight("embedding", [positions, hidden]),
            tile_embedding: Embedding::new(b, "tile_embedding", arrangements(c), c.max_tiles * positions * hidden),
        };
        drop(position_embedding);
        made
    }

    /// [images, tiles, positions, hidden] → [images, tiles, positions, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor, arrangements: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let [images, tiles, positions, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
            let within = {
                let rest = {
                    let activated = t.tanh(&self.gate);
                    t.shift_negated(&activated)
                };
                t.mul(&rest, &self.embedding)
            };
            let mut h = t.add(x, &t.view(&within, [1, 1, positions, width]));
            let mut of_tiles = t.watched("tile_embedding", || self.tile_embedding.forward(t, arrangements));
            of_tiles = t.reshape(&of_tiles, [images, tiles, positions, width]);
            let gated = nn::gated(t, &self.gate, &of_tiles);
            h = t.add(&h, &gated);
            drop((gated, of_tiles, within));
            h
        })
    }
}
