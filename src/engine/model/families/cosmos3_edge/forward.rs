//! Cosmos 3 Edge (`transformers/models/cosmos3_edge/modeling_cosmos3_edge.py`).

use super::config::Cosmos3EdgeConfig;
use super::vision::Tower;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{LayerPositions, Layout, QwenVl, VisionOutput, VisionTower};
use crate::nn::{self, Builder, LayerNorm, Linear, MropeLayout};
use crate::tape::{Component, Tape, Tensor};

/// `Cosmos3EdgeForConditionalGeneration`.
pub fn model(b: &Builder, c: &Cosmos3EdgeConfig) -> QwenVl<Visual> {
    let t = b.tape();
    QwenVl::beside(b, (c.vision.patches, &c.text), || Visual {
        tower: t.component("model.visual", Component::VisionTower, || Tower::new(b, &c.vision)),
        projector: t.component("model.projector", Component::Connector, || Projector::new(b, c)),
    })
}

/// `Cosmos3EdgeModel.visual` and `projector`.
pub struct Visual {
    tower: Tower,
    projector: Projector,
}

/// `Cosmos3EdgePatchMerger`.
struct Projector {
    norm: LayerNorm,
    linear_fc1: Linear,
    linear_fc2: Linear,
    width: u64,
    merged: u64,
}

impl Projector {
    fn new(b: &Builder, c: &Cosmos3EdgeConfig) -> Self {
        let (width, merged) = (c.vision.width, c.vision.patches.merged());
        Self {
            norm: LayerNorm::new(b, "norm", width),
            linear_fc1: Linear::new(b, "linear_fc1", width * merged, c.projector, true),
            linear_fc2: Linear::new(b, "linear_fc2", c.projector, c.text.hidden, true),
            width,
            merged,
        }
    }

    /// [patches, width] → [tokens, text width].
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let tokens = x.size(0) / self.merged;
        let joined = {
            let grouped = t.reshape(x, [tokens, self.merged, self.width]);
            let normed = self.norm.call(t, &grouped);
            t.view(&normed, [tokens, self.merged * self.width])
        };
        let mut h = self.linear_fc1.call(t, &joined);
        h = nn::activate(t, Activation::Gelu, h);
        self.linear_fc2.call(t, &h)
    }
}

impl VisionTower for Visual {
    const MROPE: MropeLayout = MropeLayout::Interleaved;
    const OUTPUT_IS_KEPT: bool = false;
    const LAYERS_GET: LayerPositions = LayerPositions::Always;

    fn forward_within(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        self.forward(t, run, pixels, layout, grid)
    }

    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> VisionOutput {
        let last = t.component("model.visual", Component::VisionTower, || {
            self.tower.forward(t, run, pixels, layout, grid)
        });
        let merged = t.component("model.projector", Component::Connector, || {
            self.projector.forward(t, &last)
        });
        VisionOutput {
            last,
            merged,
            deepstack: Vec::new(),
        }
    }
}
