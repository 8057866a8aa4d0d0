//! PaddleOCR-VL (`transformers/models/paddleocr_vl/modeling_paddleocr_vl.py`).

use std::cell::OnceCell;
use std::rc::Rc;

use super::config::PaddleOcrVlConfig;
use super::projector::Projector;
use super::vision::PaddleVision;
use crate::model::decoder::stack::Decoder;
use crate::model::parts::qwen_vl::QwenVl;
use crate::nn::Builder;
use crate::tape::Component;

/// `PaddleOCRVLForConditionalGeneration`: the projector is made after the language model.
pub fn model(b: &Builder, c: &PaddleOcrVlConfig) -> QwenVl<PaddleVision> {
    let projector = Rc::new(OnceCell::new());
    let visual = || {
        b.tape().component("model.visual", Component::VisionTower, || {
            PaddleVision::new(b, &c.vision, projector.clone())
        })
    };
    let head = |model: &Decoder| {
        projector.get_or_init(|| {
            b.tape()
                .component("model.projector", Component::Connector, || Projector::new(b, c))
        });
        model.head(b, &c.text)
    };
    QwenVl::around(b, c.vision.tower.patches, visual, (|| Decoder::new(b, &c.text), head))
}
