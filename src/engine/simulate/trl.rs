//! Losses of TRL's SFT and DPO trainers (`trl/trainer/sft_trainer.py` and `dpo_trainer.py`, 1.16), with the metrics that
//! they log.

use std::rc::Rc;

use super::build::build;
use super::grpo_generation::Inputs;
use super::steps::Trainer;
use super::wrapper::{Wrapper, wrapped_by};
use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Forward, Run};
use crate::nn::{FusedOutput, TokenScores};
use crate::setup::{Checkpointing, Freeze, Reference, Setup, TrainerKind};
use crate::tape::{Failure, Tape, Tensor, TokenFigures};

/// Figures that each trainer logs beside the loss.
const SFT: TokenFigures = TokenFigures {
    entropy: true,
    mean_logits: false,
    is_top1: true,
};
const DPO: TokenFigures = TokenFigures {
    mean_logits: true,
    ..SFT
};
pub(super) const GRPO: TokenFigures = TokenFigures {
    entropy: true,
    ..REFERENCE
};
pub(super) const REFERENCE: TokenFigures = TokenFigures {
    entropy: false,
    mean_logits: false,
    is_top1: false,
};

/// Returns a prepared setup as the trainer's forwards see it: DPO puts chosen and rejected samples into one batch.
pub(super) fn doubled(mut setup: Setup) -> Setup {
    if setup.trainer.is_trl() || setup.trainer.is_dpo() {
        setup.use_cache = Some(false);
    }
    if setup.trainer.is_dpo() {
        setup.repeat_samples(2);
    }
    setup
}

/// Scope in which the model lies that DPO and GRPO compare with.
pub(super) const REFERENCE_SCOPE: &str = "ref_model";

/// A second copy of the model that is never trained.
pub(super) struct ReferenceModel {
    forward: Box<dyn Forward>,
    run: Run,
    pub params: Vec<Tensor>,
    /// What wraps it for several GPUs.
    pub wrapper: Option<Rc<dyn Wrapper>>,
}

impl ReferenceModel {
    /// Makes the copy that the setup of DPO or GRPO needs, if it does: none beside adapters, which are switched off
    /// instead.
    pub fn of(tape: &Tape, model: &Model, setup: &Setup) -> Option<Self> {
        let adapted = matches!(setup.freeze, Freeze::Lora | Freeze::Qlora);
        let compares = setup.trainer.is_dpo() || setup.trainer == TrainerKind::TrlGrpo;
        let needed = compares && setup.reference == Reference::EveryStep && !adapted;
        needed.then(|| {
            let setup = Setup {
                freeze: Freeze::NONE,
                ckpt: Checkpointing::None,
                ema: false,
                ..setup.clone()
            };
            let built = tape.scope(REFERENCE_SCOPE, || build(tape, model, &setup));
            Self {
                forward: built.forward,
                run: Run::new(model, &setup),
                params: built.params,
                wrapper: None,
            }
        })
    }

    /// The model, and its view of the setup.
    pub fn parts(&self) -> (&dyn Forward, &Run) {
        (self.forward.as_ref(), &self.run)
    }

    /// Computes something with it.
    pub fn apart<R>(t: &Tape, f: impl FnOnce() -> R) -> R {
        t.evaluating(|| t.scope(REFERENCE_SCOPE, f))
    }
}

/// `x.sum()` of a scalar, which `gather_for_metrics` returns as it is.
fn again(t: &Tape, x: Tensor) -> Tensor {
    let sum = t.compute(&x, x.dtype(), "sum");
    drop(x);
    sum
}

/// `(total / count).item() if count > 0`.
fn share(t: &Tape, count: &Tensor) {
    drop(t.compute(count, DType::Bool, "comparison"));
    drop(t.compute(count, DType::F32, "div"));
}

impl Trainer {
    /// Loss of a batch as the setup's trainer computes it.
    pub(super) fn trl_loss(&self, t: &Tape, inputs: &Inputs<'_>) -> Tensor {
        let loss = match inputs {
            Inputs::Batch(batch, items) => match self.run.setup.trainer {
                TrainerKind::TrlDpo => self.dpo_loss(t, batch),
                _ => self.sft_loss(t, batch, *items),
            },
            Inputs::Rollout(rollout) => rollout.as_ref().and_then(|rollout| self.grpo_loss(t, rollout)),
        };
        self.run.drop_cache();
        loss.unwrap_or_else(|| {
            t.fail(|| Failure::HeadNotReplaced);
            t.empty([], DType::F32, "loss")
        })
    }

