//! ERNIE 4.5 VL (`transformers/models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py`).

use std::cell::OnceCell;
use std::rc::Rc;

use super::config::Ernie45VlConfig;
use super::experts::{Marked, ModalityExperts};
use super::vision::{ErnieVision, Resampler, Tower};
use crate::model::decoder::layer::Layer;
use crate::model::decoder::stack::Decoder;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::model::forward::Run;
use crate::model::parts::qwen_vl::{Deepstack, LanguageModel, MropePositions, QwenVl};
use crate::nn::{Builder, Linear, MropeLayout};
use crate::tape::{Component, Tape, Tensor};

/// `Ernie4_5_VLMoeForConditionalGeneration`: the tower and the resampler are made after the language model.
pub fn model(b: &Builder, c: &Ernie45VlConfig) -> QwenVl<ErnieVision, ErnieText> {
    let t = b.tape();
    let (marked, parts) = (Marked::default(), Rc::new(OnceCell::new()));
    let visual = || ErnieVision {
        parts: parts.clone(),
        marked: marked.clone(),
    };
    let head = |text: &ErnieText| {
        parts.get_or_init(|| {
            let tower = t.component("model.vision_tower", Component::VisionTower, || {
                Tower::new(b, &c.vision)
            });
            let resampler = t.component("model.resampler_model", Component::Connector, || Resampler::new(b, c));
            (tower, resampler)
        });
        text.decoder.head(b, &c.text)
    };
    QwenVl::around(b, c.vision.patches, visual, (|| ErnieText::new(b, c, &marked), head))
}

/// `Ernie4_5_VLMoeTextModel`.
pub struct ErnieText {
    decoder: Decoder,
    layout: MropeLayout,
}

impl ErnieText {
    fn new(b: &Builder, c: &Ernie45VlConfig, marked: &Marked) -> Self {
        let block = |index: usize| match sparse(&c.text, index) {
            Some(of_text) => Layer::with_mlp(b, &c.text, index, &|| {
                Box::new(ModalityExperts::new(b, c, of_text, marked))
            }),
            None => Layer::new(b, &c.text, index),
        };
        let sections = c.text.rope.mrope_section.iter().flatten();
        Self {
            decoder: Decoder::with_blocks(b, &c.text, &|index| Rc::new(block(index))),
            layout: MropeLayout::Paired(sections.take(2).sum()),
        }
    }
}

/// Experts of text of a block that has some.
fn sparse(text: &DecoderConfig, index: usize) -> Option<&ExpertsConfig> {
    text.experts.as_ref().filter(|experts| experts.sparse[index])
}

impl LanguageModel for ErnieText {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.decoder.embed(t, run, ids)
    }

    fn forward(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        positions: MropePositions<'_>,
        _padding: &Tensor,
        deepstack: Deepstack<'_>,
    ) -> Tensor {
        let positions = MropePositions {
            layout: self.layout,
            ..positions
        };
        self.decoder.forward_multimodal(t, run, embeds, positions, deepstack)
    }

    fn next_logits(&self, _: &Tape, _: &Run, _: &Linear, _: &Tensor) -> Option<Tensor> {
        None
    }
}
