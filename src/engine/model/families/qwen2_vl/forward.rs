//! Qwen2-VL (`transformers/models/qwen2_vl/modeling_qwen2_vl.py`).

use std::rc::Rc;

use super::config::{Qwen2VlConfig, Qwen2VlVisionConfig};
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    LayerPositions, Layout, Map, Merger, PatchEmbed, QwenVl, Segments, VisionAttention, VisionBlock, VisionBlocks,
    VisionIds, VisionOutput, VisionRotary, VisionTower,
};
use crate::nn::{self, Builder, LayerNorm, Linear, MropeLayout};
use crate::tape::{Component, Module, Tape, Tensor};

/// `Qwen2VLForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen2VlConfig) -> QwenVl<Qwen2Vision> {
    QwenVl::new(b, (c.vision.patches, &c.text), || Qwen2Vision::new(b, &c.vision))
}

/// `Qwen2VisionTransformerPretrainedModel`.
pub struct Qwen2Vision {
    patch_embed: PatchEmbed,
    rotary: VisionRotary,
    blocks: VisionBlocks<LayerNorm, Mlp>,
    merger: Merger<LayerNorm>,
}

struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl Qwen2Vision {
    fn new(b: &Builder, c: &Qwen2VlVisionConfig) -> Self {
        let p = &c.patches;
        let tower = Self {
            patch_embed: PatchEmbed::new(b, p, c.width, false),
            rotary: VisionRotary::new(b, c.width / p.heads),
            blocks: VisionBlocks::new(b, p.layers, || Self::block(b, c)),
            merger: b.tape().component("merger", Component::Connector, || {
                Merger::new(b, LayerNorm::new(b, "ln_q", c.width), p, [c.width, c.output])
            }),
        };
        tower.rotary.initialised(b.tape());
        tower
    }

    fn block(b: &Builder, c: &Qwen2VlVisionConfig) -> VisionBlock<LayerNorm, Mlp> {
        let t = b.tape();
        VisionBlock {
            norm1: LayerNorm::new(b, "norm1", c.width),
            norm2: LayerNorm::new(b, "norm2", c.width),
            attn: t.scope("attn", || VisionAttention::new(b, c.width, c.patches.heads)),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                fc1: Linear::new(b, "fc1", c.width, c.intermediate, true),
                fc2: Linear::new(b, "fc2", c.intermediate, c.width, true),
                activation: c.activation,
            }),
        }
    }
}

impl VisionTower for Qwen2Vision {
    const MROPE: MropeLayout = MropeLayout::Sections;
    const OUTPUT_IS_KEPT: bool = false;
    const LAYERS_GET: LayerPositions = LayerPositions::Never;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, layout, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let embedded = run.embedded(t, self.patch_embed.call(t, pixels));
        let positions = Rc::new(self.rotary.call(t, &position_ids));
        let each = |_| segments.clone();
        let last = self
            .blocks
            .forward(t, run, embedded, &positions, each, (&[], |_: &Tape, _, _: &Tensor| ()));
        let merged = t.component("merger", Component::Connector, || self.merger.forward(t, &last));
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}

impl Map for Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.fc2.call(t, &h)
        })
    }
}
