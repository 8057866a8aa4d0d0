//! VideoLLaMA 3's vision tower (`transformers/models/video_llama_3/modeling_video_llama_3.py`).

use std::rc::Rc;

use crate::model::forward::Run;
use crate::model::parts::packed_vision::{PackedBlocks, PackedVisionConfig, PatchConv};
use crate::model::parts::qwen_vl::{Layout, Segments, VisionIds, VisionRotary};
use crate::nn::{Builder, LayerNorm, ids};
use crate::tape::{Tape, Tensor};

/// `VideoLlama3VisionModel`.
pub struct Vision {
    rotary_pos_emb: VisionRotary,
    patch_embedding: PatchConv,
    blocks: PackedBlocks,
    post_layernorm: LayerNorm,
}

impl Vision {
    pub fn new(b: &Builder, c: &PackedVisionConfig) -> Self {
        let tower = Self {
            rotary_pos_emb: VisionRotary::new(b, c.shape.head_dim()),
            patch_embedding: b.tape().scope("embeddings", || {
                PatchConv::new(b, c.patches.channels, c.patches.patch, c.shape.hidden)
            }),
            blocks: PackedBlocks::new(b, c),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.shape.hidden),
        };
        tower.rotary_pos_emb.initialised(b.tape());
        tower
    }

    /// Patches [patches, elements of a patch] → [patches, width].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::of_given_merge_sizes(t, layout, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let embedded = t.scope("embeddings", || {
            let patches = run.embedded(t, self.patch_embedding.of_patches(t, pixels));
            t.view(&patches, [patches.size(0), patches.size(1)])
        });
        let positions = Rc::new(self.rotary_pos_emb.call(t, &position_ids));
        let shared = (segments, Some(positions.clone()));
        let (h, segments) = self.blocks.forward(t, run, embedded.clone(), shared, |_, h, _| h);
        let last = self.post_layernorm.call(t, &h);
        let out = pixel_unshuffle(t, &last, layout);
        drop((h, embedded, positions, position_ids, segments));
        out
    }
}

/// `pixel_unshuffle`: resizes each image by its merge size, which for images is 1.
fn pixel_unshuffle(t: &Tape, x: &Tensor, layout: &Layout) -> Tensor {
    let (width, m) = (x.last(), layout.merge);
    drop(ids(t, &[layout.images().len() as u64], "prod"));
    let lengths: Vec<u64> = layout.images().iter().map(|image| image.patches()).collect();
    let parts = t.split(x, 0, &lengths);
    let sides = || [(); 2].map(|()| ids(t, &[], "floor_divide"));
    let mut outputs = Vec::with_capacity(parts.len());
    for (image, part) in layout.images().iter().zip(&parts) {
        let [frames, rows, columns] = [image.frames, image.rows, image.columns];
        let mut h = {
            let _sides = sides();
            let blocks = t.view(part, [frames, rows / m, columns / m, m, m, width]);
            t.permute(&blocks, &[0, 1, 3, 2, 4, 5])
        };
        h = t.reshape(&h, [frames, rows, columns, width]);
        h = t.permute(&h, &[0, 3, 1, 2]);
        h = {
            let _sides = sides();
            t.interpolate_bilinear(&h, [rows / m, columns / m])
        };
        let flat = [frames * (rows / m) * (columns / m), width];
        outputs.push(t.view(&t.permute(&h, &[0, 2, 3, 1]), flat));
    }
    t.cat(&outputs.iter().collect::<Vec<_>>(), 0)
}
