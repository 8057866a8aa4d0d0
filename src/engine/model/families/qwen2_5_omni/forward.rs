//! `Qwen2_5OmniThinkerForConditionalGeneration` (`transformers/models/qwen2_5_omni/modeling_qwen2_5_omni.py`).

use super::config::Qwen25OmniConfig;
use crate::model::families::qwen2_5_vl::Qwen25Vision;
use crate::model::parts::omni::{PositionIds, Thinker, ThinkerParts};
use crate::nn::Builder;

/// `Qwen2_5OmniThinkerForConditionalGeneration`.
pub fn model(b: &Builder, c: &Qwen25OmniConfig) -> Thinker<Qwen25Vision> {
    let parts = ThinkerParts {
        audio: &c.audio,
        patches: c.vision.patches,
        text: &c.text,
        positions: PositionIds::Integers,
    };
    Thinker::new(b, &parts, || Qwen25Vision::new(b, &c.vision))
}
