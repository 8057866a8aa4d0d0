//! Checks of what TRL's GRPO takes.

use super::sampling::MOST_NEW_TOKENS;
use super::way_out::{Refused, ways};
use crate::setup::{Generation, Reference, TrainerKind};
use crate::{Model, Setup};

/// Checks that GRPO can begin with the setup, and that every optimizer step, or one of several that are all alike, generates.
pub(super) fn check(model: &Model, setup: &Setup) -> Result<(), Refused> {
    if setup.trainer != TrainerKind::TrlGrpo {
        return Ok(());
    }
    let (every, accum) = (setup.generated_micro_batches(), setup.accum.max(1));
    let [_, completion] = setup.prompt_and_completion();
    let by_model = setup.generation == Generation::Transformers;
    let reasons: [(bool, &str, &[_]); 7] = [
        (
            model.takes().parts,
            "TRL's GRPO and images yet",
            ways![set "trainer" = "trl_sft" => |s, _| s.trainer = TrainerKind::TrlSft,],
        ),
        (
            !setup.lengths.is_empty(),
            "TRL's GRPO and `lengths`, of which it pads prompts and completions apart",
            ways![leave "lengths" => |s, _| s.lengths.clear(),],
        ),
        (
            setup.reference == Reference::Precomputed,
            "TRL's GRPO and `reference` precomputed, which it does not have",
            ways![
                set "reference" = "every_step" => |s, _| s.reference = Reference::EveryStep,
                set "reference" = "none" => |s, _| s.reference = Reference::None,
            ],
        ),
        (
            setup.batch.saturating_mul(every) < 2,
            "one completion a generation: GRPO needs two or more",
            ways![
                set "batch" = "2" => |s, _| s.batch = 2,
                set "steps_per_generation" = "2" => |s, _| s.steps_per_generation = Some(2),
            ],
        ),
        (
            every.max(accum) % every.min(accum) != 0,
            "TRL's GRPO and generations that begin at another place of each optimizer step",
            ways![leave "steps_per_generation" => |s, _| s.steps_per_generation = None,],
        ),
        (
            by_model && completion > MOST_NEW_TOKENS,
            "TRL's GRPO and completions of more than 4096 tokens, generated one by one",
            ways![
                set "generation" = "vllm" => |s, _| s.generation = Generation::Vllm,
                set "completion" = "4096" => |s, _| s.completion = Some(4096),
            ],
        ),
        (
            by_model && !model.absent_packages().is_empty(),
            "generation, whose states between two tokens were never recorded",
            ways![set "generation" = "vllm" => |s, _| s.generation = Generation::Vllm,],
        ),
    ];
    match reasons.into_iter().find(|(applies, ..)| *applies) {
        None => Ok(()),
        Some((_, given, ways)) => Err(Refused::NotSimulated {
            given: given.into(),
            ways,
        }),
    }
}
