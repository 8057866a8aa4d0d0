//! Checks that the options of a setup apply to a model.

use super::error::not_simulated;
use super::{Missing, SimulateError, grpo_options};
use crate::dtype::DType;
use crate::model::Stored;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::setup::{
    Attention, CAUSAL_CONV1D, Checkpointing, ExpertAdapters, Freeze, Loss, Optimizer, Precision, Reference, Targets,
    TrainerKind,
};
use crate::{Model, Setup};

/// Refuses setups that would train nothing, and combinations that no library supports.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    something_is_trained(model, setup)?;
    blocks_are_checkpointed(model, setup)?;
    text_alone_is_simulated(model, setup)?;
    adapters_are_simulated(model, setup)?;
    quantisable(model, setup)?;
    stored_weights_fit(model, setup)?;
    kernels_are_simulated(model, setup)?;
    loss_is_fused(model, setup)?;
    trl_is_simulated(model, setup)?;
    muon_runs(model, setup)?;
    compiled_was_measured(model, setup)?;
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

/// Refuses checkpointing where the model's class has none.
fn blocks_are_checkpointed(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.ckpt == Checkpointing::None || model.takes().checkpointing {
        return Ok(());
    }
    Err(SimulateError::NotSimulated {
        model: model.name.clone(),
        given: "`ckpt`, which its class does not have".into(),
        instead: "`ckpt` none".into(),
    })
}

/// Refuses samples without images where the loss depends on no trained weight, or with settings that were never compared
/// with them.
fn text_alone_is_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.images > 0 || !model.takes().text_alone {
        return Ok(());
    }
    let refused = |given: &str, instead: &str| not_simulated(model, given, instead);
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
        AdapterMaps::Usual
        | AdapterMaps::BesideExperts
        | AdapterMaps::BesideExpertsAndRouter
        | AdapterMaps::BesideOtherExperts => true,
        AdapterMaps::OtherNames => matches!(targets, Targets::AllLinear | Targets::Named(_)),
        AdapterMaps::None => false,
    }
}

/// Checks that peft makes the adapters on fused weights of experts, and that they are simulated
/// (`ParamWrapper` in `peft/tuners/lora/layer.py`).
fn adapters_are_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if !matches!(setup.freeze, Freeze::Lora | Freeze::Qlora) {
        return Ok(());
    }
    let refused = |given: &str, instead: &str| not_simulated(model, given, instead);
    let (places, all) = (model.adapter_places(setup), setup.lora_experts == ExpertAdapters::All);
    match model.config.family().support().adapters {
        AdapterMaps::BesideOtherExperts if all => return refused("`lora_experts` all", "`lora_experts` targets"),
        AdapterMaps::BesideExpertsAndRouter | AdapterMaps::BesideOtherExperts if places.takes_router() => {
            return refused(
                "`lora_targets` that name its router, for which peft 0.21 fails",
                "`lora_targets` projections or attention",
            );
        }
        AdapterMaps::BesideExperts | AdapterMaps::BesideExpertsAndRouter => {}
        _ if all => return refused("`lora_experts` all, having no fused experts", "`lora_experts` targets"),
        _ => return Ok(()),
    }
    if !model.adapts_experts(setup) {
        return Ok(());
    }
    if let Some([given, other]) = places.half_of_fused() {
        return refused(
            &format!("`lora_targets` {given} without {other}, which peft refuses since one weight holds both"),
            &format!("both, {given},{other}"),
        );
    }
    if setup.lora_dropout > 0.0 {
        return refused(
            "`lora_dropout` above 0 and adapters on experts, which peft refuses together",
            "`lora_dropout` 0, or `lora_targets` attention",
        );
    }
    Ok(())
}

/// Checks that the model can be trained with 4-bit weights, which peft on transformers supports for language models
/// only.
fn quantisable(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.freeze != Freeze::Qlora {
        return Ok(());
    }
    if !model.has_plain_maps() {
        return not_simulated(
            model,
            "`freeze` qlora, for which bitsandbytes leaves its maps as they are",
            "`freeze` lora",
        );
    }
    if model.takes().text {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::NotQuantised { model })
}

/// Checks that a setup trains weights as they are stored.
fn stored_weights_fit(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let qlora = setup.freeze == Freeze::Qlora;
    match model.stored {
        Stored::Plain => Ok(()),
        Stored::Mxfp4 if qlora => not_simulated(
            model,
            "`freeze` qlora and a `quantization_config` of mxfp4, which transformers does not quantise again",
            "lora",
        ),
        Stored::Mxfp4 if setup.precision.weights() != DType::Bf16 => not_simulated(
            model,
            &format!(
                "`precision` {} and experts in mxfp4, which are dequantised to bf16",
                setup.precision.name()
            ),
            "bf16 or bf16-amp",
        ),
        Stored::Nf4(_) if !qlora => not_simulated(
            model,
            &format!(
                "`freeze` {} and weights that its `quantization_config` keeps in 4 bits",
                setup.freeze.name()
            ),
            "`freeze` qlora, or delete `quantization_config`",
        ),
        Stored::Nf4(compute) if compute != setup.precision.products() => not_simulated(
            model,
            &format!(
                "`precision` {} and `bnb_4bit_compute_dtype` {}",
                setup.precision.name(),
                compute.name()
            ),
            "a precision whose products have that type",
        ),
        Stored::Mxfp4 | Stored::Nf4(_) => Ok(()),
    }
}

