//! Projector of Mistral 3 and LightOnOCR.

use super::config::Mistral3Config;
use crate::model::config::Activation;
use crate::model::parts::pixtral_vision::side_in_patches;
use crate::nn::{self, Builder, Linear, RmsNorm};
use crate::tape::{Tape, Tensor};

/// `Mistral3MultiModalProjector`, `LightOnOcrMultiModalProjector`.
pub struct Projector {
    norm: RmsNorm,
    merging_layer: Linear,
    linear_1: Linear,
    linear_2: Linear,
    activation: Activation,
    merge: u64,
}

impl Projector {
    pub fn new(b: &Builder, c: &Mistral3Config) -> Self {
        let (hidden, out, bias) = (c.vision.shape.hidden, c.text.hidden, c.projector_bias);
        Self {
            norm: RmsNorm::new(b, "norm", hidden),
            merging_layer: b.tape().scope("patch_merger", || {
                Linear::new(b, "merging_layer", hidden * c.merge * c.merge, hidden, false)
            }),
            linear_1: Linear::new(b, "linear_1", hidden, out, bias),
            linear_2: Linear::new(b, "linear_2", out, out, bias),
            activation: c.projector_activation,
            merge: c.merge,
        }
    }

    /// Features [patches, hidden] of images of `[rows, columns]` patches → [tokens, text width].
    pub fn forward(&self, t: &Tape, features: Tensor, images: &[[u64; 2]]) -> Tensor {
        let mut x = self.norm.call(t, &features);
        drop(features);
        x = t.scope("patch_merger", || self.merged(t, &x, images));
        let mut h = self.linear_1.call(t, &x);
        h = nn::activate(t, self.activation, h);
        let out = self.linear_2.call(t, &h);
        drop(x);
        out
    }

    /// `Mistral3PatchMerger`: each square of patches becomes one position.
    fn merged(&self, t: &Tape, features: &Tensor, images: &[[u64; 2]]) -> Tensor {
        let width = features.last();
        let _sides: Vec<_> = images.iter().map(|_| side_in_patches(t)).collect();
        let counts: Vec<_> = images.iter().map(|_| nn::ids(t, &[], "patches of an image")).collect();
        let patches: Vec<u64> = images.iter().map(|[rows, columns]| rows * columns).collect();
        let parts = t.split(features, 0, &patches);
        let mut _image_grid = None;
        let mut squares = Vec::with_capacity(images.len());
        for (part, &[rows, columns]) in parts.iter().zip(images) {
            let grid = t.permute(&t.view(part, [rows, columns, width]), &[2, 0, 1]);
            let grid = t.unsqueeze(&grid, 0);
            let unfolded = t.unfold(&grid, self.merge);
            let flat = t.view(&unfolded, [unfolded.size(1), unfolded.size(2)]);
            squares.push(t.transpose(&flat, 0, 1));
            _image_grid = Some(grid);
        }
        let joined = t.cat(&squares.iter().collect::<Vec<_>>(), 0);
        let out = self.merging_layer.call(t, &joined);
        drop((counts, squares, parts));
        out
    }
}
