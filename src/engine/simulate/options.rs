//! Checks that the options of a setup apply to a model.

use super::losses::allowed::loss_is_simulated;
use super::way_out::{Refused, WayOut, ways};
use super::{Missing, SimulateError, grpo_options};
use crate::dtype::DType;
use crate::model::Stored;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::setup::{
    Attention, CAUSAL_CONV1D, Checkpointing, ExpertAdapters, Freeze, KernelPackages, LigerKernels, Loss, Optimizer,
    Packing, PixelValues, Precision, Reference, Targets, TrainerKind,
};
use crate::{Model, Setup};

/// Refuses setups that would train nothing, and combinations that no library supports.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), Refused> {
    something_is_trained(model, setup)?;
    blocks_are_checkpointed(model, setup)?;
    text_alone_is_simulated(model, setup)?;
    pixel_mask_is_simulated(model, setup)?;
    adapters_are_simulated(model, setup)?;
    quantisable(model, setup)?;
    stored_weights_fit(model, setup)?;
    kernels_are_simulated(model, setup)?;
    loss_is_fused(model, setup)?;
    liger_knows(model, setup)?;
    trl_is_simulated(model, setup)?;
    muon_runs(setup)?;
    gradients_are_scaled(setup)?;
    compiled_was_measured(setup)?;
    convolution_is_known(model, setup)
}

const fn not_simulated(given: String, ways: &'static [WayOut]) -> Result<(), Refused> {
    Err(Refused::NotSimulated { given, ways })
}

/// Checks that freezing leaves parameters for the optimizer, which refuses an empty list.
fn something_is_trained(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let (possible, missing) = match setup.freeze {
        Freeze::Parts(frozen) if frozen.is_empty() => return Ok(()),
        Freeze::Parts(frozen) if !frozen.connector && frozen.language => (model.takes().parts, Missing::Connector),
        Freeze::Parts(_) => (model.takes().parts, Missing::Tower),
        Freeze::Lora | Freeze::Qlora => {
            let takes_text = model.takes().text;
            let missing = match takes_text && has_targets(model, &Targets::AllLinear) {
                true => Missing::UsualMaps,
                false => Missing::Maps,
            };
            (takes_text && has_targets(model, &setup.lora_targets), missing)
        }
    };
    if possible {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::Freeze { model, missing }.into())
}

/// Refuses checkpointing where the model's class has none, or checkpoints layers within layers.
fn blocks_are_checkpointed(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.ckpt == Checkpointing::None {
        return Ok(());
    }
    let given = match model.takes().checkpointing {
        true if setup.reentrant && model.config.family().nests_checkpoints() => {
            "`ckpt` with `reentrant`, which checkpoints layers within layers"
        }
        true => return Ok(()),
        false => "`ckpt`, which its class does not have",
    };
    not_simulated(
        given.into(),
        ways![set "ckpt" = "none" => |s, _| s.ckpt = Checkpointing::None,],
    )
}

/// Models that make masks of attention of the mask of pixels that their processor gives, which is not simulated.
const WITHOUT_PIXEL_MASK: [&str; 1] = ["aria"];

/// Refuses batches with a mask of pixels where what a model makes of it is not simulated.
fn pixel_mask_is_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.pixels == PixelValues::Cast || !WITHOUT_PIXEL_MASK.contains(&model.model_type) {
        return Ok(());
    }
    not_simulated(
        "`pixels` processor, whose mask of pixels this model makes other masks of".into(),
        ways![set "pixels" = "cast" => |s, _| s.pixels = PixelValues::Cast,],
    )
}

