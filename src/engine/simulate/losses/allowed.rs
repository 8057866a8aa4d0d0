//! Losses beside the usual one, and where they are simulated.

use super::super::way_out::{Refused, ways};
use crate::model::libraries::Liger;
use crate::setup::{Loss, TrainerKind};
use crate::{Model, Setup};

/// Returns true for models whose loss is that of the decoders like Llama's, which Liger replaces in most of them.
fn has_usual_head(model: &Model) -> bool {
    const OTHERS: [&str; 4] = ["glm", "glm4", "idefics2", "internvl"];
    model.config.family().support().liger == Liger::Replaces || OTHERS.contains(&model.model_type)
}

/// Checks that a loss which is not Liger's is simulated for the model and the trainer.
pub(in super::super) fn loss_is_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let (trainers, given): (&[TrainerKind], &str) = match setup.loss {
        Loss::Full | Loss::FusedLinear => return Ok(()),
        Loss::Shifted => (
            &[TrainerKind::Loop, TrainerKind::Transformers],
            "`loss` shifted, which is simulated for decoders like Llama's, under a loop or transformers' Trainer",
        ),
        Loss::Smoothed => (
            &[TrainerKind::Transformers],
            "`loss` smoothed, which is of transformers' Trainer and simulated for decoders like Llama's, without images",
        ),
        // Its models are those of TRL's head.
        Loss::Dft if setup.trainer == TrainerKind::TrlSft => return Ok(()),
        Loss::Dft => (
            &[TrainerKind::Transformers],
            "`loss` dft, which is of TRL's SFT, and of transformers' Trainer as LLaMA-Factory runs it, there for decoders \
             like Llama's, without images",
        ),
    };
    // The classes of models of text and images are none of those whose labels are shifted.
    let is_known = setup.loss == Loss::Shifted || !model.takes().parts;
    if is_known && has_usual_head(model) && trainers.contains(&setup.trainer) {
        return Ok(());
    }
    Err(Refused::NotSimulated {
        given: given.to_owned(),
        ways: ways![set "loss" = "full" => |s, _| s.loss = Loss::Full,],
    })
}
