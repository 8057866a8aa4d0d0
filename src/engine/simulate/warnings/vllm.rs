//! Warning of what vLLM takes beside a simulated run.

use super::{Severity, Warning};
use crate::setup::{Setup, TrainerKind};

/// Tells what of vLLM is left out, from TRL's source (`trl/generation/vllm_generation.py`, 1.16).
pub(super) fn of(setup: &Setup) -> Option<Warning> {
    let generates = setup.trainer == TrainerKind::TrlGrpo && setup.generation.is_vllm();
    generates.then(|| Warning {
        code: "vllm".into(),
        severity: Severity::Warning,
        message: "vLLM's own memory is in none of these figures, and was not measured. In the training process \
                  (`vllm_mode` colocate, the default) it takes `vllm_gpu_memory_utilization` of the card, 0.3 unless \
                  you set it, for weights, keys and values: all the time, or with `vllm_enable_sleep_mode` only while \
                  it generates. Give the rest of the card as a limit. A server (`vllm_mode` server) has other GPUs."
            .into(),
        args: Vec::new(),
    })
}
