//! Checks that the options of a setup apply to a model.

use super::{Missing, SimulateError};
use crate::model::libraries::{AdapterMaps, Liger};
use crate::setup::{Freeze, Loss, Precision, Reference, Targets, TrainerKind};
use crate::{Model, Setup};

/// Refuses setups that would train nothing, and combinations that no library supports.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    something_is_trained(model, setup)?;
    text_alone_is_simulated(model, setup)?;
    adapters_are_simulated(model, setup)?;
    quantisable(model, setup)?;
    loss_is_fused(model, setup)?;
    trl_is_simulated(model, setup)?;
    convolution_is_known(model, setup)
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

/// Refuses samples without images where the loss depends on no trained weight, or with settings that were never compared
/// with them.
fn text_alone_is_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.images > 0 || !model.takes().text_alone {
        return Ok(());
    }
    let refused = |given: &str, instead: &str| {
        Err(SimulateError::NotSimulated {
            model: model.name.clone(),
            given: given.into(),
            instead: instead.into(),
        })
    };
    if setup.freeze == Freeze::AllButConnector {
        return refused(
            "`images` 0 and `freeze` all-but-connector, where the loss depends on no trained weight",
            "`images` 1 or another `freeze`",
        );
    }
    if !setup.lengths.is_empty() {
        return refused("`images` 0 and `lengths`", "`images` 1 or `seq`");
    }
    if setup.loss != Loss::Full {
        return refused("`images` 0 and Liger's fused loss", "`images` 1 or `loss` full");
    }
    Ok(())
}

/// Returns true if the targets can name maps of the model.
fn has_targets(model: &Model, targets: &Targets) -> bool {
    match model.config.family().support().adapters {
        AdapterMaps::Usual | AdapterMaps::BesideExperts => true,
        AdapterMaps::OtherNames => matches!(targets, Targets::AllLinear | Targets::Named(_)),
        AdapterMaps::None => false,
    }
}

/// Checks that no adapter comes to the fused weights of experts: peft takes the names of maps that were experts in
/// transformers 4, `all-linear` among them, for these weights (`_convert_peft_config_moe` in
/// `peft/utils/transformers_weight_conversion.py`).
fn adapters_are_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let adapted = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
    let beside_experts = model.config.family().support().adapters == AdapterMaps::BesideExperts;
    if !adapted || !beside_experts || setup.lora_targets == Targets::Attention {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::ExpertAdapters { model })
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

/// Checks that Liger replaces the forward of the model's family.
fn loss_is_fused(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.loss == Loss::Full {
        return Ok(());
    }
    let name = model.name.clone();
    match model.config.family().support().liger {
        Liger::Replaces => Ok(()),
        Liger::Fails => Err(SimulateError::LigerFails { model: name }),
        Liger::Unknown => Err(SimulateError::NoLiger { model: name }),
        Liger::NotSimulated => Err(SimulateError::NotSimulated {
            model: name,
            given: "Liger's fused loss".into(),
            instead: "`loss` full".into(),
        }),
    }
}

/// Checks that TRL's trainers take the setup, and that what they make of it is simulated.
fn trl_is_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if !setup.trainer.is_trl() {
        return Ok(());
    }
    let is_dpo = setup.trainer == TrainerKind::TrlDpo;
    let named_head = matches!(&setup.lora_targets, Targets::Named(names) if names.iter().any(|name| name == "lm_head"));
    let has_experts = model.config.family().support().adapters == AdapterMaps::BesideExperts;
    let images = setup.images > 0 && model.takes().parts;
    let reasons = [
        (!model.takes().text, "a trainer of TRL", "`trainer` transformers"),
        (
            setup.freeze == Freeze::Qlora,
            "TRL and 4-bit weights",
            "`freeze` lora or `trainer` transformers",
        ),
        (
            setup.loss != Loss::Full,
            "TRL and Liger's fused loss",
            "`loss` full: TRL makes no logits anyway",
        ),
        (
            has_experts,
            "TRL, which adds its experts' balance loss",
            "`trainer` transformers",
        ),
        (
            named_head,
            "TRL and adapters of `lm_head`, which TRL refuses",
            "other `lora_targets`",
        ),
        (
            is_dpo && setup.is_packed(),
            "TRL's DPO and packed samples",
            "`packing` padded",
        ),
        (
            is_dpo && images && setup.reference == Reference::Precomputed,
            "`reference` precomputed and images, which TRL refuses",
            "`reference` every_step",
        ),
    ];
    match reasons.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, given, instead)) => Err(SimulateError::NotSimulated {
            model: model.name.clone(),
            given: given.into(),
            instead: instead.into(),
        }),
    }
}

/// Checks that PyTorch's own kernels run the convolutions along a sequence: in fp16 cuDNN does, with workspaces that are
/// unknown (`use_cudnn_depthwise` in `aten/src/ATen/native/Convolution.cpp`).
fn convolution_is_known(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.precision != Precision::AmpFp16 || !model.absent_packages().contains(&"causal-conv1d") {
        return Ok(());
    }
    Err(SimulateError::NotSimulated {
        model: model.name.clone(),
        given: "`precision` amp-fp16".into(),
        instead: "amp-bf16".into(),
    })
}