/// Refuses samples without images where the loss depends on no trained weight, or with settings that were never compared
/// with them.
fn text_alone_is_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.images > 0 || !model.takes().text_alone {
        return Ok(());
    }
    if setup.freeze.frozen().language && !setup.freeze.is_adapted() {
        return not_simulated(
            format!(
                "`images` 0 and `freeze` {}, where the loss depends on no trained weight",
                setup.freeze.name()
            ),
            ways![
                set "images" = "1" => |s, _| s.images = 1,
                set "freeze" = "vision" => |s, _| s.freeze = Freeze::VISION,
            ],
        );
    }
    if !setup.lengths.is_empty() {
        return not_simulated(
            "`images` 0 and `lengths`".into(),
            ways![
                set "images" = "1" => |s, _| s.images = 1,
                leave "lengths" => |s, _| s.lengths.clear(),
            ],
        );
    }
    if setup.loss == Loss::FusedLinear {
        return not_simulated(
            "`images` 0 and Liger's fused loss".into(),
            ways![
                set "images" = "1" => |s, _| s.images = 1,
                set "loss" = "full" => |s, _| s.loss = Loss::Full,
            ],
        );
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

const TARGETED_EXPERTS: &[WayOut] =
    ways![set "lora_experts" = "targets" => |s, _| s.lora_experts = ExpertAdapters::Targets,];

const OTHER_TARGETS: &[WayOut] = ways![
    set "lora_targets" = "projections" => |s, _| s.lora_targets = Targets::Projections,
    set "lora_targets" = "attention" => |s, _| s.lora_targets = Targets::Attention,
];

/// Checks that peft makes the adapters on fused weights of experts, and that they are simulated
/// (`ParamWrapper` in `peft/tuners/lora/layer.py`).
fn adapters_are_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if !matches!(setup.freeze, Freeze::Lora | Freeze::Qlora) {
        return Ok(());
    }
    let (places, all) = (model.adapter_places(setup), setup.lora_experts == ExpertAdapters::All);
    match model.config.family().support().adapters {
        AdapterMaps::BesideOtherExperts if all => return not_simulated("`lora_experts` all".into(), TARGETED_EXPERTS),
        AdapterMaps::BesideExpertsAndRouter | AdapterMaps::BesideOtherExperts if places.takes_router() => {
            return not_simulated(
                "`lora_targets` that name its router, for which peft 0.21 fails".into(),
                OTHER_TARGETS,
            );
        }
        AdapterMaps::BesideExperts | AdapterMaps::BesideExpertsAndRouter => {}
        _ if all => {
            return not_simulated("`lora_experts` all, having no fused experts".into(), TARGETED_EXPERTS);
        }
        _ => return Ok(()),
    }
    if !model.adapts_experts(setup) {
        return Ok(());
    }
    if let Some([given, other]) = places.half_of_fused() {
        return not_simulated(
            format!("`lora_targets` {given} without {other}, which peft refuses since one weight holds both"),
            OTHER_TARGETS,
        );
    }
    if setup.dora {
        return not_simulated(
            "`dora` and adapters on experts, which peft refuses together (\"Invalid or unsupported variant combination\")".into(),
            ways![
                leave "dora" => |s, _| s.dora = false,
                set "lora_targets" = "attention" => |s, _| s.lora_targets = Targets::Attention,
            ],
        );
    }
    if setup.lora_dropout > 0.0 {
        return not_simulated(
            "`lora_dropout` above 0 and adapters on experts, which peft refuses together".into(),
            ways![
                set "lora_dropout" = "0" => |s, _| s.lora_dropout = 0.0,
                set "lora_targets" = "attention" => |s, _| s.lora_targets = Targets::Attention,
            ],
        );
    }
    Ok(())
}

/// Checks that the model can be trained with 4-bit weights, which peft on transformers supports for language models
/// only.
fn quantisable(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.freeze != Freeze::Qlora {
        return Ok(());
    }
    if !model.has_plain_maps() {
        return not_simulated(
            "`freeze` qlora, for which bitsandbytes leaves its maps as they are".into(),
            ways![set "freeze" = "lora" => |s, _| s.freeze = Freeze::Lora,],
        );
    }
    if model.takes().text {
        return Ok(());
    }
    let model = model.name.clone();
    Err(SimulateError::NotQuantised { model }.into())
}

/// Checks that a setup trains weights as they are stored.
fn stored_weights_fit(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let qlora = setup.freeze == Freeze::Qlora;
    match model.stored {
        Stored::Plain => Ok(()),
        Stored::Mxfp4 if qlora => not_simulated(
            "`freeze` qlora and a `quantization_config` of mxfp4, which transformers does not quantise again".into(),
            ways![set "freeze" = "lora" => |s, _| s.freeze = Freeze::Lora,],
        ),
        Stored::Mxfp4 if setup.precision.weights() != DType::Bf16 => not_simulated(
            format!(
                "`precision` {} and experts in mxfp4, which are dequantised to bf16",
                setup.precision.name()
            ),
            ways![
                set "precision" = "bf16" => |s, _| s.precision = Precision::Bf16,
                set "precision" = "bf16-amp" => |s, _| s.precision = Precision::Bf16Amp,
            ],
        ),
        Stored::Nf4(_) if !qlora => not_simulated(
            format!(
                "`freeze` {} and weights that its `quantization_config` keeps in 4 bits",
                setup.freeze.name()
            ),
            ways![
                set "freeze" = "qlora" => |s, _| s.freeze = Freeze::Qlora,
                set "freeze" = "qlora", "precision" = "bf16" => |s, _| {
                    (s.freeze, s.precision) = (Freeze::Qlora, Precision::Bf16);
                },
            ],
        ),
        // Tools set it anew for the card; of 16 bits both are of one size.
        Stored::Nf4(compute) if compute.width() != setup.precision.products().width() => not_simulated(
            format!(
                "`precision` {} and `bnb_4bit_compute_dtype` {}",
                setup.precision.name(),
                compute.name()
            ),
            ways![
                set "precision" = "bf16" => |s, _| s.precision = Precision::Bf16,
                set "precision" = "amp-fp16" => |s, _| s.precision = Precision::AmpFp16,
                set "precision" = "fp32" => |s, _| s.precision = Precision::Fp32,
            ],
        ),
        Stored::Mxfp4 | Stored::Nf4(_) => Ok(()),
    }
}

