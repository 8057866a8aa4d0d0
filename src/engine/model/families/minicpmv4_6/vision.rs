//! MiniCPM-V 4.6's vision tower (`transformers/models/minicpmv4_6/modeling_minicpmv4_6.py`).

use std::rc::Rc;

use super::config::MiniCpmVisionConfig;
use super::window_merger::WindowMerger;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::packed_vision::{PackedBlocks, PatchConv};
use crate::model::parts::qwen_vl::{Layout, Segments};
use crate::nn::{Builder, Embedding, LayerNorm, ids};
use crate::tape::{Component, Tape, Tensor};

/// `MiniCPMV4_6VisionModel`.
pub struct Vision {
    patch_embedding: PatchConv,
    position_embedding: Embedding,
    blocks: PackedBlocks,
    post_layernorm: LayerNorm,
    vit_merger: WindowMerger,
    side: u64,
    merges_after: Option<u64>,
}

impl Vision {
    pub fn new(b: &Builder, c: &MiniCpmVisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.tower.shape.hidden);
        let (patch_embedding, position_embedding) = t.scope("embeddings", || {
            (
                PatchConv::new(b, c.tower.patches.channels, c.tower.patches.patch, hidden),
                Embedding::new(b, "position_embedding", c.side * c.side, hidden),
            )
        });
        Self {
            patch_embedding,
            position_embedding,
            blocks: PackedBlocks::new(b, &c.tower),
            post_layernorm: LayerNorm::new(b, "post_layernorm", hidden),
            vit_merger: t.component("model.vision_tower.vit_merger", Component::Connector, || {
                WindowMerger::new(b, &c.tower)
            }),
            side: c.side,
            merges_after: c.merges.then_some(c.merges_after),
        }
    }

    /// Pixels [1, channels, side of a patch, side × patches] of images of `sizes`, [images, 2] → [1, patches, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, sizes: &Tensor) -> Tensor {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels, layout));
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens(t, sizes)));
        // Where nothing is merged, all blocks run in a call that has the embeddings as its argument.
        let argument = self.merges_after.is_none().then(|| embedded.clone());
        // The merged sizes are a variable of the tower's forward, which lives until that returns.
        let mut held = Vec::new();
        let (h, segments) = self
            .blocks
            .forward(t, run, embedded, (segments, None), |i, h, segments| {
                if self.merges_after != Some(i as u64) {
                    return h;
                }
                let merged = t.component("model.vision_tower.vit_merger", Component::Connector, || {
                    self.vit_merger.forward(t, run.attn, &h, layout, sizes)
                });
                drop(h);
                let sizes = t.compute(sizes, sizes.dtype(), "floor_divide");
                *segments = Rc::new(Segments::of_frames(&layout.reduced(2), cu_seqlens(t, &sizes)));
                held.push(sizes);
                merged
            });
        drop(argument);
        let out = self.post_layernorm.call(t, &h);
        drop((h, held, segments));
        out
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout) -> Tensor {
        let patches = run.embedded(t, self.patch_embedding.forward(t, pixels));
        let flat = t.view(&patches, [1, patches.size(1), patches.size(3)]);
        let embedded = t.transpose(&flat, 1, 2);
        drop((patches, flat));
        let places = self.position_ids(t, layout);
        let positions = self.position_embedding.call(t, &places);
        t.add(&embedded, &t.unsqueeze(&positions, 0))
    }

    /// `get_vision_nearest_position_ids`: index of each patch among the learned positions, [patches].
    fn position_ids(&self, t: &Tape, layout: &Layout) -> Tensor {
        let boundaries = t.empty([boundaries(self.side)], DType::F32, "boundaries");
        let mut parts = Vec::with_capacity(layout.images().len());
        // `h_coords`, `w_coords`, `bucket_h` and `bucket_w`: Python's variables outlive an iteration, so each of these is
        // freed only when the next image's takes its place.
        let mut variables: [Option<Tensor>; 4] = [None, None, None, None];
        for image in layout.images() {
            let sides = [image.rows, image.columns];
            for (variable, side) in variables[..2].iter_mut().zip(sides) {
                let arange = ids(t, &[side], "arange");
                let coordinates = t.empty([side], DType::F32, "coordinates");
                drop(arange);
                *variable = Some(coordinates);
            }
            for (variable, side) in variables[2..].iter_mut().zip(sides) {
                *variable = Some(ids(t, &[side], "bucketize"));
            }
            let scaled = ids(t, &[image.rows, 1], "mul by a number");
            parts.push(ids(t, &sides, "positions of an image"));
            drop(scaled);
        }
        let all = ids(t, &[layout.patches()], "positions of patches");
        drop((boundaries, parts, variables));
        all
    }
}

/// Bounds of the images, [images + 1] in int32, from their `sizes`, [images, 2].
pub fn cu_seqlens(t: &Tape, sizes: &Tensor) -> Tensor {
    let images = sizes.size(0);
    let ends = {
        let areas = t.empty([images], sizes.dtype(), "mul");
        let ends = t.cumsum_ids(&areas, DType::I32);
        drop(areas);
        ends
    };
    let padded = t.empty([images + 1], DType::I32, "cu_seqlens");
    drop(ends);
    padded
}

/// `len(torch.arange(1 / side, 1.0, 1 / side))`, computed in floating point as PyTorch does: for some sides rounding adds one.
fn boundaries(side: u64) -> u64 {
    let step = 1.0 / side as f64;
    ((1.0 - step) / step).ceil() as u64
}
