//! Ways out of a refusal on several GPUs: changes of the setup, of which each is tried before it is named.

use super::parallel::can_train;
use super::way_out::{WayOut, tried, ways};
use super::{SimulateError, Unshared};
use crate::setup::{
    ExpertAdapters, Freeze, Loss, Offload, Optimizer, Parallel, ParameterNames, Precision, Strategy, Targets,
    TrainerKind, Zero, ZeroGrad,
};
use crate::{Model, Setup};

/// Codes of refusals, and changes that end them if nothing else stands in their way.
const CANDIDATES: &[(&[&str], &[WayOut])] = &[
    (
        &["adapted_experts", "fsdp1_experts"],
        ways![
            set "strategy" = "ddp" => |_, p| p.strategy = Strategy::Ddp,
            set "lora_targets" = "attention", "lora_experts" = "targets" => |s, _| {
                    (s.lora_targets, s.lora_experts) = (Targets::Attention, ExpertAdapters::default());
                },
        ],
    ),
    (
        &["fsdp1_scaler"],
        ways![
            set "optim" = "adamw" => |s, _| s.optim = Optimizer::Adamw,
            set "precision" = "amp-bf16" => |s, _| s.precision = Precision::AmpBf16,
        ],
    ),
    (&["compiled"], ways![leave "compile" => |s, _| s.compile = false,]),
    (
        &["deepspeed_keys"],
        ways![
            set "strategy" = "deepspeed2" => to_deepspeed2,
            leave "zero" => |_, p| p.zero = Zero::default(),
        ],
    ),
    (
        &["deepspeed_offload"],
        ways![
            set "strategy" = "deepspeed2" => to_deepspeed2,
            set "strategy" = "deepspeed3" => |_, p| p.strategy = Strategy::Deepspeed3,
            set "offload" = "true" => |_, p| p.offload = Offload::Shards,
            leave "offload" => without_offload,
        ],
    ),
    (
        &[
            "deepspeed_adagrad",
            "flat_muon",
            "fsdp_adafactor",
            "fsdp_adafactor_torch",
            "fsdp_adagrad",
            "fsdp_bitsandbytes",
            "pipeline_optim",
            "tensor_optim",
        ],
        ways![
            set "optim" = "adamw_fused" => |s, _| s.optim = Optimizer::AdamwFused,
        ],
    ),
    (
        &["deepspeed_parameters"],
        ways![
            set "offload" = "optimizer" => |_, p| p.offload = Offload::Optimizer,
        ],
    ),
    (
        &["deepspeed_autocast"],
        ways![set "precision" = "bf16" => |s, _| s.precision = Precision::Bf16,],
    ),
    (
        &["deepspeed_shared"],
        ways![
            set "strategy" = "deepspeed2" => to_deepspeed2,
            set "strategy" = "deepspeed2", "offload" = "optimizer" => to_deepspeed2_offloaded,
            set "strategy" = "fsdp" => |_, p| p.strategy = Strategy::Fsdp,
        ],
    ),
    (
        &["deepspeed_stage0"],
        ways![
            set "strategy" = "deepspeed2" => to_deepspeed2,
            leave "offload" => without_offload,
        ],
    ),
    (
        &["fsdp1_types"],
        ways![
            set "trainer" = "trl_sft" => |s, _| s.trainer = TrainerKind::TrlSft,
            set "strategy" = "fsdp" => |_, p| p.strategy = Strategy::Fsdp,
            set "freeze" = "lora" => |s, _| s.freeze = Freeze::Lora,
        ],
    ),
    (
        &["deepspeed_ema", "fsdp_ema"],
        ways![leave "ema" => |s, _| s.ema = false,],
    ),
    (
        &["fsdp_options"],
        ways![
            set "strategy" = "fsdp" => |_, p| p.strategy = Strategy::Fsdp,
            leave "mp", "offload" => |_, p| (p.mp, p.offload) = (false, Offload::None),
        ],
    ),
    (
        &["deepspeed_zero_grad", "pipeline_zero_grad"],
        ways![
            leave "zero_grad" => |s, _| s.zero_grad = ZeroGrad::ToNone,
        ],
    ),
    (
        &["saved_sharded"],
        ways![
            leave "saved_modules" => |s, _| s.saved_modules = ParameterNames::default(),
            set "strategy" = "deepspeed2" => |_, p| (p.strategy, p.mp) = (Strategy::Deepspeed2, false),
            set "strategy" = "ddp" => |_, p| (p.strategy, p.mp) = (Strategy::Ddp, false),
        ],
    ),
    (&["tensor_dora"], ways![leave "dora" => |s, _| s.dora = false,]),
    (&["pipeline_idle"], ways![set "images" = "1" => |s, _| s.images = 1,]),
    (
        &["loop_alone", "fsdp_without_text", "mp_trainer"],
        ways![
            set "strategy" = "ddp" => |_, p| (p.strategy, p.mp) = (Strategy::Ddp, false),
            set "strategy" = "deepspeed2" => |_, p| (p.strategy, p.mp) = (Strategy::Deepspeed2, false),
            set "trainer" = "loop" => |s, _| s.trainer = TrainerKind::Loop,
        ],
    ),
    (
        &["grpo_sharded"],
        ways![
            set "strategy" = "deepspeed3" => |_, p| p.strategy = Strategy::Deepspeed3,
            set "strategy" = "ddp" => |_, p| p.strategy = Strategy::Ddp,
        ],
    ),
    (
        &["mp_autocast"],
        ways![
            set "precision" = "fp32" => |s, _| s.precision = Precision::Fp32,
            set "precision" = "bf16" => |s, _| s.precision = Precision::Bf16,
        ],
    ),
    (
        &["pipeline_cache"],
        ways![set "use_cache" = "false" => |s, _| s.use_cache = Some(false),],
    ),
    (
        &["pipeline_extras", "tensor_extras"],
        ways![
            leave "clip", "ema" => |s, _| (s.clip, s.ema) = (false, false),
        ],
    ),
    (
        &["pipeline_freeze", "tensor_bits"],
        ways![set "freeze" = "none" => |s, _| s.freeze = Freeze::NONE,],
    ),
    (
        &["pipeline_loss", "tensor_loss"],
        ways![set "loss" = "full" => |s, _| s.loss = Loss::Full,],
    ),
    (
        &["pipeline_model", "pipeline_tied", "tensor_model"],
        ways![
            set "strategy" = "fsdp" => |_, p| p.strategy = Strategy::Fsdp,
            set "strategy" = "ddp" => |_, p| p.strategy = Strategy::Ddp,
        ],
    ),
    (
        &["pipeline_ragged"],
        ways![
            leave "lengths", "image_sizes" => |s, _| {
                    s.lengths.clear();
                    s.image_sizes.clear();
                },
        ],
    ),
    (
        &["pipeline_scaler"],
        ways![set "precision" = "amp-bf16" => |s, _| s.precision = Precision::AmpBf16,],
    ),
    (&["stage_elsewhere"], ways![leave "stage" => |_, p| p.stage = None,]),
];

