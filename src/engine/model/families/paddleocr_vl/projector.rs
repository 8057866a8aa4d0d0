//! PaddleOCR-VL's projector (`transformers/models/paddleocr_vl/modeling_paddleocr_vl.py`).

use super::config::PaddleOcrVlConfig;
use crate::model::config::Activation;
use crate::model::parts::qwen_vl::Layout;
use crate::nn::{self, Builder, LayerNorm, Linear, ids};
use crate::tape::{Tape, Tensor};

/// `PaddleOCRProjector`.
pub struct Projector {
    pre_norm: LayerNorm,
    linear_1: Linear,
    linear_2: Linear,
    merge: u64,
}

impl Projector {
    pub fn new(b: &Builder, c: &PaddleOcrVlConfig) -> Self {
        let (tower, merge) = (&c.vision.tower, c.vision.tower.patches.merge);
        let width = tower.shape.hidden * merge * merge;
        Self {
            pre_norm: LayerNorm::new(b, "pre_norm", tower.shape.hidden),
            linear_1: Linear::new(b, "linear_1", width, width, true),
            linear_2: Linear::new(b, "linear_2", width, c.text.hidden, true),
            merge,
        }
    }

    /// Features [patches, width] → [tokens, text width].
    pub fn forward(&self, t: &Tape, features: &Tensor, layout: &Layout) -> Tensor {
        let (images, width, m) = (layout.images(), features.last(), self.merge);
        drop(ids(t, &[images.len() as u64], "prod"));
        let lengths: Vec<u64> = images.iter().map(|image| image.patches()).collect();
        let parts = t.split(features, 0, &lengths);
        let mut processed = Vec::with_capacity(parts.len());
        // Variables of the loop, which outlive its iterations.
        let (mut _blocks, mut _feature) = ([None, None], None);
        for (image, part) in images.iter().zip(&parts) {
            _feature = Some(part.clone());
            let normed = self.pre_norm.call(t, part);
            _feature = Some(normed.clone());
            for sides in &mut _blocks {
                *sides = Some(ids(t, &[], "floor_divide"));
            }
            let [rows, columns] = [image.rows / m, image.columns / m];
            let mut squares = t.reshape(&normed, [image.frames, rows, m, columns, m, width]);
            drop(normed);
            squares = t.transpose(&squares, 2, 3);
            let first = ids(t, &[], "mul");
            let tokens = ids(t, &[], "mul");
            drop(first);
            let x = t.reshape(&squares, [image.frames * rows * columns, m * m * width]);
            drop(squares);
            _feature = Some(x.clone());
            drop(tokens);
            let mut h = self.linear_1.call(t, &x);
            h = nn::activate(t, Activation::Gelu, h);
            processed.push(self.linear_2.call(t, &h));
        }
        t.cat(&processed.iter().collect::<Vec<_>>(), 0)
    }
}
