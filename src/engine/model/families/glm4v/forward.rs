//! GLM-4V, GLM-4.5V and GLM-OCR (`transformers/models/{glm4v,glm4v_moe,glm_ocr}/modeling_*.py`).

use std::rc::Rc;

use super::config::{Glm4vConfig, Glm4vVisionConfig};
use super::positions::LearnedPositions;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    GatedMlp, LayerPositions, Layout, PatchEmbed, QwenVl, Segments, VisionAttention, VisionBlock, VisionBlocks,
    VisionIds, VisionOutput, VisionRotary, VisionTower,
};
use crate::nn::{self, Builder, LayerNorm, Linear, MropeLayout, RmsNorm};
use crate::tape::{Component, Tape, Tensor};

/// `Glm4vForConditionalGeneration` and `GlmOcrForConditionalGeneration`.
pub fn model(b: &Builder, c: &Glm4vConfig) -> QwenVl<Glm4vVision> {
    QwenVl::new(b, (c.vision.patches, &c.text), || Glm4vVision::new(b, &c.vision))
}

/// `Glm4vMoeForConditionalGeneration`.
pub fn model_with_experts(b: &Builder, c: &Glm4vConfig) -> QwenVl<Glm4vVisionBesideExperts> {
    QwenVl::new(b, (c.vision.patches, &c.text), || {
        Glm4vVisionBesideExperts(Glm4vVision::new(b, &c.vision))
    })
}

/// `Glm4vMoeVisionModel`: GLM-4V's tower, beside a language model that passes positions to its layers.
pub struct Glm4vVisionBesideExperts(Glm4vVision);

impl VisionTower for Glm4vVisionBesideExperts {
    const MROPE: MropeLayout = Glm4vVision::MROPE;
    const OUTPUT_IS_KEPT: bool = Glm4vVision::OUTPUT_IS_KEPT;
    const LAYERS_GET: LayerPositions = LayerPositions::Always;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        self.0.forward(t, run, pixels, layout, grid)
    }
}

/// `Glm4vVisionModel` and `GlmOcrVisionModel`.
pub struct Glm4vVision {
    /// Learned positions (GLM-4V).
    embeddings: Option<LearnedPositions>,
    patch_embed: PatchEmbed,
    rotary: VisionRotary,
    blocks: VisionBlocks<RmsNorm, GatedMlp>,
    merger: Merger,
    /// Norm of patches before positions are added (GLM-4V).
    post_conv_layernorm: Option<RmsNorm>,
    /// Weight of the convolution that joins patches, [output, width, merge, merge], and its bias.
    downsample: [Tensor; 2],
    post_layernorm: RmsNorm,
}

/// `Glm4vVisionPatchMerger`.
struct Merger {
    proj: Linear,
    post_projection_norm: LayerNorm,
    mlp: GatedMlp,
}

impl Glm4vVision {
    fn new(b: &Builder, c: &Glm4vVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let is_ocr = c.side.is_none();
        let tower = Self {
            embeddings: c
                .side
                .map(|side| t.scope("embeddings", || LearnedPositions::new(b, side, c.width))),
            patch_embed: PatchEmbed::new(b, p, c.width, true),
            rotary: VisionRotary::new(b, c.width / p.heads),
            blocks: VisionBlocks::new(b, p.layers, || VisionBlock {
                norm1: RmsNorm::new(b, "norm1", c.width),
                norm2: RmsNorm::new(b, "norm2", c.width),
                attn: t.scope("attn", || match is_ocr {
                    true => VisionAttention::with_norms(b, c.width, p.heads, c.bias),
                    false => VisionAttention::with_biases(b, c.width, p.heads, [c.bias, false]),
                }),
                mlp: t.scope("mlp", || {
                    GatedMlp::new(b, [c.width, c.intermediate], is_ocr && c.bias, c.activation)
                }),
            }),
            merger: t.component("merger", Component::Connector, || Merger {
                proj: Linear::new(b, "proj", c.output, c.output, false),
                post_projection_norm: LayerNorm::new(b, "post_projection_norm", c.output),
                mlp: GatedMlp::new(b, [c.output, c.merger], false, c.activation),
            }),
            post_conv_layernorm: c.side.map(|_| RmsNorm::new(b, "post_conv_layernorm", c.width)),
            downsample: t.scope("downsample", || {
                let weight = b.weight("weight", [c.output, c.width, p.merge, p.merge]);
                [weight, b.weight("bias", [c.output])]
            }),
            post_layernorm: RmsNorm::new(b, "post_layernorm", c.width),
        };
        tower.rotary.initialised(t);
        tower
    }

    /// Joins neighbouring patches, [patches, width] → [tokens, output].
    fn join(&self, t: &Tape, h: &Tensor, merge: u64) -> Tensor {
        let [weight, bias] = &self.downsample;
        let tokens = h.size(0) / (merge * merge);
        let squares = t.view(h, [tokens, merge, merge, h.size(1)]);
        let planes = t.permute(&squares, &[0, 3, 1, 2]);
        let joined = t.scope("downsample", || t.conv_channels_last(&planes, weight, bias));
        t.view(&joined, [tokens, weight.size(0)])
    }
}

impl VisionTower for Glm4vVision {
    const MROPE: MropeLayout = MropeLayout::Sections;
    const OUTPUT_IS_KEPT: bool = false;
    const LAYERS_GET: LayerPositions = LayerPositions::Never;

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, layout, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let mut h = self.patch_embed.call(t, pixels);
        if let Some(norm) = &self.post_conv_layernorm {
            h = norm.call(t, &h);
        }
        let positions = Rc::new(self.rotary.call(t, &position_ids));
        let mut _lengths = None;
        if let Some(learned) = &self.embeddings {
            let lengths = t.empty([layout.images().len() as u64], DType::I32, "lengths of segments");
            h = t.scope("embeddings", || learned.added(t, &h, &lengths));
            _lengths = Some(lengths);
        }
        let each = |_| segments.clone();
        let mut last = self
            .blocks
            .forward(t, run, h, &positions, each, (&[], |_: &Tape, _, _: &Tensor| ()));
        last = self.post_layernorm.call(t, &last);
        last = self.join(t, &last, layout.merge);
        let merged = t.component("merger", Component::Connector, || self.merger.forward(t, &last));
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}

impl Merger {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = self.proj.call(t, x);
        h = {
            let normed = self.post_projection_norm.call(t, &h);
            nn::activate(t, Activation::Gelu, normed)
        };
        self.mlp.forward(t, &h)
    }
}
