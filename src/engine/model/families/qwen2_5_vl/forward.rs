//! Qwen2.5-VL (`transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py`).

use std::rc::Rc;

use super::config::{Qwen25VlConfig, Qwen25VlVisionConfig};
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    GatedMlp, LayerPositions, Layout, Merger, PatchEmbed, Positions, QwenVl, Segments, VisionAttention, VisionBlock,
    VisionBlocks, VisionIds, VisionOutput, VisionRotary, VisionTower, windows,
};
use crate::nn::{Builder, MropeLayout, RmsNorm};
use crate::tape::{Component, Tape, Tensor};

/// `Qwen2_5_VLForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen25VlConfig) -> QwenVl<Qwen25Vision> {
    QwenVl::new(b, (c.vision.patches, &c.text), || Qwen25Vision::new(b, &c.vision))
}

/// `Qwen2_5_VisionTransformerPretrainedModel`.
pub struct Qwen25Vision {
    patch_embed: PatchEmbed,
    rotary: VisionRotary,
    blocks: VisionBlocks<RmsNorm, GatedMlp>,
    merger: Merger<RmsNorm>,
    window_tokens: u64,
    /// For each block, true if it sees whole frames instead of windows.
    sees_frames: Vec<bool>,
}

impl Qwen25Vision {
    /// Makes the parameters.
    pub fn new(b: &Builder, c: &Qwen25VlVisionConfig) -> Self {
        let p = &c.patches;
        let tower = Self {
            patch_embed: PatchEmbed::new(b, p, c.width, false),
            rotary: VisionRotary::new(b, c.width / p.heads),
            blocks: VisionBlocks::new(b, p.layers, || Self::block(b, c)),
            merger: b.tape().component("merger", Component::Connector, || {
                Merger::new(b, RmsNorm::new(b, "ln_q", c.width), p, [c.width, c.output])
            }),
            window_tokens: c.window_tokens(),
            sees_frames: (0..p.layers).map(|i| c.full_attention_layers.contains(&i)).collect(),
        };
        tower.rotary.initialised(b.tape());
        tower
    }

    fn block(b: &Builder, c: &Qwen25VlVisionConfig) -> VisionBlock<RmsNorm, GatedMlp> {
        let t = b.tape();
        VisionBlock {
            norm1: RmsNorm::new(b, "norm1", c.width),
            norm2: RmsNorm::new(b, "norm2", c.width),
            attn: t.scope("attn", || match c.shared_heads {
                Some(shared) => VisionAttention::grouped(b, c.width, c.patches.heads, shared),
                None if c.projects_apart => VisionAttention::apart(b, c.width, c.patches.heads),
                None => VisionAttention::new(b, c.width, c.patches.heads),
            }),
            mlp: t.scope("mlp", || {
                GatedMlp::new(b, [c.width, c.intermediate], true, c.activation)
            }),
        }
    }
}

impl VisionTower for Qwen25Vision {
    const MROPE: MropeLayout = MropeLayout::Sections;
    const OUTPUT_IS_KEPT: bool = false;
    const LAYERS_GET: LayerPositions = LayerPositions::Never;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, layout, grid);
        let frames = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let windows = Rc::new(windows(t, layout, self.window_tokens));
        let mut h = run.embedded(t, self.patch_embed.call(t, pixels));
        h = by_windows(t, &h, layout);
        let positions = {
            let Positions { cos, sin } = self.rotary.call(t, &position_ids);
            Rc::new(Positions {
                cos: by_windows(t, &cos, layout),
                sin: by_windows(t, &sin, layout),
            })
        };
        let segments = |i: usize| {
            if self.sees_frames[i] {
                frames.clone()
            } else {
                windows.clone()
            }
        };
        let last = self
            .blocks
            .forward(t, run, h, &positions, segments, (&[], |_: &Tape, _, _: &Tensor| ()));
        let merged = {
            let by_window = t.component("merger", Component::Connector, || self.merger.forward(t, &last));
            t.index_from_host(&by_window, [by_window.size(0)])
        };
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}

/// `permute_input_for_window_attn`: reorders [patches, width] by windows, token by token.
fn by_windows(t: &Tape, x: &Tensor, layout: &Layout) -> Tensor {
    let unit = layout.merge * layout.merge;
    let tokens = t.reshape(x, [x.size(0) / unit, unit, x.size(1)]);
    let ordered = t.index_from_host(&tokens, [tokens.size(0)]);
    t.reshape(&ordered, *x.shape())
}