/// Refuses packages that replace a part of the model's forward and are not simulated.
fn kernels_are_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
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
        format!(
            "`packages` {}: {why} (a dry run tells: `vramscope dry-run`)",
            setup.packages.name()
        ),
        ways![set "packages" = "none" => |s, _| s.packages = KernelPackages::None,],
    )
}

/// Checks that Liger replaces the forward of the model's family.
fn loss_is_fused(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.loss != Loss::FusedLinear {
        return loss_is_simulated(model, setup);
    }
    let name = model.name.clone();
    match model.config.family().support().liger {
        Liger::Replaces => Ok(()),
        Liger::Fails => Err(SimulateError::LigerFails { model: name }.into()),
        Liger::Unknown => Err(SimulateError::NoLiger { model: name }.into()),
        Liger::NotSimulated => not_simulated(
            "Liger's fused loss".into(),
            ways![set "loss" = "full" => |s, _| s.loss = Loss::Full,],
        ),
    }
}

/// Checks that Liger has kernels for the model's family.
fn liger_knows(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.liger.is_empty() || model.liger_patches(setup).is_some() {
        return Ok(());
    }
    not_simulated(
        format!(
            "`liger` {}, whose kernels are simulated for no model of its kind",
            setup.liger.name()
        ),
        ways![set "liger" = "none" => |s, _| s.liger = LigerKernels::NONE,],
    )
}

/// Models for which TRL 1.16's fused head fails on an H100 (no `last_hidden_state` among the outputs), IDEFICS, whose steps
/// under TRL took up to 12% more than with that head, and models with an encoder, whose labels TRL's head would shift.
const WITHOUT_FUSED_HEAD: [&str; 6] = [
    "idefics",
    "kosmos-2",
    "kosmos-2.5",
    "pix2struct",
    "pp_formulanet",
    "qwen2_5_omni_thinker",
];

/// Checks that DPO has a reference model.
fn reference_fits(setup: &Setup) -> Result<(), Refused> {
    match (setup.trainer, setup.reference) {
        (TrainerKind::MsSwiftDpo, Reference::None | Reference::Precomputed) => not_simulated(
            format!(
                "ms-swift's DPO and `reference` {}, which it refuses",
                setup.reference.name()
            ),
            ways![set "reference" = "every_step" => |s, _| s.reference = Reference::EveryStep,],
        ),
        (TrainerKind::TrlDpo, Reference::None) => not_simulated(
            "TRL's DPO and `reference` none, whose loss compares with a reference model".into(),
            ways![
                set "reference" = "every_step" => |s, _| s.reference = Reference::EveryStep,
                set "reference" = "precomputed" => |s, _| s.reference = Reference::Precomputed,
            ],
        ),
        _ => Ok(()),
    }
}

const OTHER_TRAINER: &[WayOut] = ways![set "trainer" = "transformers" => |s, _| s.trainer = TrainerKind::Transformers,];

/// Checks that TRL's trainers take the setup, and that what they make of it is simulated.
fn trl_is_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    reference_fits(setup)?;
    if setup.trainer == TrainerKind::MsSwiftDpo {
        return swift_dpo_is_simulated(model, setup);
    }
    if !setup.trainer.is_trl() {
        return Ok(());
    }
    grpo_options::check(model, setup)?;
    let is_dpo = setup.trainer == TrainerKind::TrlDpo;
    let named_head = matches!(&setup.lora_targets, Targets::Named(names) if names.iter().any(|name| name == "lm_head"));
    let adapters = model.config.family().support().adapters;
    let has_experts = matches!(
        adapters,
        AdapterMaps::BesideExperts | AdapterMaps::BesideExpertsAndRouter | AdapterMaps::BesideOtherExperts
    );
    let images = setup.images > 0 && model.takes().parts;
    let reasons: [(bool, &str, &[_]); 7] = [
        (!model.takes().text, "a trainer of TRL", OTHER_TRAINER),
        (
            WITHOUT_FUSED_HEAD.contains(&model.model_type),
            "a trainer of TRL, whose head its outputs do not fit",
            OTHER_TRAINER,
        ),
        (
            setup.loss == Loss::FusedLinear,
            "TRL and Liger's fused loss, where TRL makes no logits anyway",
            ways![set "loss" = "full" => |s, _| s.loss = Loss::Full,],
        ),
        (has_experts, "TRL, which adds its experts' balance loss", OTHER_TRAINER),
        (
            named_head,
            "TRL and adapters of `lm_head`, which TRL refuses",
            OTHER_TARGETS,
        ),
        (
            is_dpo && setup.is_packed(),
            "TRL's DPO and packed samples",
            ways![set "packing" = "padded" => |s, _| s.packing = Packing::Padded,],
        ),
        (
            is_dpo && images && setup.reference == Reference::Precomputed,
            "`reference` precomputed and images, which TRL refuses",
            ways![set "reference" = "every_step" => |s, _| s.reference = Reference::EveryStep,],
        ),
    ];
    match reasons.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, given, ways)) => not_simulated(given.into(), ways),
    }
}

