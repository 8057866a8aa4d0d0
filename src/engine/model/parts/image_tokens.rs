//! Image tokens of a text: their masks, and their ids in the embedding.

use crate::dtype::DType;
use crate::nn;
use crate::tape::{Failure, Tape, Tensor};

/// `get_placeholder_mask`: mask of the image tokens, [batch, seq, 1].
pub fn placeholder_mask(t: &Tape, ids: &Tensor) -> Tensor {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let count = count_tokens(t, &mask);
    let mask = t.unsqueeze(&mask, 2);
    check_count(t);
    drop(count);
    mask
}

/// `get_placeholder_mask` of models that take videos too: masks of the image and of the video tokens. No video is given.
pub fn placeholder_masks(t: &Tape, ids: &Tensor) -> (Tensor, Option<Tensor>) {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let video_mask = t.compute(ids, DType::Bool, "video token mask");
    let count = count_tokens(t, &mask);
    let mask = t.unsqueeze(&mask, 2);
    check_count(t);
    let video_count = count_tokens(t, &video_mask);
    drop((count, video_count));
    (mask, Some(video_mask))
}

/// `get_placeholder_mask` of models that look up the embeddings of the image tokens to compare their number with that of
/// the features: a mask of [batch, seq, hidden].
pub fn expanded_placeholder_mask(t: &Tape, ids: &Tensor, embeds: &Tensor, features: &Tensor) -> Tensor {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let count = count_tokens(t, &mask);
    let mask = t.expand(&t.unsqueeze(&mask, 2), *embeds.shape());
    let places = t.nonzero(&mask, features.numel());
    let looked_up = t.empty([features.numel()], embeds.dtype(), "index");
    drop((places, looked_up, count));
    mask
}

/// Notes that the run stops if the embedding has no row of the image token, which is looked up as any other.
pub fn look_up(t: &Tape, token: u64, rows: u64) {
    if token >= rows {
        t.fail(|| Failure::NoRow { token, rows });
    }
}

/// Number of the tokens that a mask marks.
pub fn count_tokens(t: &Tape, mask: &Tensor) -> Tensor {
    let count = t.empty([], DType::I64, "number of tokens");
    drop(t.compute(mask, DType::I64, "mask as integers"));
    count
}

/// Compares the number of elements that the tokens take with that of the features.
pub fn check_count(t: &Tape) {
    let elements = t.empty([], DType::I64, "number of token elements");
    let equal = t.empty([], DType::Bool, "comparison");
    drop(elements);
    drop(t.empty([], DType::Bool, "all"));
    drop(equal);
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

/// Token ids for the embedding, with 0 for images and videos, and the mask of both.
pub fn ids_of_text(t: &Tape, ids: &Tensor) -> (Tensor, Tensor) {
    let mask = {
        let _masks = [(); 2].map(|()| t.compute(ids, DType::Bool, "token mask"));
        t.compute(ids, DType::Bool, "bitwise_or")
    };
    let known = t.clone_of(ids);
    drop(nn::ids(t, &[], "0"));
    (known, mask)
}
