//! Ways out of a refusal: changes of the setup, of which each is tried before it is named.

use super::parallel::can_train;
use super::{SimulateError, Unshared};
use crate::setup::{
    ExpertAdapters, Freeze, Loss, Offload, Optimizer, Parallel, Precision, Strategy, Targets, TrainerKind, Zero,
    ZeroGrad,
};
use crate::{Model, Setup};

/// A change that may end a refusal.
#[derive(Debug, Clone, Copy)]
pub struct WayOut {
    /// What to do, in English and with the names of settings: "set `loss` to full".
    pub text: &'static str,
    change: fn(&mut Setup, &mut Parallel),
}

impl WayOut {
    /// The setup with the change.
    #[must_use]
    pub fn of(&self, setup: &Setup, parallel: &Parallel) -> (Setup, Parallel) {
        let (mut setup, mut parallel) = (setup.clone(), *parallel);
        (self.change)(&mut setup, &mut parallel);
        (setup, parallel)
    }
}

macro_rules! ways {
    ($($text:literal => $change:expr),+ $(,)?) => {
        &[$(WayOut { text: $text, change: $change }),+]
    };
}

/// Codes of refusals, and changes that end them if nothing else stands in their way.
const CANDIDATES: &[(&[&str], &[WayOut])] = &[
    (
        &["adapted_experts"],
        ways![
            "set `strategy` to ddp" => |_, p| p.strategy = Strategy::Ddp,
            "set `lora_targets` to attention and `lora_experts` to targets" => |s, _| {
                    (s.lora_targets, s.lora_experts) = (Targets::Attention, ExpertAdapters::default());
                },
        ],
    ),
    (&["compiled"], ways!["leave `compile` out" => |s, _| s.compile = false]),
    (
        &["deepspeed_contiguous"],
        ways![
            "leave `zero.contiguous_gradients` out" => |_, p| p.zero.contiguous_gradients = Zero::default().contiguous_gradients,
        ],
    ),
    (
        &["deepspeed_extras"],
        ways![
            "leave `ema` and `zero_grad` out" => |s, _| (s.ema, s.zero_grad) = (false, ZeroGrad::ToNone),
        ],
    ),
    (
        &["deepspeed_fused"],
        ways![
            "set `loss` to full" => |s, _| s.loss = Loss::Full,
            "set `strategy` to deepspeed2" => to_deepspeed2,
            "set `strategy` to deepspeed2 and `offload` to optimizer" => to_deepspeed2_offloaded,
        ],
    ),
    (
        &["deepspeed_keys"],
        ways![
            "set `strategy` to deepspeed2" => to_deepspeed2,
            "leave `zero` out" => |_, p| p.zero = Zero::default(),
        ],
    ),
    (
        &["deepspeed_offload"],
        ways![
            "set `strategy` to deepspeed2" => to_deepspeed2,
            "set `strategy` to deepspeed3" => |_, p| p.strategy = Strategy::Deepspeed3,
            "set `offload` to true" => |_, p| p.offload = Offload::Shards,
            "leave `offload` out" => without_offload,
        ],
    ),
    (
        &["deepspeed_optim", "pipeline_optim", "sharded_states", "tensor_optim"],
        ways![
            "set `optim` to adamw_fused" => |s, _| s.optim = Optimizer::AdamwFused,
        ],
    ),
    (
        &["deepspeed_parameters"],
        ways![
            "set `offload` to optimizer" => |_, p| p.offload = Offload::Optimizer,
        ],
    ),
    (
        &["deepspeed_precision"],
        ways!["set `precision` to bf16" => |s, _| s.precision = Precision::Bf16],
    ),
    (
        &["deepspeed_qlora"],
        ways!["set `freeze` to lora" => |s, _| s.freeze = Freeze::Lora],
    ),
    (
        &["deepspeed_shared"],
        ways![
            "set `strategy` to deepspeed2" => to_deepspeed2,
            "set `strategy` to deepspeed2 and `offload` to optimizer" => to_deepspeed2_offloaded,
            "set `strategy` to fsdp" => |_, p| p.strategy = Strategy::Fsdp,
        ],
    ),
    (
        &["deepspeed_stage0"],
        ways![
            "set `strategy` to deepspeed2" => to_deepspeed2,
            "leave `offload` out" => without_offload,
        ],
    ),
    (
        &["fsdp_extras"],
        ways![
            "leave `accum`, `clip` and `ema` out" => |s, _| (s.accum, s.clip, s.ema) = (1, false, false),
        ],
    ),
    (
        &["fsdp_options"],
        ways![
            "set `strategy` to fsdp" => |_, p| p.strategy = Strategy::Fsdp,
            "leave `mp` and `offload` out" => |_, p| (p.mp, p.offload) = (false, Offload::None),
        ],
    ),
    (
        &["fsdp_zero_grad", "pipeline_zero_grad"],
        ways![
            "leave `zero_grad` out" => |s, _| s.zero_grad = ZeroGrad::ToNone,
        ],
    ),
    (&["idle_tower"], ways!["set `images` to 1" => |s, _| s.images = 1]),
    (
        &["loop_alone", "fsdp_adapters", "fsdp_parts", "mp_trainer"],
        ways![
            "set `strategy` to ddp" => |_, p| (p.strategy, p.mp) = (Strategy::Ddp, false),
            "set `strategy` to deepspeed2" => |_, p| (p.strategy, p.mp) = (Strategy::Deepspeed2, false),
            "set `trainer` to loop" => |s, _| s.trainer = TrainerKind::Loop,
        ],
    ),
    (
        &["grpo_alone"],
        ways!["set `trainer` to loop" => |s, _| s.trainer = TrainerKind::Loop],
    ),
    (
        &["deepspeed_preferences"],
        ways!["set `strategy` to deepspeed2" => to_deepspeed2],
    ),
    (
        &["fsdp_precision"],
        ways!["set `precision` to amp-bf16" => |s, _| s.precision = Precision::AmpBf16],
    ),
    (
        &["mp_autocast"],
        ways![
            "set `precision` to fp32" => |s, _| s.precision = Precision::Fp32,
            "set `precision` to bf16" => |s, _| s.precision = Precision::Bf16,
        ],
    ),
    (
        &["pipeline_cache"],
        ways!["set `use_cache` to false" => |s, _| s.use_cache = Some(false)],
    ),
    (
        &["pipeline_extras", "tensor_extras"],
        ways![
            "leave `clip` and `ema` out" => |s, _| (s.clip, s.ema) = (false, false),
        ],
    ),
    (
        &["pipeline_freeze", "tensor_adapters"],
        ways!["set `freeze` to none" => |s, _| s.freeze = Freeze::None],
    ),
    (
        &["pipeline_loss", "tensor_loss"],
        ways!["set `loss` to full" => |s, _| s.loss = Loss::Full],
    ),
    (
        &["pipeline_model", "pipeline_tied", "tensor_model", "unused_parameters"],
        ways![
            "set `strategy` to fsdp" => |_, p| p.strategy = Strategy::Fsdp,
            "set `strategy` to ddp" => |_, p| p.strategy = Strategy::Ddp,
        ],
    ),
    (
        &["pipeline_ragged"],
        ways![
            "leave `lengths` and `image_sizes` out" => |s, _| {
                    s.lengths.clear();
                    s.image_sizes.clear();
                },
        ],
    ),
    (
        &["pipeline_scaler"],
        ways!["set `precision` to amp-bf16" => |s, _| s.precision = Precision::AmpBf16],
    ),
    (
        &["stage_elsewhere"],
        ways!["leave `stage` out" => |_, p| p.stage = None],
    ),
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
pub fn ways_out(model: &Model, (setup, parallel): (&Setup, &Parallel), why: &Unshared) -> Vec<WayOut> {
    let mut out: Vec<WayOut> = Vec::new();
    for way in candidates(&why.code) {
        let (setup, parallel) = way.of(setup, parallel);
        let says_more = out.iter().any(|shorter| way.text.starts_with(shorter.text));
        if !says_more && can_train(model, &setup, &parallel).is_ok() {
            out.push(*way);
        }
    }
    out
}

/// The refusal with its ways out.
pub(super) fn with_ways_out(model: &Model, run: (&Setup, &Parallel), why: SimulateError) -> SimulateError {
    let SimulateError::Parallel(why) = why else {
        return why;
    };
    let ways = ways_out(model, run, &why);
    if ways.is_empty() {
        return SimulateError::Parallel(why);
    }
    let texts: Vec<&str> = ways.iter().map(|way| way.text).collect();
    SimulateError::Parallel(Unshared {
        message: format!("{}; {}", why.message, texts.join(", or ")),
        ..why
    })
}
