//! `Qwen3_5ForConditionalGeneration` (`transformers/models/qwen3_5/modeling_qwen3_5.py`).

use super::config::Qwen35Config;
use crate::model::parts::delta_decoder::DeltaDecoder;
use crate::model::parts::qwen_vl::QwenVl;
use crate::model::parts::qwen3_vision::Qwen3Vision;
use crate::nn::Builder;
use crate::tape::Component;

/// `Qwen3_5ForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen35Config) -> QwenVl<Qwen3Vision, DeltaDecoder> {
    let tower = || Qwen3Vision::new(b, &c.vision);
    let visual = || b.tape().component("model.visual", Component::VisionTower, tower);
    let text = || DeltaDecoder::new(b, &c.text);
    let head = |model: &DeltaDecoder| Some(model.head(b, &c.text));
    QwenVl::around(b, c.vision.patches, visual, (text, head))
}
