//! `Phi4MultimodalForCausalLM` on batches of text.

use std::rc::Rc;

use super::Phi4MultimodalConfig;
use super::towers::Towers;
use crate::dtype::DType;
use crate::model::decoder::block::Block;
use crate::model::decoder::head::{head_for, logits_and_loss};
use crate::model::decoder::stack::Decoder;
use crate::model::families::decoders::phi3;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape};

/// The language model, its head, and what text does not pass.
pub(super) struct Phi4Multimodal {
    model: Decoder,
    _towers: Towers,
    lm_head: Option<Linear>,
}

impl Phi4Multimodal {
    pub fn new(b: &Builder, c: &Phi4MultimodalConfig) -> Self {
        let block = |i| Rc::new(phi3::Layer::new(b, &c.text, i)) as Rc<dyn Block>;
        let (model, towers) = b.tape().component("model", Component::LanguageModel, || {
            let model = Decoder::with_blocks(b, &c.text, &block);
            let make = || Towers::new(b, c.text.hidden, &c.vision, &c.audio);
            (model, b.tape().scope("embed_tokens_extend", make))
        });
        let table = model.table();
        Self {
            lm_head: table.map(|table| head_for(b, table, c.text.tie_word_embeddings)),
            model,
            _towers: towers,
        }
    }
}

impl Forward for Phi4Multimodal {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let h = t.component("model", Component::LanguageModel, || {
            let embeds = self.model.embed(t, run, ids);
            // Places of images, and of all else.
            let images = t.compute(ids, DType::Bool, "image_position_mask");
            drop(t.compute(&images, DType::Bool, "non_image_position_mask"));
            drop(images);
            self.model.forward_packed(t, run, embeds, None)
        });
        logits_and_loss(t, self.lm_head.as_ref(), h, batch)
    }
}
