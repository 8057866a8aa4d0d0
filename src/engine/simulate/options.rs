//! Checks that the options of a setup apply to a model.

use super::{Missing, SimulateError};
use crate::model::ModelConfig;
use crate::setup::{Freeze, Loss, Targets};
use crate::{Model, Setup};

/// Refuses setups that would train nothing, and combinations that no library supports.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    something_is_trained(model, setup)?;
    quantisable(model, setup)?;
    loss_is_fused(model, setup)
}

/// Checks that freezing leaves parameters for the optimizer, which refuses an empty list.
fn something_is_trained(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let (possible, missing) = match setup.freeze {
        Freeze::None => return Ok(()),
        Freeze::Vision => (model.takes().parts, Missing::Tower),
        Freeze::AllButConnector => (model.takes().parts, Missing::Connector),
        Freeze::Lora | Freeze::Qlora => (
            model.takes().text && has_targets(model, &setup.lora_targets),
            Missing::Maps,
        ),
    };
    if possible {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::Freeze { model, missing })
}

/// Returns true if the targets can name maps of the model: GPT-2's maps are `Conv1D`s, and OPT's have names of their
/// own.
fn has_targets(model: &Model, targets: &Targets) -> bool {
    match &model.config {
        ModelConfig::Gpt2(_) => false,
        ModelConfig::Opt(_) => matches!(targets, Targets::AllLinear | Targets::Named(_)),
        _ => true,
    }
}

/// Checks that the model can be trained with 4-bit weights, which peft on transformers supports for language models
/// only.
fn quantisable(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.freeze != Freeze::Qlora || model.takes().text {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::NotQuantised { model })
}

/// Checks that Liger replaces the forward of the model's family (`liger_kernel/transformers/model`).
fn loss_is_fused(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    use ModelConfig as M;
    let unknown = matches!(
        &model.config,
        M::Gpt2(_) | M::Opt(_) | M::Phi(_) | M::Blip2(_) | M::Clip(_) | M::Siglip(_) | M::Vit(_) | M::VideoMae(_)
    );
    if setup.loss == Loss::Full {
        return Ok(());
    }
    if matches!(&model.config, M::PaliGemma(_) | M::Mllama(_)) {
        let model = model.name.clone();
        return Err(SimulateError::LigerFails { model });
    }
    if !unknown {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::NoLiger { model })
}
