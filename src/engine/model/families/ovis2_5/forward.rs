//! Ovis2.5 (`modeling_ovis2_5.py` of the checkpoints' repositories).

use super::config::{INDICATORS, Ovis25Config};
use super::vision::Vision;
use crate::dtype::DType;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::qwen_vl::{Layout, QwenPatches, batch_of_patches};
use crate::nn::{Builder, Embedding, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Ovis2_5`.
pub struct Ovis25 {
    language_model: Decoder,
    lm_head: Option<Linear>,
    vit: Vision,
    head: (Linear, LayerNorm),
    vte: Embedding,
    indicators: Tensor,
    patches: QwenPatches,
}

/// Index of the grids of images in [`Batch::others`].
const GRID: usize = 1;

impl Ovis25 {
    pub fn new(b: &Builder, c: &Ovis25Config) -> Self {
        let t = b.tape();
        let language_model = t.component("llm.model", Component::LanguageModel, || Decoder::new(b, &c.text));
        let lm_head = language_model.head(b, &c.text);
        let vit = t.component("visual_tokenizer.vit.vision_model", Component::VisionTower, || {
            Vision::new(b, c)
        });
        let words = c.words - INDICATORS;
        let merged = c.vision.shape.hidden * c.vision.patches.merged();
        let head = t.component("visual_tokenizer.head", Component::Connector, || {
            (Linear::new(b, "0", merged, words, false), LayerNorm::new(b, "1", words))
        });
        // ms-swift's list of models counts the table of visual words among the tower's parts.
        let vte = t.component("", Component::VisionTower, || {
            Embedding::new(b, "vte", c.words, c.text.hidden)
        });
        let indicators = b.buffer("indicator_token_indices", [INDICATORS], DType::I64);
        Self {
            language_model,
            lm_head,
            vit,
            head,
            vte,
            indicators,
            patches: c.vision.patches,
        }
    }

    /// `VisualTokenizer.forward`: patches → probabilities of visual words, [tokens, words].
    fn visual_tokens(&self, t: &Tape, run: &Run, pixels: &Tensor, (layout, grid): (&Layout, &Tensor)) -> Tensor {
        let last = t.component("visual_tokenizer.vit.vision_model", Component::VisionTower, || {
            self.vit.forward(t, run, pixels, (layout, grid))
        });
        t.component("visual_tokenizer.head", Component::Connector, || {
            let unit = layout.merge * layout.merge;
            let features = t.view(&last, [last.size(0) / unit, unit * last.last()]);
            drop(last);
            let (linear, norm) = &self.head;
            let mut logits = linear.call(t, &features);
            logits = norm.call(t, &logits);
            let tokens = t.to_dtype(&t.softmax(&logits, Some(DType::F32)), logits.dtype());
            let padding = t.empty([tokens.size(0), INDICATORS], tokens.dtype(), "zeros");
            let padded = t.cat(&[&tokens, &padding], 1);
            drop((padding, tokens, logits, features));
            padded
        })
    }

    /// `merge_multimodal`: embeddings of text, with those of visual tokens in their places.
    fn merged(&self, t: &Tape, run: &Run, batch: &Batch) -> Tensor {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let _placeholders = t.compute(ids, DType::Bool, "placeholder mask");
        let mut embeds = t.component("llm.model", Component::LanguageModel, || {
            let known = t.compute(ids, DType::I64, "masked_fill");
            let embeds = self.language_model.embed(t, run, &known);
            writable(t, run, embeds)
        });
        let layout = Layout::of(&run.setup, &self.patches);
        let table = |f: &dyn Fn() -> Tensor| t.component("", Component::VisionTower, f);
        let of_indicators = table(&|| t.to_dtype(&self.vte.call(t, &self.indicators), embeds.dtype()));
        let tokens = self.visual_tokens(t, run, pixels, (&layout, &batch.others[GRID]));
        let of_images = table(&|| {
            let looked_up = t.scope("vte", || t.matmul(&tokens, self.vte.weight()));
            t.to_dtype(&looked_up, embeds.dtype())
        });
        let images = layout.images().len() as u64;
        // Start and end of an image; of a video there is none.
        for marked in [images, images, 0, 0] {
            let one = t.select(&of_indicators, 0);
            let places = t.compute(ids, DType::Bool, "indicator mask");
            embeds = t.index_put_one(embeds, &places, &one, marked);
        }
        let places = t.compute(ids, DType::Bool, "visual token mask");
        let out = t.index_put_rows(embeds, &places, &of_images);
        drop((places, of_images, tokens, of_indicators));
        out
    }
}

/// The embeddings as they are written to in place: ms-swift gives out a copy of them (`patch_output_clone`), without which
/// PyTorch refuses to write to a leaf that requires gradients.
fn writable(t: &Tape, run: &Run, embeds: Tensor) -> Tensor {
    let is_swift = run.setup.trainer.is_swift();
    let leaf = match embeds.requires_grad() || !is_swift {
        true => embeds,
        false => t.require_grad_of_output(&embeds),
    };
    match is_swift {
        true => t.clone_of(&leaf),
        false => leaf,
    }
}

impl Forward for Ovis25 {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(Text::next_logits(
            &self.language_model,
            t,
            run,
            self.lm_head.as_ref()?,
            ids,
        ))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        batch_of_patches(t, run, &self.patches, |_| None)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let embeds = self.merged(t, run, batch);
        let held = embeds.clone();
        let h = t.component("llm.model", Component::LanguageModel, || {
            Text::forward(&self.language_model, t, run, embeds)
        });
        let output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        drop(held);
        output
    }
}
