//! Video-LLaVA with images (`transformers/models/video_llava/modeling_video_llava.py`).

use super::config::VideoLlavaConfig;
use crate::model::config::PatchGrid;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::ImageText;
use crate::model::parts::image_tokens::placeholder_masks;
use crate::model::parts::llava_vision::{FeatureTower, LlavaVision, LlavaVisionConfig};
use crate::nn::Builder;
use crate::tape::{Tape, Tensor};

/// `VideoLlavaForConditionalGeneration`.
pub struct VideoLlava<T> {
    /// The tower for videos, which images do not pass.
    _video_tower: FeatureTower,
    vision: LlavaVision,
    text: ImageText<T>,
    grid: PatchGrid,
}

impl<T: Text> VideoLlava<T> {
    pub fn new(b: &Builder, c: &VideoLlavaConfig) -> Self {
        let parts = LlavaVisionConfig {
            tower: c.vision.clone(),
            text_hidden: c.text.hidden,
            activation: c.projector_activation,
            bias: c.projector_bias,
            has_norm: false,
            feature_layers: c.feature_layers.clone(),
            feature_select: c.feature_select,
            joins_first: false,
        };
        let selection = (c.feature_layers.clone(), c.feature_select);
        Self {
            _video_tower: FeatureTower::new(b, "model.video_tower", &c.vision, selection),
            vision: LlavaVision::with_tower(b, "model.image_tower", parts),
            text: ImageText::new(b, &c.text).looking_up(c.image_token, c.text.vocab),
            grid: c.vision.grid(),
        }
    }
}

impl<T: Text> Forward for VideoLlava<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let batch = Batch::of_text(t, run);
        match run.images() {
            0 => batch,
            images => batch.with_pixels(t, run, &[images, channels, image, image]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss_with_mask(t, run, batch, placeholder_masks, |pixels| {
            self.vision.features(t, run, pixels).0.into()
        })
    }
}
