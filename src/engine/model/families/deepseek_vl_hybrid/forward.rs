//! DeepSeek-VL with two towers (`transformers/models/deepseek_vl_hybrid/modeling_deepseek_vl_hybrid.py`).

use super::config::DeepseekVlHybridConfig;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::sam_vision::{Neck, SamVision};
use crate::model::parts::siglip_vision::SiglipVision;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

const SAM: &str = "model.high_res_vision_model.vision_encoder";
const SIGLIP: &str = "model.vision_model";

/// `DeepseekVLHybridForConditionalGeneration`.
pub struct DeepseekVlHybrid<T> {
    high_res: HighRes,
    vision_model: SiglipVision,
    aligner: [Linear; 3],
    text: ImageText<T>,
    grids: [PatchGrid; 2],
}

/// SAM's tower, and what follows it.
struct HighRes {
    tower: SamVision,
    neck: Neck,
    proj: [Tensor; 2],
    alpha: Tensor,
    /// Block whose output is added to that of the tower.
    global_attn_index: usize,
    /// Patches a side of SigLIP's tower.
    side: u64,
}

/// Names of the aligner's linear layers.
const ALIGNER: [&str; 3] = ["vision_proj", "high_res_vision_proj", "proj"];

impl<T: Text> DeepseekVlHybrid<T> {
    pub fn new(b: &Builder, c: &DeepseekVlHybridConfig) -> Self {
        let t = b.tape();
        let high_res = HighRes::new(b, c);
        let vision_model = t.component(SIGLIP, Component::VisionTower, || SiglipVision::new(b, &c.vision));
        let (half, out) = (c.text.hidden / 2, c.text.hidden);
        let widths = [
            (c.vision.shape.hidden, half),
            (4 * c.high_res.output_channels, half),
            (out, out),
        ];
        let aligner = t.component("model.aligner", Component::Connector, || {
            [0, 1, 2].map(|i| Linear::new(b, ALIGNER[i], widths[i].0, widths[i].1, true))
        });
        Self {
            high_res,
            vision_model,
            aligner,
            text: ImageText::new(b, &c.text).looking_up(c.image_token, c.text.vocab),
            grids: [c.vision.grid, c.high_res.grid],
        }
    }

    /// `get_image_features`: pixels in both resolutions → [images, patches, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: [&Tensor; 2]) -> Tensor {
        let (last, _pooled) = t.component(SIGLIP, Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels[0])
        });
        let (of_high_res, _hidden_states) = self.high_res.forward(t, run, pixels[1]);
        t.component("model.aligner", Component::Connector, || {
            self.align(t, [&last, &of_high_res])
        })
    }

    fn align(&self, t: &Tape, [last, of_high_res]: [&Tensor; 2]) -> Tensor {
        let linear = |i: usize, x: &Tensor| self.aligner[i].call(t, x);
        let of_low = linear(0, last);
        let of_high = linear(1, of_high_res);
        let mut x = t.cat(&[&of_high, &of_low], 2);
        x = nn::activate(t, Activation::Gelu, x);
        linear(2, &x)
    }
}

impl<T: Text> Forward for DeepseekVlHybrid<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let images = run.images();
        let [low, high] = self.grids.map(|g| [images, g.channels, g.image, g.image]);
        let batch = Batch::of_text(t, run);
        match images {
            0 => batch,
            _ => batch.with_high_res_pixels(t, run, &high).with_pixels(t, run, &low),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss_with_early_mask(t, run, batch, |low| {
            let Some(high) = &batch.high_res_pixels else {
                unreachable!("a batch has pixels in both resolutions")
            };
            let embeds = self.image_features(t, run, [low, high]);
            let all = t.reshape(&embeds, [embeds.size(0) * embeds.size(1), embeds.last()]);
            Features::Shown(all, embeds)
        })
    }
}

impl HighRes {
    fn new(b: &Builder, c: &DeepseekVlHybridConfig) -> Self {
        let (t, channels) = (b.tape(), c.high_res.output_channels);
        let tower = t.component(SAM, Component::VisionTower, || SamVision::new(b, &c.high_res));
        t.component("model", Component::Connector, || Self {
            tower,
            neck: t.scope("high_res_vision_neck", || Neck::new(b, &c.high_res)),
            proj: t.scope("high_res_vision_proj", || {
                [
                    b.weight("conv1.weight", [2 * channels, channels, 3, 3]),
                    b.weight("conv2.weight", [4 * channels, 2 * channels, 3, 3]),
                ]
            }),
            alpha: b.weight("high_res_vision_alpha", [1]),
            global_attn_index: c.global_attn_index,
            side: c.vision.grid.side(),
        })
    }

    /// `get_high_res_image_features`: pixels → [images, patches of SigLIP's tower, channels], and the tower's hidden states,
    /// which its output holds.
    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Vec<Tensor>) {
        let mut hidden_states = Vec::new();
        let tower = t.component(SAM, Component::VisionTower, || {
            self.tower
                .forward(t, run, run.attn, pixels, |h| hidden_states.push(h.clone()))
        });
        let out = t.component("model", Component::Connector, || {
            let last = self.project(t, &tower);
            let mut global = self.neck.call(t, &hidden_states[self.global_attn_index + 1]);
            global = self.project(t, &global);
            let out = t.add(&last, &t.mul(&global, &self.alpha));
            let out = t.permute(&out, &[0, 2, 3, 1]);
            t.reshape(&out, [out.size(0), out.size(1) * out.size(2), out.last()])
        });
        drop(tower);
        (out, hidden_states)
    }

    /// `DeepseekVLSamVisionProj`: [images, channels, rows, columns] → [images, 4 × channels, side, side].
    fn project(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.scope("high_res_vision_proj", || {
            let mut h = t.interpolate_bilinear(x, [4 * self.side; 2]);
            h = t.scope("conv1", || t.conv2d(&h, &self.proj[0], [2, 1]));
            t.scope("conv2", || t.conv2d(&h, &self.proj[1], [2, 1]))
        })
    }
}
