//! Pix2Struct (`transformers/models/pix2struct/modeling_pix2struct.py`).

use super::config::Pix2StructConfig;
use super::decoder::{Decoder, shifted_right};
use super::encoder::Encoder;
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder};
use crate::tape::{Component, Kind, Tape};

/// Patches of an image: the processor scales it to make as many as fit into this number, and pads what is missing
/// (`max_patches` of `Pix2StructImageProcessor`). Images are taken to fill them.
const PATCHES: u64 = 2048;

/// `Pix2StructForConditionalGeneration`.
pub struct Pix2Struct {
    encoder: Encoder,
    decoder: Decoder,
    /// Elements of a patch.
    patch: u64,
}

impl Pix2Struct {
    pub fn new(b: &Builder, c: &Pix2StructConfig) -> Self {
        let t = b.tape();
        Self {
            encoder: t.component("encoder", Component::VisionTower, || Encoder::new(b, &c.vision)),
            decoder: t.component("decoder", Component::LanguageModel, || Decoder::new(b, &c.text)),
            patch: c.vision.patch,
        }
    }
}

impl Forward for Pix2Struct {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [batch, seq] = [run.setup.batch, run.setup.seq];
        let shape = [batch, PATCHES, 2 + self.patch];
        let mut made = Batch {
            loss: run.setup.loss,
            ..Batch::default()
        }
        .with_pixels(t, run, &shape);
        made.others = vec![t.as_kind(Kind::Input, || t.empty([batch, PATCHES], DType::F32, "attention_mask"))];
        made.labels = Some(t.as_kind(Kind::Input, || nn::ids(t, &[batch, seq], "labels")));
        made
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(patches), Some(labels)) = (&batch.pixels, &batch.labels) else {
            unreachable!("a batch has pixels and labels")
        };
        let features = t.component("encoder", Component::VisionTower, || {
            self.encoder.forward(t, run, patches)
        });
        let [ids, mask] = t.component("", Component::LanguageModel, || shifted_right(t, labels));
        let (logits, loss) = t.component("decoder", Component::LanguageModel, || {
            self.decoder.forward(t, run, (&ids, Some(labels)), &features)
        });
        drop((ids, mask));
        match loss {
            Some(loss) => Output {
                loss,
                held: vec![logits, features],
            },
            None => Output {
                loss: logits,
                held: vec![features],
            },
        }
    }
}
