//! Positions that have labels.

use crate::model::Model;
use crate::setup::{Setup, TrainerKind};

/// Returns a setup in which positions of images have no label, which templates never give them. In a batch of several
/// samples logits are cut before the first label alone, and a later turn's image may follow one.
pub(super) fn labelled(model: &Model, mut setup: Setup) -> Setup {
    let has_labels = setup.completion.is_some() || !setup.labels.is_empty();
    if setup.trainer == TrainerKind::MsSwift && !has_labels && setup.batch == 1 && model.takes().text {
        let of_images = model.image_tokens(&setup);
        let of_text = setup.longest().saturating_sub(of_images);
        setup.completion = Some(of_text.saturating_sub(1).max(1));
    }
    setup
}
