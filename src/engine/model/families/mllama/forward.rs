//! Llama-3.2-Vision (`transformers/models/mllama/modeling_mllama.py`).

use super::config::MllamaConfig;
use super::text::{ImageStates, MllamaText};
use super::vision::MllamaVision;
use crate::dtype::DType;
use crate::model::decoder::head::{last_logits, logits_and_loss};
use crate::model::forward::{Batch, Forward, Output, Run, cast_pixels};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Kind, Mask, Tape, Tensor};

/// `MllamaForConditionalGeneration`.
pub struct Mllama {
    vision_model: MllamaVision,
    language_model: MllamaText,
    multi_modal_projector: Linear,
    lm_head: Linear,
    /// Pixel values of one image: tiles, channels, and pixels a side.
    image: [u64; 4],
    /// Positions of one tile.
    positions: u64,
    dtype: DType,
}

impl Mllama {
    pub fn new(b: &Builder, c: &MllamaConfig) -> Self {
        let t = b.tape();
        let (vision, text) = (&c.vision, &c.text);
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            MllamaVision::new(b, vision)
        });
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            MllamaText::new(b, text)
        });
        let multi_modal_projector = t.component("model", Component::Connector, || {
            Linear::new(b, "multi_modal_projector", vision.output, text.decoder.hidden, true)
        });
        let lm_head = t.component("", Component::Head, || {
            Linear::new(b, "lm_head", text.decoder.hidden, text.decoder.vocab, false)
        });
        Self {
            vision_model,
            language_model,
            multi_modal_projector,
            lm_head,
            image: [
                vision.max_tiles,
                vision.grid.channels,
                vision.grid.image,
                vision.grid.image,
            ],
            positions: vision.grid.patches() + 1,
            dtype: b.dtype(),
        }
    }

    /// `_prepare_cross_attention_mask`, then its rows at the positions of the text: the bias [samples, 1, seq,
    /// features], and a mask of the rows for which any feature counts.
    fn cross_attention_mask(&self, t: &Tape, [samples, seq]: [u64; 2]) -> (Mask, Tensor) {
        let features = self.image[0] * self.positions;
        let shape = [samples, 1, seq, features];
        let repeated = t.empty(shape, DType::I64, "tile mask for each feature");
        let inverted = {
            let inverted = t.empty(shape, DType::F32, "1 - mask");
            t.to_dtype(&inverted, self.dtype)
        };
        let mask = {
            let hidden = t.compute(&inverted, DType::Bool, "features that are hidden");
            let mask = t.compute(&inverted, self.dtype, "masked_fill");
            drop(hidden);
            mask
        };
        drop(repeated);
        let rows = {
            let visible = t.compute(&mask, DType::Bool, "features that are seen");
            let any = t.any_last(&visible);
            drop(visible);
            t.compute(&any, self.dtype, "rows with features")
        };
        drop(inverted);
        (Mask::Bias(mask), rows)
    }

    /// Selects the rows of a cross-attention mask at the positions of the text, which are all rows.
    fn at_positions(&self, t: &Tape, (mask, rows): (Mask, Tensor), seq: u64) -> (Tensor, Mask, Tensor) {
        let position = {
            let arange = nn::ids(t, &[seq], "arange");
            t.compute(&arange, arange.dtype(), "current_pos")
        };
        let (Mask::Bias(bias) | Mask::Bool(bias)) = mask;
        let chosen = t.compute(&bias, bias.dtype(), "index");
        drop(bias);
        let chosen_rows = t.compute(&rows, rows.dtype(), "index");
        (position, Mask::Bias(chosen), chosen_rows)
    }
}

impl Forward for Mllama {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [samples, seq] = [run.setup.batch, run.setup.seq];
        let [tiles, channels, height, width] = self.image;
        let mut batch = Batch::of_text(t, run);
        t.as_kind(Kind::Input, || {
            let shape = [samples, 1, tiles, channels, height, width];
            let pixels = t.empty(shape, run.pixels_arrive_in(), "pixel_values");
            batch.arrangements = Some(nn::ids(t, &[samples, 1], "aspect_ratio_ids"));
            batch.others.extend([
                nn::ids(t, &[samples, 1, tiles], "aspect_ratio_mask"),
                nn::ids(t, &[samples, seq, 1, tiles], "cross_attention_mask"),
            ]);
            batch.pixels = Some(cast_pixels(t, run, pixels));
        });
        batch
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels), Some(arrangements)) = (&batch.ids, &batch.pixels, &batch.arrangements) else {
            unreachable!("a batch has ids, pixels and arrangements of tiles")
        };
        let vision = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels, arrangements)
        });
        let (position, image) = t.component("model", Component::Connector, || {
            let projected = self.multi_modal_projector.call(t, &vision);
            let shape = [
                vision.numel() / vision.last() / vision.size(3),
                vision.size(3),
                projected.last(),
            ];
            let states = t.reshape(&projected, shape);
            drop(projected);
            let prepared = self.cross_attention_mask(t, [ids.size(0), ids.size(1)]);
            let (position, mask, rows) = self.at_positions(t, prepared, ids.size(1));
            (position, ImageStates { states, mask, rows })
        });
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, ids, Some(image.clone()))
        });
        drop((position, image, vision));
        logits_and_loss(t, &self.lm_head, h, batch)
    }

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, ids, None)
        });
        Some(last_logits(t, &self.lm_head, &h))
    }
}