    /// The model that is trained, and its view of the setup.
    pub(super) fn policy(&self) -> (&dyn Forward, &Run) {
        (self.forward(), &self.run)
    }

    /// Runs a forward of the trained model, or of the one that it is compared with, as what wraps it does.
    pub(super) fn wrapped_of<R>(&self, t: &Tape, run: &Run, forward: impl FnOnce() -> R) -> R {
        wrapped_by(t, self.wrapper_of(run), forward)
    }

    /// What wraps the model with this view of the setup.
    pub(super) fn wrapper_of(&self, run: &Run) -> Option<&Rc<dyn Wrapper>> {
        match std::ptr::eq(run, &raw const self.run) {
            true => self.wrapper.as_ref(),
            false => self.reference.as_ref()?.wrapper.as_ref(),
        }
    }

    /// Runs a forward with TRL's head.
    pub(super) fn scored(
        &self,
        t: &Tape,
        model: (&dyn Forward, &Run),
        batch: &Batch,
        asked: TokenFigures,
    ) -> Option<FusedOutput> {
        let scores = TokenScores::new(self.run.setup.counted_labels(), asked);
        let batch = Batch {
            scores: Some(scores.clone()),
            ..batch.clone()
        };
        let forward = || t.autocast(self.autocast, || model.0.loss(t, model.1, &batch));
        drop(self.wrapped_of(t, model.1, forward));
        drop(batch);
        let made = scores.take()?;
        Some(match self.wrapper_of(model.1) {
            Some(wrapper) => wrapper.wrapped_figures(t, made),
            None => made,
        })
    }

    /// `SFTTrainer.compute_loss`.
    fn sft_loss(&self, t: &Tape, batch: &Batch, items: Option<&Tensor>) -> Option<Tensor> {
        let made = self.scored(t, self.policy(), batch, SFT)?;
        let per_token = t.neg(&made.figures.log_probs);
        let per_token = self.weighted(t, per_token, &made.figures.log_probs);
        let mut loss = t.sum_all(&per_token);
        let counted = items.cloned().unwrap_or_else(|| t.count(&made.mask, &[0, 1]));
        let clamped = t.compute(&counted, DType::I64, "clamp");
        loss = t.div(&loss, &clamped);
        if items.is_some() {
            loss = t.scale(&loss);
        }
        let valid = again(t, t.count(&made.mask, &[0, 1]));
        let entropy = made.figures.entropy.as_ref().map(Tensor::detach);
        let entropy = entropy.map(|entropy| again(t, t.reduce_all(&entropy, "sum")));
        let correct = made.figures.is_top1.as_ref().map(|top| again(t, t.count(top, &[0, 1])));
        (0..2).for_each(|_| share(t, &valid));
        match &batch.ids {
            Some(ids) if batch.positions.is_none() => drop(again(t, t.reduce_all(ids, "sum"))),
            _ => drop(again(t, t.empty([], DType::I64, "number of tokens"))),
        }
        drop((correct, entropy, valid, clamped, counted, per_token, made));
        // Divided by the micro-batches of the step unless the number of labels is that of all.
        Some(if items.is_some() { loss } else { t.scale(&loss) })
    }

    /// `DPOTrainer._compute_loss`, divided by the micro-batches of a step.
    fn dpo_loss(&self, t: &Tape, batch: &Batch) -> Option<Tensor> {
        let (Some(ids), Some(completion)) = (&batch.ids, &batch.labels) else {
            return None;
        };
        let is_prompt = t.compute(completion, DType::Bool, "completion_mask == 0");
        let labels = t.compute(ids, DType::I64, "labels");
        drop(is_prompt);
        let batch = Batch {
            labels: Some(labels),
            ..batch.clone()
        };
        let made = self.scored(t, self.policy(), &batch, DPO)?;
        let chosen_and_rejected = of_samples(t, &made.figures.log_probs);
        let (references, reference_output) = self.references(t, &batch)?;
        let of_pair = chosen_and_rejected.iter().zip(&references);
        let ratios: Vec<Tensor> = of_pair.map(|(policy, reference)| t.sub(policy, reference)).collect();
        let delta = t.sub(&ratios[0], &ratios[1]);
        let scaled = t.scale(&delta);
        let log_sigmoid = t.activation("LogSigmoidBackward0", &scaled, "log_sigmoid");
        drop(scaled);
        let of_pairs = t.neg(&log_sigmoid);
        drop(log_sigmoid);
        let mut loss = t.mean_all(&of_pairs);
        loss = t.scale(&loss);
        loss = t.shift(&loss);
        t.no_grad(|| self.preference_metrics(t, &made, completion, &ratios));
        drop((of_pairs, delta, ratios, chosen_and_rejected, made, batch));
        drop((references, reference_output));
        Some(t.scale(&loss))
    }

