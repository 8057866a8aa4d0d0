//! Checks of what TRL's GRPO takes.

use super::error::{SimulateError, not_simulated};
use super::sampling::MOST_NEW_TOKENS;
use crate::setup::{Generation, Reference, TrainerKind};
use crate::{Model, Setup};

/// Checks that GRPO can begin with the setup, and that every optimizer step, or one of several that are all alike, generates.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), SimulateError> {
    if setup.trainer != TrainerKind::TrlGrpo {
        return Ok(());
    }
    let (every, accum) = (setup.generated_micro_batches(), setup.accum.max(1));
    let [_, completion] = setup.prompt_and_completion();
    let by_model = setup.generation == Generation::Transformers;
    let reasons = [
        (
            model.takes().parts,
            "TRL's GRPO and images, which was never recorded",
            "a text model",
        ),
        (
            !setup.lengths.is_empty(),
            "TRL's GRPO and `lengths`, of which it pads prompts and completions apart",
            "`seq` and `completion`",
        ),
        (
            setup.reference == Reference::Precomputed,
            "TRL's GRPO and `reference` precomputed, which it does not have",
            "`reference` every_step, or none for `beta` 0",
        ),
        (
            setup.batch.saturating_mul(every) < 2,
            "TRL's GRPO and one completion a generation, of at least two",
            "a greater `batch` or `steps_per_generation`",
        ),
        (
            every.max(accum) % every.min(accum) != 0,
            "TRL's GRPO and generations that begin at another place of each optimizer step",
            "a `steps_per_generation` that divides `accum`, or a multiple of it",
        ),
        (
            by_model && completion > MOST_NEW_TOKENS,
            "TRL's GRPO and completions of more than 4096 tokens, generated one by one",
            "`completion` 4096 or less, or `generation` vllm",
        ),
        (
            by_model && !model.absent_packages().is_empty(),
            "generation, whose states between two tokens were never recorded",
            "`generation` vllm or another model",
        ),
    ];
    match reasons.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, given, instead)) => not_simulated(model, given, instead),
    }
}