/// Refuses packages that replace a part of the model's forward and are not simulated.
fn kernels_are_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let absent = model.absent_packages();
    let replaces = |package: &&&str| absent.contains(*package) || **package == "kernels";
    let replaced = setup.packages.packages().iter().filter(replaces);
    let why = replaced.filter_map(|package| match *package {
        "flash-linear-attention" => Some(
            "flash-linear-attention 0.6 takes the place of its scan, which fails on Hopper with the Triton 3.6 of \
             PyTorch 2.11, and was never recorded",
        ),
        CAUSAL_CONV1D if !setup.lengths.is_empty() => {
            Some("samples of different lengths were never compared with causal-conv1d")
        }
        CAUSAL_CONV1D => None,
        _ => Some("kernels of the hub take the place of parts of it, which were never recorded"),
    });
    let Some(why) = why.into_iter().next() else {
        return Ok(());
    };
    not_simulated(
        model,
        &format!("`packages` {}: {why}", setup.packages.name()),
        "`packages` none, what a plain installation of transformers runs, or record it (`vramscope record`)",
    )
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

/// Models for which TRL 1.16's fused head fails on an H100 (no `last_hidden_state` among the outputs), and IDEFICS, whose
/// steps under TRL took up to 12% more than with that head.
const WITHOUT_FUSED_HEAD: [&str; 4] = ["idefics", "kosmos-2", "kosmos-2.5", "qwen2_5_omni_thinker"];

/// Checks that DPO has a reference model.
fn reference_fits(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    match (setup.trainer, setup.reference) {
        (TrainerKind::TrlDpo, Reference::None) => not_simulated(
            model,
            "TRL's DPO and `reference` none, whose loss compares with a reference model",
            "`reference` every_step or precomputed",
        ),
        _ => Ok(()),
    }
}

/// Checks that TRL's trainers take the setup, and that what they make of it is simulated.
fn trl_is_simulated(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if !setup.trainer.is_trl() {
        return Ok(());
    }
    reference_fits(model, setup)?;
    grpo_options::check(model, setup)?;
    let is_dpo = setup.trainer == TrainerKind::TrlDpo;
    let named_head = matches!(&setup.lora_targets, Targets::Named(names) if names.iter().any(|name| name == "lm_head"));
    let adapters = model.config.family().support().adapters;
    let has_experts = matches!(
        adapters,
        AdapterMaps::BesideExperts | AdapterMaps::BesideExpertsAndRouter | AdapterMaps::BesideOtherExperts
    );
    let images = setup.images > 0 && model.takes().parts;
    let reasons = [
        (!model.takes().text, "a trainer of TRL", "`trainer` transformers"),
        (
            WITHOUT_FUSED_HEAD.contains(&model.model_type),
            "a trainer of TRL, whose head its outputs do not fit",
            "`trainer` transformers",
        ),
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

/// Refuses Muon, which is two optimizers, where the program that runs the steps has one.
fn muon_runs(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.optim != Optimizer::Muon {
        return Ok(());
    }
    if setup.trainer.is_derived() {
        return not_simulated(
            model,
            "`optim` muon under a trainer, for which transformers 5.17 has no name",
            "`trainer` loop or another `optim`",
        );
    }
    if setup.precision == Precision::AmpFp16 {
        return not_simulated(
            model,
            "`optim` muon and `precision` amp-fp16, whose GradScaler would step two optimizers",
            "amp-bf16",
        );
    }
    Ok(())
}

/// Refuses `compile` with settings under which no compiled step was measured: the range that is told would be of others.
fn compiled_was_measured(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let reasons = [
        (setup.trainer.is_trl(), "TRL", "`trainer` loop or transformers"),
        (setup.freeze == Freeze::Qlora, "4-bit weights", "`freeze` lora"),
        (setup.loss != Loss::Full, "Liger's fused loss", "`loss` full"),
        (
            setup.attn == Attention::FlashAttention2,
            "`attn` flash_attention_2",
            "`attn` sdpa",
        ),
        (!setup.lengths.is_empty(), "`lengths` that differ", "`seq`"),
        (setup.ema, "`ema`", "no `ema`"),
    ];
    match reasons.into_iter().find(|(applies, ..)| setup.compile && *applies) {
        None => Ok(()),
        Some((_, with, instead)) => not_simulated(
            model,
            &format!("`compile` and {with}, of which no compiled step was measured"),
            &format!("{instead}, or leave `compile` out"),
        ),
    }
}

/// Checks that PyTorch's own kernels run the convolutions along a sequence: in fp16 cuDNN does, with workspaces that are
/// unknown (`use_cudnn_depthwise` in `aten/src/ATen/native/Convolution.cpp`).
fn convolution_is_known(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    let installed = setup.packages.packages().contains(&CAUSAL_CONV1D);
    if setup.precision != Precision::AmpFp16 || installed || !model.absent_packages().contains(&CAUSAL_CONV1D) {
        return Ok(());
    }
    Err(SimulateError::NotSimulated {
        model: model.name.clone(),
        given: "`precision` amp-fp16".into(),
        instead: "amp-bf16".into(),
    })
}
