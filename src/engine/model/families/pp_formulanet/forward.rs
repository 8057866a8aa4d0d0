//! PP-FormulaNet (`transformers/models/pp_formulanet/modeling_pp_formulanet.py`).

use super::config::PpFormulaNetConfig;
use super::decoder::Decoder;
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::sam_vision::SamVision;
use crate::nn::{self, Builder, Linear};
use crate::setup::Attention;
use crate::tape::{Component, Tape, Tensor};

const ENCODER: &str = "model.encoder";
const PROJECTOR: &str = "model.encoder.multi_modal_projector";
const DECODER: &str = "model.decoder";

/// `PPFormulaNetForConditionalGeneration`.
pub struct PpFormulaNet {
    decoder: Decoder,
    encoder: SamVision,
    projector: Projector,
    lm_head: Linear,
    grid: PatchGrid,
}

impl PpFormulaNet {
    pub fn new(b: &Builder, c: &PpFormulaNetConfig) -> Self {
        let (t, hidden) = (b.tape(), c.text.block.hidden);
        Self {
            decoder: t.component(DECODER, Component::LanguageModel, || Decoder::new(b, &c.text)),
            encoder: t.component(ENCODER, Component::VisionTower, || SamVision::new(b, &c.vision)),
            projector: t.component(PROJECTOR, Component::Connector, || {
                Projector::new(b, [c.vision.output_channels, c.channels[0], c.channels[1], hidden])
            }),
            lm_head: t.component("", Component::Head, || {
                Linear::new(b, "lm_head", hidden, c.text.vocab, false)
            }),
            grid: c.vision.grid,
        }
    }

    /// `PPFormulaNetVisionModel`: pixels [images, channels, side, side] → the tower's output, and features [images, positions,
    /// hidden]. The tower has eager attention only.
    fn encode(&self, t: &Tape, run: &Run, pixels: &Tensor) -> [Tensor; 2] {
        let last = t.component(ENCODER, Component::VisionTower, || {
            self.encoder.forward(t, run, Attention::Eager, pixels, |_| {})
        });
        let features = t.component(PROJECTOR, Component::Connector, || self.projector.forward(t, &last));
        [last, features]
    }
}

/// `PPFormulaNetMultiModalProjector`.
struct Projector {
    conv1: Tensor,
    conv2: Tensor,
    linear_1: Linear,
    linear_2: Linear,
}

impl Projector {
    fn new(b: &Builder, [input, inner, output, hidden]: [u64; 4]) -> Self {
        Self {
            conv1: b.weight("conv1.weight", [inner, input, 3, 3]),
            conv2: b.weight("conv2.weight", [output, inner, 3, 3]),
            linear_1: Linear::new(b, "linear_1", output, output, true),
            linear_2: Linear::new(b, "linear_2", output, hidden, true),
        }
    }

    /// [images, channels, rows, columns] → [images, positions, hidden].
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("conv1", || t.conv2d(x, &self.conv1, [2, 1]));
        h = t.scope("conv2", || t.conv2d(&h, &self.conv2, [2, 1]));
        h = t.view(&h, [h.size(0), h.size(1), h.size(2) * h.size(3)]);
        h = t.transpose(&h, 1, 2);
        h = self.linear_1.call(t, &h);
        self.linear_2.call(t, &h)
    }
}

/// `shift_tokens_right`: the ids that the decoder reads, whose first is each sample's last.
fn shifted_ids(t: &Tape, ids: &Tensor) -> Tensor {
    let shifted = t.compute(ids, DType::I64, "clone");
    drop(t.compute(&shifted, DType::Bool, "ids = -100"));
    let last = {
        let counts = {
            let real = t.compute(&shifted, DType::Bool, "ids that are no padding");
            t.count(&real, &[1])
        };
        t.compute(&counts, DType::I64, "index of the last")
    };
    let first = t.compute(&last, DType::I64, "gather");
    let [batch, seq] = [ids.size(0), ids.size(1)];
    drop(nn::ids(t, &[batch, seq - 1], "clone"));
    drop((last, first));
    shifted
}

impl Forward for PpFormulaNet {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        Batch::of_text(t, run).with_pixels(t, run, &[run.setup.batch, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let ids = t.component("model", Component::LanguageModel, || shifted_ids(t, ids));
        let [last, features] = self.encode(t, run, pixels);
        let h = t.component(DECODER, Component::LanguageModel, || {
            self.decoder.forward(t, run, &ids, &features)
        });
        drop((ids, features));
        t.component("", Component::Head, || {
            let Some(labels) = &batch.labels else {
                return Output {
                    loss: self.lm_head.call(t, &t.slice(&h, 1, 1)),
                    held: vec![last],
                };
            };
            let logits = self.lm_head.call(t, &h);
            let loss = t.scope("loss", || nn::aligned_lm_loss(t, &logits, labels));
            drop(h);
            Output {
                loss,
                held: vec![logits, last],
            }
        })
    }
}
