//! SmolVLM's `inputs_merger` (`transformers/models/smolvlm/modeling_smolvlm.py`).

use crate::dtype::DType;
use crate::nn;
use crate::tape::{Tape, Tensor};

/// Writes image features [tiles, tokens, width] over the image tokens' rows of `embeds` [batch, seq, width].
///
/// Fails if the two have different types, as under autocast.
pub fn merge(t: &Tape, ids: &Tensor, embeds: &Tensor, features: &Tensor) -> Tensor {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let tokens = t.count(&mask, &[1]);
    check_whole_tiles(t, &tokens);
    let blocks = t.compute(&tokens, DType::I64, "tiles of each sample");
    let offsets = {
        let sums = t.running_sum(&blocks);
        nn::ids(t, &[sums.numel() + 1], "tiles before each sample")
    };
    let places = t.running_sum(&mask);
    let of_place = |name| {
        let from_zero = t.compute(&places, DType::I64, "place − 1");
        let out = t.compute(&from_zero, DType::I64, name);
        drop(from_zero);
        out
    };
    let chunk = of_place("tile within the sample");
    let local = of_place("place within the tile");
    let block = t.compute(&chunk, DType::I64, "tile");
    let marked = features.size(0) * features.size(1);
    let mut images = t.compute(embeds, embeds.dtype(), "zeros");
    {
        let tile = t.index_ids(&mask, marked, DType::I64);
        let place = t.index_ids(&mask, marked, DType::I64);
        let values = t.index(features, &[tile, place]);
        t.can_put("SmolVLM", &images, &values);
        images = t.index_put_rows(images, &mask, &values);
    }
    let merged = t.select_where(&t.unsqueeze(&mask, 2), &images, embeds);
    drop((tokens, blocks, offsets, places, chunk, local, block));
    merged
}

/// Checks that every sample has whole tiles: `torch.all(tokens % tile == 0)`.
fn check_whole_tiles(t: &Tape, tokens: &Tensor) {
    let rest = t.compute(tokens, DType::I64, "remainder");
    let equal = t.compute(&rest, DType::Bool, "remainder = 0");
    drop(rest);
    let all = t.empty([], DType::Bool, "all");
    drop(equal);
    drop(t.empty([], DType::Bool, "is all true"));
    drop(all);
}