/// Changes that may end the refusal of this code.
fn candidates(code: &str) -> &'static [WayOut] {
    let found = CANDIDATES.iter().find(|(codes, _)| codes.contains(&code));
    found.map_or(&[][..], |(_, ways)| *ways)
}

fn to_deepspeed2(_: &mut Setup, parallel: &mut Parallel) {
    parallel.strategy = Strategy::Deepspeed2;
}

fn to_deepspeed2_offloaded(_: &mut Setup, parallel: &mut Parallel) {
    (parallel.strategy, parallel.offload) = (Strategy::Deepspeed2, Offload::Optimizer);
}

fn without_offload(_: &mut Setup, parallel: &mut Parallel) {
    parallel.offload = Offload::None;
}

/// Ways out of a refusal, each of which was tried and answers. Where a shorter one does, those that change more are left
/// out.
pub fn ways_out(model: &Model, run: (&Setup, &Parallel), why: &Unshared) -> Vec<WayOut> {
    tried(candidates(&why.code), run, |setup, parallel| {
        can_train(model, setup, parallel).is_ok()
    })
}

/// The refusal with its ways out.
pub(super) fn with_ways_out(model: &Model, run: (&Setup, &Parallel), why: SimulateError) -> SimulateError {
    let SimulateError::Parallel(why) = why else {
        return why;
    };
    let ways = ways_out(model, run, &why);
    SimulateError::Parallel(Unshared {
        ways: ways.iter().map(WayOut::change).collect(),
        ..why
    })
}
