//! ERNIE 4.5 VL's vision tower and resampler (`transformers/models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py`).

use std::cell::OnceCell;
use std::rc::Rc;

use super::config::{Ernie45VlConfig, ErnieVisionConfig};
use super::experts::Marked;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{
    LayerPositions, Layout, Map, Segments, VisionAttention, VisionBlock, VisionBlocks, VisionIds, VisionOutput,
    VisionRotary, VisionTower,
};
use crate::nn::{self, Builder, LayerNorm, Linear, MropeLayout, RmsNorm, ids};
use crate::tape::{Component, Module, Tape, Tensor};

/// The tower and the resampler, which are made after the language model.
pub struct ErnieVision {
    pub parts: Rc<OnceCell<(Tower, Resampler)>>,
    pub marked: Marked,
}

/// `Ernie4_5_VLMoeVisionTransformerPretrainedModel`.
pub struct Tower {
    patch_embed: Linear,
    dtype: DType,
    rotary: VisionRotary,
    blocks: VisionBlocks<LayerNorm, Mlp>,
    ln: LayerNorm,
}

/// `Ernie4_5VLVisionMLP`.
struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

/// `Ernie4_5_VLMoeVariableResolutionResamplerModel`.
pub struct Resampler {
    spatial_linear: Joined,
    temporal_linear: Joined,
    mlp: Linear,
    after_norm: RmsNorm,
    width: u64,
}

/// `Ernie4_5_VLMoeVisionMLP`.
struct Joined {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    ln: LayerNorm,
}

impl Tower {
    pub fn new(b: &Builder, c: &ErnieVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let tower = Self {
            patch_embed: t.scope("patch_embed", || {
                Linear::new(b, "proj", p.patch_elements(), c.width, false)
            }),
            dtype: b.dtype(),
            rotary: VisionRotary::new(b, c.width / p.heads),
            blocks: VisionBlocks::new(b, p.layers, || VisionBlock {
                norm1: LayerNorm::new(b, "norm1", c.width),
                norm2: LayerNorm::new(b, "norm2", c.width),
                attn: t.scope("attn", || VisionAttention::new(b, c.width, p.heads)),
                mlp: t.scope("mlp", || Mlp {
                    module: b.module(),
                    fc1: Linear::new(b, "fc1", c.width, c.intermediate, true),
                    fc2: Linear::new(b, "fc2", c.intermediate, c.width, true),
                    activation: c.activation,
                }),
            }),
            ln: LayerNorm::new(b, "ln", c.width),
        };
        tower.rotary.initialised(t);
        tower
    }

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let VisionIds {
            position_ids,
            cu_seqlens,
        } = VisionIds::new(t, layout, grid);
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens));
        let embedded = t.scope("patch_embed", || {
            let pixels = t.to_dtype(pixels, self.dtype);
            self.patch_embed.call(t, &pixels)
        });
        let embedded = run.embedded(t, embedded);
        let positions = Rc::new(self.rotary.call(t, &position_ids));
        let each = |_| segments.clone();
        let last = self
            .blocks
            .forward(t, run, embedded, &positions, each, (&[], |_: &Tape, _, _: &Tensor| ()));
        self.ln.call(t, &last)
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

impl Joined {
    fn new(b: &Builder, [from, to]: [u64; 2]) -> Self {
        Self {
            module: b.module(),
            fc1: Linear::new(b, "fc1", from, to, true),
            fc2: Linear::new(b, "fc2", to, to, true),
            ln: LayerNorm::new(b, "ln", to),
        }
    }

    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, &x);
            h = nn::activate(t, Activation::Gelu, h);
            h = self.fc2.call(t, &h);
            self.ln.call(t, &h)
        })
    }
}

impl Resampler {
    pub fn new(b: &Builder, c: &Ernie45VlConfig) -> Self {
        let t = b.tape();
        let width = c.vision.width * c.vision.patches.merged();
        Self {
            spatial_linear: t.scope("spatial_linear", || Joined::new(b, [width, width])),
            temporal_linear: t.scope("temporal_linear", || Joined::new(b, [2 * width, width])),
            mlp: Linear::new(b, "mlp", width, c.text.hidden, true),
            after_norm: RmsNorm::new(b, "after_norm", c.text.hidden),
            width,
        }
    }

    /// [patches, width] → [tokens, text width].
    fn forward(&self, t: &Tape, features: &Tensor, layout: &Layout) -> Tensor {
        let tokens = features.numel() / self.width;
        let mut h = t.view(features, [tokens, self.width]);
        h = self.spatial_linear.call(t, h);
        h = twice(t, &h, layout);
        h = self.temporal_linear.call(t, h);
        h = self.mlp.call(t, &h);
        self.after_norm.call(t, &h)
    }
}

/// `_temporal_slicing` of images, which have one frame: each token beside itself, [tokens, width] → [tokens, 2 × width].
fn twice(t: &Tape, x: &Tensor, layout: &Layout) -> Tensor {
    let images = layout.images().len() as u64;
    let divided = || {
        let product = ids(t, &[images], "prod");
        let quotient = ids(t, &[images], "floor_divide");
        drop(product);
        quotient
    };
    let _spatial = divided();
    let tokens = divided();
    drop(t.cumsum_ids(&tokens, DType::I64));
    let bound = || {
        let product = ids(t, &[], "mul");
        let sum = ids(t, &[], "add");
        drop(product);
        sum
    };
    for _ in 0..images {
        drop(t.empty([], DType::Bool, "comparison"));
        for _ in 0..2 {
            let start = bound();
            drop((bound(), start));
        }
    }
    let [first, second] = [0, 1].map(|_| ids(t, &[x.size(0)], "offsets"));
    let one = t.index_select(x, &first);
    let other = t.index_select(x, &second);
    t.cat(&[&one, &other], 1)
}

impl VisionTower for ErnieVision {
    const MROPE: MropeLayout = MropeLayout::Sections;
    const OUTPUT_IS_KEPT: bool = false;
    const MARKS_EXPERTS: bool = true;
    const LAYERS_GET: LayerPositions = LayerPositions::Always;

    fn forward_within(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let images = layout.images().iter();
        self.marked.set(images.map(|image| layout.tokens_of(image) + 2).sum());
        self.forward(t, run, pixels, layout, grid)
    }

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let Some((tower, resampler)) = self.parts.get() else {
            unreachable!("the tower is made with the model")
        };
        let last = t.component("model.vision_tower", Component::VisionTower, || {
            tower.forward(t, run, pixels, layout, grid)
        });
        let merged = t.component("model.resampler_model", Component::Connector, || {
            resampler.forward(t, &last, layout)
        });
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}
