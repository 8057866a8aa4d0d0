//! `Qwen3VLForConditionalGeneration` (`transformers/models/qwen3_vl/modeling_qwen3_vl.py`).

use super::config::Qwen3VlConfig;
use crate::model::parts::qwen_vl::QwenVl;
use crate::model::parts::qwen3_vision::Qwen3Vision;
use crate::nn::Builder;

/// `Qwen3VLForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen3VlConfig) -> QwenVl<Qwen3Vision> {
    QwenVl::new(b, (c.vision.patches, &c.text), || Qwen3Vision::new(b, &c.vision))
}
