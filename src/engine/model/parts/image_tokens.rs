//! Image tokens of a text: their mask, and the features that replace their embeddings.

use crate::dtype::DType;
use crate::nn;
use crate::tape::{Component, Tape, Tensor};

/// Writes the features of images, [tokens, width] each, over their tokens' embeddings, [batch, seq, width]. Returns the
/// embeddings, and the tensors that the model's forward holds: the features of all images, and the mask of their
/// tokens.
pub fn merge_images(t: &Tape, ids: &Tensor, embeds: Tensor, parts: Vec<Tensor>) -> (Tensor, Tensor, Tensor) {
    t.component("model", Component::Connector, || {
        let features = t.to_dtype(&t.cat(&parts.iter().collect::<Vec<_>>(), 0), embeds.dtype());
        drop(parts);
        let mask = placeholder_mask(t, ids);
        let merged = t.place_features(&embeds, &mask, &features);
        (merged, features, mask)
    })
}

/// `get_placeholder_mask`: mask of the image tokens, [batch, seq, 1].
pub fn placeholder_mask(t: &Tape, ids: &Tensor) -> Tensor {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let count = t.empty([], DType::I64, "number of image tokens");
    drop(t.compute(&mask, DType::I64, "mask as integers"));
    let mask = t.unsqueeze(&mask, 2);
    let elements = t.empty([], DType::I64, "number of image token elements");
    let equal = t.empty([], DType::Bool, "comparison");
    drop(elements);
    drop(t.empty([], DType::Bool, "all"));
    drop((equal, count));
    mask
}

/// Token ids for the embedding, with 0 for image tokens if these have no row in it.
pub fn ids_without_images(t: &Tape, ids: &Tensor, token_outside_vocab: bool) -> Tensor {
    if !token_outside_vocab {
        return ids.clone();
    }
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let out = t.clone_of(ids);
    drop((nn::ids(t, &[], "0"), mask));
    out
}
