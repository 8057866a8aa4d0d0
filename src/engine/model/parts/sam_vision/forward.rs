//! SAM's vision tower (`transformers/models/{sam,got_ocr2}/modeling_*.py`).

use std::rc::Rc;

use super::block::Block;
use super::config::SamVisionConfig;
use super::neck::Neck;
use crate::model::forward::Run;
use crate::model::parts::text::run_blocks_seen;
use crate::nn::{Builder, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// `SamVisionEncoder` and `GotOcr2VisionEncoder`.
pub(crate) struct SamVision {
    patch_weight: Tensor,
    patch_bias: Tensor,
    pos_embed: Option<Tensor>,
    layers: Vec<Numbered<Block>>,
    neck: Neck,
}

impl SamVision {
    pub fn new(b: &Builder, c: &SamVisionConfig) -> Self {
        let (t, grid) = (b.tape(), &c.grid);
        let (patch_weight, patch_bias) = t.scope("patch_embed", || {
            let weight = b.weight("projection.weight", [c.hidden, grid.channels, grid.patch, grid.patch]);
            (weight, b.weight("projection.bias", [c.hidden]))
        });
        let side = grid.side();
        Self {
            patch_weight,
            patch_bias,
            pos_embed: c
                .has_positions
                .then(|| b.weight("pos_embed", [1, side, side, c.hidden])),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c, i))))
                .collect(),
            neck: t.scope("neck", || Neck::new(b, c)),
        }
    }

    /// Pixels [images, channels, side, side] → [images, channels of the neck, rows, columns]; `see` gets the embedding and
    /// the output of each block, [images, rows, columns, width].
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        implementation: Attention,
        pixels: &Tensor,
        mut see: impl FnMut(&Tensor),
    ) -> Tensor {
        let mut h = t.scope("patch_embed", || {
            let patches = t.scope("projection", || {
                t.conv_patches(pixels, &self.patch_weight, Some(&self.patch_bias))
            });
            run.embedded(t, t.permute(&patches, &[0, 2, 3, 1]))
        });
        if let Some(positions) = &self.pos_embed {
            h = t.add(&h, positions);
        }
        see(&h);
        let forward = |block: &Block, t: &Tape, attn: &Attention, x: Tensor| block.forward(t, *attn, &x);
        let blocks = (&self.layers[..], &Rc::new(implementation));
        let h = run_blocks_seen(t, run, blocks, h, (forward, see));
        self.neck.call(t, &h)
    }
}
