//! Writes image features over the embeddings of image tokens.

use super::layout::Layout;
use crate::dtype::DType;
use crate::nn::ids;
use crate::tape::{Tape, Tensor};

/// Splits features [tokens, width] into one view for each image, as the end of `get_image_features` does.
pub fn split_images(t: &Tape, grid: &Tensor, merged: Tensor, layout: &Layout) -> Vec<Tensor> {
    let sizes: Vec<u64> = layout.images().iter().map(|g| layout.tokens_of(g)).collect();
    let patches = ids(t, &[grid.size(0)], "prod");
    let tokens = ids(t, &[grid.size(0)], "floor_divide");
    drop((patches, tokens));
    t.split(&merged, 0, &sizes)
}

/// Concatenates the features of all images, in the type of the embeddings.
pub fn joined(t: &Tape, images: Vec<Tensor>, dtype: DType) -> Tensor {
    t.to_dtype(&t.cat(&images.iter().collect::<Vec<_>>(), 0), dtype)
}

/// `get_placeholder_mask`: masks of the image and of the video tokens, [batch, seq, 1] each.
pub fn placeholder_masks(t: &Tape, token_ids: &Tensor) -> [Tensor; 2] {
    let image = t.compute(token_ids, DType::Bool, "image token mask");
    let video = t.compute(token_ids, DType::Bool, "video token mask");
    let count = |mask: &Tensor, name| {
        let sum = ids(t, &[], name);
        drop(t.compute(mask, DType::I64, "mask as integers"));
        sum
    };
    let images = count(&image, "number of image tokens");
    {
        let elements = ids(t, &[], "number of image elements");
        let equal = t.empty([], DType::Bool, "comparison");
        drop(elements);
        drop(t.empty([], DType::Bool, "all"));
        drop(equal);
    }
    let videos = count(&video, "number of video tokens");
    drop((images, videos));
    [t.unsqueeze(&image, 2), t.unsqueeze(&video, 2)]
}

/// `_deepstack_process`: adds features to the hidden states at image tokens.
pub fn add_at_images(t: &Tape, h: Tensor, image_mask: &Tensor, features: &Tensor) -> Tensor {
    let mask = t.squeeze(image_mask, 2);
    let features = t.to_dtype(features, h.dtype());
    let copy = t.clone_of(&h);
    let sum = {
        let rows = t.index_rows(&copy, &mask, features.size(0));
        t.add(&rows, &features)
    };
    t.index_put_rows(copy, &mask, &sum)
}