/// Checks that what ms-swift's DPO makes of the setup is simulated.
fn swift_dpo_is_simulated(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let reasons: [(bool, &str, &[_]); 3] = [
        (!model.takes().text, "ms-swift's DPO", OTHER_TRAINER),
        (
            setup.is_packed(),
            "ms-swift's DPO and packed samples",
            ways![set "packing" = "padded" => |s, _| s.packing = Packing::Padded,],
        ),
        (
            setup.loss != Loss::Full,
            "ms-swift's DPO and Liger's fused loss, which computes no loss there",
            ways![set "loss" = "full" => |s, _| s.loss = Loss::Full,],
        ),
    ];
    match reasons.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, given, ways)) => not_simulated(given.into(), ways),
    }
}

/// Refuses Muon, which is two optimizers, where the program that runs the steps has one.
fn muon_runs(setup: &Setup) -> Result<(), Refused> {
    if setup.optim != Optimizer::Muon {
        return Ok(());
    }
    if setup.trainer.is_derived() {
        return not_simulated(
            "`optim` muon under a trainer, for which transformers 5.17 has no name".into(),
            ways![
                set "trainer" = "loop" => |s, _| s.trainer = TrainerKind::Loop,
                set "optim" = "adamw_fused" => |s, _| s.optim = Optimizer::AdamwFused,
            ],
        );
    }
    if setup.precision.has_scaler() {
        return not_simulated(
            "`optim` muon and autocast to fp16, whose GradScaler would step two optimizers".into(),
            ways![set "precision" = "amp-bf16" => |s, _| s.precision = Precision::AmpBf16,],
        );
    }
    Ok(())
}

/// Refuses trained weights in fp16 beside a GradScaler, which raises for their gradients (`_unscale_grads_` in
/// `torch/amp/grad_scaler.py`).
fn gradients_are_scaled(setup: &Setup) -> Result<(), Refused> {
    let adapts = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
    if setup.precision != Precision::Fp16Amp || adapts {
        return Ok(());
    }
    not_simulated(
        format!(
            "`precision` fp16-amp and `freeze` {}, whose gradients in fp16 GradScaler refuses",
            setup.freeze.name()
        ),
        ways![
            set "precision" = "amp-fp16" => |s, _| s.precision = Precision::AmpFp16,
            set "precision" = "bf16-amp" => |s, _| s.precision = Precision::Bf16Amp,
        ],
    )
}

/// Refuses `compile` with settings under which no compiled step was measured: the range that is told would be of others.
fn compiled_was_measured(setup: &Setup) -> Result<(), Refused> {
    let reasons = [
        (setup.trainer.is_trl(), "TRL"),
        (setup.freeze == Freeze::Qlora, "4-bit weights"),
        (setup.loss == Loss::FusedLinear, "Liger's fused loss"),
        (setup.loss != Loss::Full, "another `loss` than full"),
        (setup.attn == Attention::FlashAttention2, "`attn` flash_attention_2"),
        (!setup.lengths.is_empty(), "`lengths` that differ"),
        (setup.ema, "`ema`"),
    ];
    match reasons.into_iter().find(|(applies, _)| setup.compile && *applies) {
        None => Ok(()),
        Some((_, with)) => not_simulated(
            format!("`compile` and {with}, of which no compiled step was measured"),
            ways![leave "compile" => |s, _| s.compile = false,],
        ),
    }
}

/// Checks that PyTorch's own kernels run the convolutions along a sequence: in fp16 cuDNN does, with workspaces that are
/// unknown (`use_cudnn_depthwise` in `aten/src/ATen/native/Convolution.cpp`).
fn convolution_is_known(model: &Model, setup: &Setup) -> Result<(), Refused> {
    let installed = setup.packages.packages().contains(&CAUSAL_CONV1D);
    if setup.precision.products() != DType::F16 || installed || !model.absent_packages().contains(&CAUSAL_CONV1D) {
        return Ok(());
    }
    not_simulated(
        "products in fp16".into(),
        ways![set "precision" = "amp-bf16" => |s, _| s.precision = Precision::AmpBf16,],
    )
}
