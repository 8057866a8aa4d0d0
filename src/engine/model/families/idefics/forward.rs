//! IDEFICS (`transformers/models/idefics/modeling_idefics.py`).

use std::rc::Rc;

use super::config::IdeficsConfig;
use super::layers::{CrossLayer, ImageContext, Layer, TextContext};
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::decoder::head::logits_and_loss;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::clip_vision::ClipVision;
use crate::nn::{self, Builder, Embedding, Linear, Numbered, T5LayerNorm};
use crate::tape::{Component, Kind, Mask, Tape, Tensor};

/// `IdeficsForVisionText2Text`.
pub struct Idefics {
    embed_tokens: Embedding,
    vision_model: ClipVision,
    layers: Vec<Numbered<Layer>>,
    gated_cross_attn_layers: Vec<Numbered<CrossLayer>>,
    cross_interval: usize,
    norm: T5LayerNorm,
    lm_head: Linear,
    grid: PatchGrid,
}

impl Idefics {
    pub fn new(b: &Builder, c: &IdeficsConfig) -> Self {
        let t = b.tape();
        let text = |f: &dyn Fn() -> Embedding| t.component("model", Component::LanguageModel, f);
        let embed_tokens = b.frozen(c.frozen.text, || {
            text(&|| Embedding::new(b, "embed_tokens", c.vocab, c.hidden))
        });
        let vision_model = b.frozen(c.frozen.vision, || {
            t.component("model.vision_model", Component::VisionTower, || {
                ClipVision::new(b, &c.vision).without_hook()
            })
        });
        let (layers, gated_cross_attn_layers, norm) = t.component("model", Component::LanguageModel, || {
            let layer = |i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c)));
            let layers = b.frozen(c.frozen.text, || (0..c.layers as usize).map(layer).collect());
            let cross = |i| Numbered::new(b, "gated_cross_attn_layers", i, || Rc::new(CrossLayer::new(b, c)));
            let cross = (0..(c.layers / c.cross_interval) as usize).map(cross).collect();
            let norm = b.frozen(c.frozen.text, || T5LayerNorm::new(b, "norm", c.hidden));
            (layers, cross, norm)
        });
        let lm_head = t.component("", Component::Head, || match c.tie_word_embeddings {
            true => Linear::tied(b, "lm_head", embed_tokens.weight()),
            false => b.frozen(c.frozen.head, || Linear::new(b, "lm_head", c.hidden, c.vocab, false)),
        });
        Self {
            embed_tokens,
            vision_model,
            layers,
            gated_cross_attn_layers,
            cross_interval: c.cross_interval as usize,
            norm,
            lm_head,
            grid: PatchGrid {
                image: c.vision.image,
                patch: c.vision.patch,
                channels: c.vision.channels,
            },
        }
    }

    /// Hidden states of the images of each sample, [batch, positions of all, width].
    fn images(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let [batch, images, channels, side] = [pixels.size(0), pixels.size(1), pixels.size(2), pixels.last()];
        let flat = t.view(pixels, [batch * images, channels, side, side]);
        let last = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, &flat, |_| ()).last
        });
        // Where each sample has one image, the view changes no extent; its gradient is a view all the same.
        match images {
            1 => t.squeeze(&t.unsqueeze(&last, 0), 0),
            _ => t.view(&last, [batch, images * last.size(1), last.last()]),
        }
    }

    /// Runs the blocks of text, each after the gated cross-attention that stands before it, if any does.
    fn blocks(
        &self,
        t: &Tape,
        run: &Run,
        (text, of_images, images): (&Rc<TextContext>, &Rc<ImageContext>, &Tensor),
        mut h: Tensor,
    ) -> Tensor {
        for (i, layer) in self.layers.iter().enumerate() {
            if i % self.cross_interval == 0 {
                let index = i / self.cross_interval;
                let cross = &self.gated_cross_attn_layers[index];
                let (called, shared) = (cross.clone(), of_images.clone());
                let forward = move |t: &Tape, x: Tensor, images: &Tensor| called.forward(t, (&shared, images), x);
                h = run.block_with(t, cross, (h.clone(), images.clone()), forward);
            }
            let (called, shared) = (layer.clone(), text.clone());
            let forward = move |t: &Tape, x: Tensor| called.forward(t, &shared, x);
            h = run.block(t, layer, h.clone(), forward);
        }
        h
    }
}

/// Positions of a padding mask, [batch, seq].
fn position_ids(t: &Tape, mask: &Tensor) -> Tensor {
    let positions = {
        let counted = t.running_sum(mask);
        t.compute(&counted, DType::I64, "position_ids")
    };
    drop(t.compute(mask, DType::Bool, "padding"));
    positions
}

/// The mask of the images, [batch, 1, seq, positions of all], and the gate of each token, [batch, seq].
fn image_mask(t: &Tape, images: &Tensor, [batch, seq, count]: [u64; 3]) -> (Tensor, Tensor) {
    let (positions, dtype) = (images.size(1), images.dtype());
    let shape = [batch, 1, seq, positions];
    // The mask of one image is only expanded.
    let repeated = (count > 1).then(|| nn::ids(t, &[batch, seq, positions], "image attention mask of all positions"));
    let mask = {
        let seen = t.empty(shape, DType::Bool, "positions that are seen");
        let zero = t.empty([], dtype, "0");
        let lowest = t.empty([], dtype, "lowest value");
        let mask = t.empty(shape, dtype, "image attention mask");
        drop((lowest, zero, seen));
        mask
    };
    drop(repeated);
    let gate = {
        let open = t.empty(shape, DType::Bool, "mask = 0");
        let any = t.any_last(&open);
        drop(open);
        t.compute(&any, dtype, "gate")
    };
    (mask, t.view(&gate, [batch, seq]))
}

impl Forward for Idefics {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let setup = &run.setup;
        let PatchGrid { image, channels, .. } = self.grid;
        let mut batch = Batch::of_text(t, run);
        let shape = [setup.batch, setup.seq, setup.images];
        let mask = t.as_kind(Kind::Input, || nn::ids(t, &shape, "image_attention_mask"));
        batch.others.push(mask);
        batch.with_pixels(t, run, &[setup.batch, setup.images, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let embeds = t.component("model", Component::LanguageModel, || {
            self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
        });
        let cache = t.component("model", Component::LanguageModel, || run.cache(&[]));
        let position_ids = position_ids(t, ids);
        let images = self.images(t, run, pixels);
        let (h, images) = t.component("model", Component::LanguageModel, || {
            let (image_mask, gate) = image_mask(t, &images, [embeds.size(0), embeds.size(1), pixels.size(1)]);
            let mask = nn::causal_mask(t, run.attn, &embeds);
            let of_images = Rc::new(ImageContext {
                attn: run.attn,
                mask: Mask::Bias(image_mask),
                gate,
                _text_mask: mask.clone(),
            });
            let of_text = Rc::new(TextContext {
                attn: run.attn,
                mask,
                position_ids,
                cache,
            });
            let h = self.blocks(t, run, (&of_text, &of_images, &images), embeds.clone());
            let out = self.norm.call(t, &h);
            drop((h, of_text, of_images, embeds));
            (out, images)
        });
        let mut output = logits_and_loss(t, &self.lm_head, h, batch);
        output.held.push(images);
        output
    }
}
