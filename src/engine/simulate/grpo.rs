//! Loss of TRL's GRPOTrainer with `loss_type="dapo"`, its default (`GRPOTrainer._compute_loss`, 1.16), and what it logs.

use super::grpo_generation::{Rollout, completion_labels};
use super::steps::Trainer;
use super::trl::GRPO;
use crate::dtype::DType;
use crate::model::forward::Batch;
use crate::tape::{Tape, Tensor};

impl Trainer {
    /// The loss of a micro-batch of completions.
    pub(super) fn grpo_loss(&self, t: &Tape, rollout: &Rollout) -> Option<Tensor> {
        let [ids, mask] = [0, 1].map(|part| t.cat(&[&rollout.prompts[part], &rollout.completions[part]], 1));
        let labels = completion_labels(t, &ids, &mask);
        let batch = Batch {
            ids: Some(ids),
            labels: Some(labels),
            others: vec![mask],
            ..Batch::default()
        };
        let made = self.scored(t, self.policy(), &batch, GRPO)?;
        let [_, completion] = self.run.setup.prompt_and_completion();
        let kept = |x: &Tensor| t.cat(&[&t.narrow(x, 1, completion)], 0);
        let log_probs = kept(&made.figures.log_probs);
        let entropies = made.figures.entropy.as_ref().map(kept);
        // Labels and the output end with `_get_per_token_logps_and_entropies`; ids and mask with the loss.
        let held = (batch.ids.clone(), batch.others.clone());
        drop((batch, made));
        let counted = &rollout.completions[1];
        let PerToken {
            loss: per_token,
            ratio,
            divergence,
            held: operands,
        } = per_token(t, rollout, &log_probs);
        let normalizer = t.no_grad(|| {
            let clamped = t.compute(&rollout.items, DType::I64, "clamp");
            let shared = t.compute(&clamped, DType::F32, "div");
            drop(clamped);
            let accumulated = t.scale(&shared);
            drop(shared);
            t.scale(&accumulated)
        });
        let total = t.sum_all(&t.mul(&per_token, counted));
        let loss = t.div(&total, &normalizer);
        drop(total);
        t.no_grad(|| {
            divergence.iter().for_each(|kl| mean_of_counted(t, kl, counted));
            entropies
                .iter()
                .for_each(|entropy| mean_of_counted(t, entropy, counted));
            clip_ratios(t, &ratio, &t.unsqueeze(&rollout.advantages, 1), counted);
        });
        drop((per_token, divergence, ratio, operands));
        drop((entropies, log_probs, held, normalizer));
        Some(loss)
    }
}

/// The loss of each token, [rows, completion], before those that count are chosen, and variables that outlive it.
struct PerToken {
    loss: Tensor,
    /// `coef_1`.
    ratio: Tensor,
    divergence: Option<Tensor>,
    held: Vec<Tensor>,
}

/// The clipped loss of each token of the completions.
fn per_token(t: &Tape, rollout: &Rollout, log_probs: &Tensor) -> PerToken {
    let old = rollout.old.clone().unwrap_or_else(|| log_probs.detach());
    let advantages = t.unsqueeze(&rollout.advantages, 1);
    let log_ratio = t.sub(log_probs, &old);
    let ratio = t.exp(&log_ratio);
    let divergence = rollout
        .reference
        .as_ref()
        .map(|reference| divergence(t, reference, log_probs, &ratio));
    let clipped = t.clamp_between(&ratio);
    let unclipped = t.mul(&ratio, &advantages);
    let clipped_loss = t.mul(&clipped, &advantages);
    let least = t.lesser(&unclipped, &clipped_loss);
    let mut per_token = t.neg(&least);
    drop(least);
    if let Some(ratio) = &rollout.ratio {
        per_token = t.mul(&per_token, ratio);
    }
    if let Some(divergence) = &divergence {
        let weighted = t.scale(divergence);
        per_token = t.add(&per_token, &weighted);
    }
    PerToken {
        loss: per_token,
        ratio,
        divergence,
        held: vec![clipped_loss, unclipped, clipped, log_ratio, old],
    }
}

/// `exp(ref - policy) - (ref - policy) - 1`, times the importance ratio (`use_bias_correction_kl`, the default).
fn divergence(t: &Tape, reference: &Tensor, policy: &Tensor, ratio: &Tensor) -> Tensor {
    let difference = t.sub(reference, policy);
    let exponential = t.exp(&difference);
    drop(difference);
    let difference = t.sub(reference, policy);
    let above = t.sub(&exponential, &difference);
    drop((difference, exponential));
    let divergence = t.shift(&above);
    drop(above);
    t.mul(&divergence, ratio)
}

/// `global_masked_mean`.
fn mean_of_counted(t: &Tape, x: &Tensor, counted: &Tensor) {
    let masked = t.mul(&x.detach(), counted);
    let sum = t.reduce_all(&masked, "sum");
    drop(masked);
    let count = t.reduce_all(counted, "sum");
    let count = t.compute(&count, DType::F32, "float");
    drop((sum, count));
}

/// What is logged of clipped probability ratios.
fn clip_ratios(t: &Tape, ratio: &Tensor, advantages: &Tensor, counted: &Tensor) {
    let is_clipped = || {
        let of_token = t.compute(ratio, DType::Bool, "comparison");
        let of_sample = t.compute(advantages, DType::Bool, "comparison");
        let both = t.compute(ratio, DType::Bool, "and");
        drop((of_token, of_sample));
        both
    };
    let sides = [is_clipped(), is_clipped()];
    let region = t.compute(ratio, DType::Bool, "or");
    let float = |x: &Tensor| t.compute(x, DType::F32, "float");
    sides
        .iter()
        .chain([&region])
        .for_each(|x| mean_of_counted(t, &float(x), counted));
    for side in &sides {
        let marks = float(side);
        let masked = t.mul(&marks, counted);
        drop(marks);
        let of_sample = t.reduce_dim(&masked, 1, false, "sum");
        drop(masked);
        // `nanmin` or `nanmax`.
        let known = t.compute(&of_sample, DType::Bool, "comparison");
        drop(t.index_ids(&known, of_sample.numel(), DType::F32));
    }
}
