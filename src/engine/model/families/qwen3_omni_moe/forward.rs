//! `Qwen3OmniMoeThinkerForConditionalGeneration` (`transformers/models/qwen3_omni_moe/modeling_qwen3_omni_moe.py`).

use super::config::Qwen3OmniConfig;
use crate::model::parts::omni::{PositionIds, Thinker, ThinkerParts};
use crate::model::parts::qwen3_vision::Qwen3Vision;
use crate::nn::Builder;

/// `Qwen3OmniMoeThinkerForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen3OmniConfig) -> Thinker<Qwen3Vision> {
    let parts = ThinkerParts {
        audio: &c.audio,
        patches: c.vision.patches,
        text: &c.text,
        positions: PositionIds::Floats,
    };
    Thinker::new(b, &parts, || Qwen3Vision::new(b, &c.vision))
}