    /// Log-probabilities of chosen and of rejected samples under the reference model, and the output that they were
    /// summed from, which lives until the loss is returned.
    fn references(&self, t: &Tape, batch: &Batch) -> Option<(Vec<Tensor>, Option<FusedOutput>)> {
        if self.run.setup.reference == Reference::Precomputed {
            let logged = batch.others.len().saturating_sub(2);
            return Some((batch.others[logged..].to_vec(), None));
        }
        let made = t.no_grad(|| match &self.reference {
            Some(reference) => {
                let model = reference.parts();
                ReferenceModel::apart(t, || self.scored(t, model, batch, REFERENCE))
            }
            None => self.run.without_checkpoints(|| {
                // The same model, and so the same head.
                t.without_adapters(|| self.scored(t, self.policy(), batch, DPO))
            }),
        })?;
        let references = t.no_grad(|| of_samples(t, &made.figures.log_probs));
        Some((references, Some(made)))
    }

    /// What `_compute_loss` logs.
    fn preference_metrics(&self, t: &Tape, made: &FusedOutput, completion: &Tensor, ratios: &[Tensor]) {
        let [rows, positions] = [made.mask.size(0), made.mask.size(1)];
        let shifted = t.narrow(completion, 1, positions);
        let halves = t.split(&shifted, 0, &[rows / 2, rows / 2]);
        let counted = self.run.setup.counted_labels() / 2;
        let [of_entropy, of_logits] = [&made.figures.entropy, &made.figures.mean_logits]
            .map(|figure| figure.as_ref().map_or(DType::F32, Tensor::dtype));
        let weighted = t.empty([rows, positions], of_entropy, "entropy of the completion");
        let entropy = t.reduce_all(&weighted, "sum");
        drop(weighted);
        let tokens = t.reduce_all(&shifted, "sum");
        let (entropy, tokens) = (again(t, entropy), again(t, tokens));
        share(t, &tokens);
        drop(again(t, t.reduce_all(completion, "sum")));
        let of_half = |half: &Tensor| {
            let marked = t.compute(half, DType::Bool, "bool");
            let logits = t.index_ids(&marked, counted, of_logits);
            drop(marked);
            let total = t.reduce_all(&logits, "sum");
            drop(logits);
            [total, t.reduce_all(half, "sum")]
        };
        let totals: Vec<Tensor> = halves.iter().flat_map(of_half).collect();
        totals.into_iter().for_each(|total| drop(again(t, total)));
        let marked = t.compute(&halves[0], DType::Bool, "bool");
        let correct = t.compute(&marked, DType::Bool, "and");
        drop(marked);
        let of_both = tokens;
        let tokens = t.reduce_all(&halves[0], "sum");
        drop(of_both);
        let count = t.count(&correct, &[0, 1]);
        let total = t.compute(&tokens, DType::I64, "sum");
        drop(t.compute(&total, DType::Bool, "comparison"));
        let sum = t.compute(&count, DType::I64, "sum");
        let accuracy = t.compute(&sum, DType::F32, "div");
        drop(sum);
        drop(accuracy);
        let rewards: Vec<Tensor> = ratios.iter().map(|ratio| t.scale(&ratio.detach())).collect();
        let mean = |x: &Tensor| drop(t.reduce_all(x, "mean"));
        rewards.iter().for_each(mean);
        let greater = t.compute(&rewards[0], DType::Bool, "comparison");
        let accuracies = t.to_dtype(&greater, DType::F32);
        drop(greater);
        mean(&accuracies);
        let margins = t.sub(&rewards[0], &rewards[1]);
        [&margins, &rewards[0], &rewards[1]].into_iter().for_each(mean);
        drop((margins, accuracies, rewards, total, tokens, count, correct, entropy));
    }
}

/// Sums of each sample's log-probabilities [2 × pairs, seq - 1], of chosen and of rejected ones.
fn of_samples(t: &Tape, log_probs: &Tensor) -> Vec<Tensor> {
    let [rows, positions] = [log_probs.size(0), log_probs.size(1)];
    let sums = t.sum_dim(&t.narrow(log_probs, 1, positions), 1);
    t.split(&sums, 0, &[rows / 2, rows / 2])
}
