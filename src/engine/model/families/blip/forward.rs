//! BLIP for captions (`transformers/models/blip/modeling_blip.py`).

use super::block::{BlipTextEmbeddings, BlipTextEncoder, BlipTextForm};
use super::config::{BlipConfig, BlipTextConfig};
use crate::model::config::{Activation, PatchGrid};
use crate::model::families::blip2::Blip2Vision;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, LayerNorm, Linear, Pattern};
use crate::setup::Attention;
use crate::tape::{Component, Tape, Tensor};

/// `BlipForConditionalGeneration`.
pub struct Blip {
    vision_model: Blip2Vision,
    embeddings: BlipTextEmbeddings,
    blocks: BlipTextEncoder,
    cls: Head,
    grid: PatchGrid,
}

/// `BlipTextLMPredictionHead`.
struct Head {
    dense: Linear,
    activation: Activation,
    layer_norm: LayerNorm,
    decoder: Linear,
}

impl Blip {
    pub fn new(b: &Builder, c: &BlipConfig) -> Self {
        let t = b.tape();
        let vision_model = t.component("vision_model", Component::VisionTower, || {
            Blip2Vision::new(b, &c.vision)
        });
        let (embeddings, blocks) = t.component("text_decoder.bert", Component::LanguageModel, || {
            let form = BlipTextForm {
                crosses: true,
                returns_undropped: true,
            };
            (
                BlipTextEmbeddings::new(b, &c.text, "BLIP"),
                BlipTextEncoder::new(b, &c.text.blocks, form),
            )
        });
        let cls = t.component("text_decoder.cls.predictions", Component::Head, || {
            Head::new(b, &c.text, embeddings.table())
        });
        Self {
            vision_model,
            embeddings,
            blocks,
            cls,
            grid: c.vision.grid,
        }
    }
}

impl Forward for Blip {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        Batch::of_text(t, run).with_pixels(t, run, &[run.setup.batch, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let vision = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        let h = t.component("text_decoder.bert", Component::LanguageModel, || {
            let embeds = self.embeddings.forward(t, run, ids);
            let mask = nn::text_mask(t, Attention::Eager, &embeds, batch.positions.as_ref(), Pattern::Causal);
            self.blocks.forward(t, run, embeds, (mask, Some(vision.last.clone())))
        });
        t.component("text_decoder.cls.predictions", Component::Head, || {
            let Some(labels) = &batch.labels else {
                return Output {
                    loss: self.cls.forward(t, &t.slice(&h, 1, 1)),
                    held: Vec::new(),
                };
            };
            let logits = self.cls.forward(t, &h);
            let loss = t.scope("loss", || nn::shifted_lm_loss(t, &logits, labels, logits.dtype()));
            drop((h, vision.pooled));
            Output {
                loss,
                held: vec![logits, vision.last],
            }
        })
    }
}

impl Head {
    fn new(b: &Builder, c: &BlipTextConfig, table: &Tensor) -> Self {
        let t = b.tape();
        let hidden = c.blocks.shape.hidden;
        let bias = b.weight("bias", [c.vocab]);
        let (dense, layer_norm) = t.scope("transform", || {
            (
                Linear::new(b, "dense", hidden, hidden, true),
                LayerNorm::new(b, "LayerNorm", hidden),
            )
        });
        Self {
            dense,
            activation: c.blocks.activation,
            layer_norm,
            decoder: Linear::tied(b, "decoder", table).sharing_bias(&t.scope("decoder", || b.tied("bias", &bias))),
        }
    }

    fn forward(&self, t: &Tape, h: &Tensor) -> Tensor {
        let transformed = t.scope("transform", || {
            let mut h = self.dense.call(t, h);
            h = nn::activate(t, self.activation, h);
            self.layer_norm.call(t, &h)
        });
        self.decoder.call(t, &transformed)
    }
}
