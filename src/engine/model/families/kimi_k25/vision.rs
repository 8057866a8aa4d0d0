//! Kimi-K2.5's vision tower (`transformers/models/kimi_k25/modeling_kimi_k25.py`).

use std::rc::Rc;

use super::config::KimiVisionConfig;
use super::positions::Positions;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    Layout, PlainMlp, Segments, VisionAttention, VisionBlock, VisionBlocks, VisionRotary, cu_seqlens_of_images,
    position_ids,
};
use crate::nn::{Builder, LayerNorm, ids};
use crate::tape::{Tape, Tensor};

/// `Kimi_K25VisionModel`.
pub struct Vision {
    /// Weight and bias of the convolution whose kernel is one patch.
    proj: [Tensor; 2],
    positions: Positions,
    rotary_emb: VisionRotary,
    layers: VisionBlocks<LayerNorm, PlainMlp>,
    final_layernorm: LayerNorm,
}

impl Vision {
    pub fn new(b: &Builder, c: &KimiVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let (proj, positions) = t.scope("patch_embed", || {
            let proj = t.scope("proj", || {
                let weight = b.weight("weight", [c.width, p.channels, p.patch, p.patch]);
                [weight, b.weight("bias", [c.width])]
            });
            let positions = t.scope("pos_emb", || Positions::new(b, c.side, c.frames, c.width));
            (proj, positions)
        });
        let tower = Self {
            proj,
            positions,
            rotary_emb: VisionRotary::named(b, "rotary_emb", c.width / p.heads, true),
            layers: VisionBlocks::named(b, "layers", p.layers, || VisionBlock {
                norm1: LayerNorm::new(b, "norm1", c.width),
                norm2: LayerNorm::new(b, "norm2", c.width),
                attn: t.scope("attn", || VisionAttention::separate(b, c.width, p.heads)),
                mlp: t.scope("mlp", || PlainMlp::new(b, [c.width, c.intermediate], c.activation)),
            }),
            final_layernorm: LayerNorm::new(b, "final_layernorm", c.width),
        };
        tower.positions.initialised(t);
        tower.rotary_emb.initialised(t);
        tower
    }

    /// Patches [patches, elements of a patch] → hidden states [patches, width], and those of patches that become one token,
    /// [tokens, patches of a token, width].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> [Tensor; 2] {
        let mut h = t.scope("patch_embed", || {
            let [weight, bias] = &self.proj;
            let [_, c, rows, columns] = [0, 1, 2, 3].map(|i| weight.size(i));
            let patches = t.view(pixels, [pixels.size(0), c, rows, columns]);
            let out = t.scope("proj", || t.conv_patches(&patches, weight, Some(bias)));
            let out = t.view(&out, [pixels.size(0), weight.size(0)]);
            t.scope("pos_emb", || self.positions.added(t, &out, layout, grid))
        });
        let mut unmerged = layout.clone();
        unmerged.merge = 1;
        let position_ids = position_ids(t, &unmerged);
        let positions = Rc::new(self.rotary_emb.call(t, &position_ids));
        let bounds = cu_seqlens_of_images(t, layout);
        let lengths = layout.images().iter().map(|image| image.patches()).collect();
        let segments = Rc::new(Segments::new(lengths, bounds));
        let each = |_| segments.clone();
        h = self
            .layers
            .forward(t, run, h, &positions, each, (&[], |_: &Tape, _, _: &Tensor| ()));
        let last = self.final_layernorm.call(t, &h);
        drop(h);
        let merge_index = merge_index(t, layout);
        let merged = t.mean(&t.index_broadcast(&last, &[merge_index]), 1);
        drop((position_ids, positions, segments));
        [last, merged]
    }
}

/// `get_vision_temporal_merge_index` of images: the patches of each token, [tokens, 1, patches of a token].
fn merge_index(t: &Tape, layout: &Layout) -> Tensor {
    let m = layout.merge;
    let mut rows = Vec::new();
    let mut _base = None;
    for image in layout.images() {
        let [down, across] = [image.rows / m, image.columns / m];
        let arange = t.view(&ids(t, &[image.patches()], "arange"), [1, down, m, across, m]);
        _base = Some(arange.clone());
        let transposed = t.permute(&arange, &[1, 3, 0, 2, 4]);
        drop(arange);
        let of_image = t.reshape(&transposed, [down * across, 1, m * m]);
        _base = Some(of_image.clone());
        rows.push(of_image);
    }
    ids(t, &[layout.patches() / (m * m), 1, m * m], "cat")
}
