//! How TRL's GRPOTrainer generates and scores (`GRPOTrainer._generate_and_score_completions`, 1.16).

use super::grpo_generation::{Generations, Rollout, completion_labels};
use super::sampling::Sampling;
use super::steps::Trainer;
use super::trl::{GRPO, REFERENCE, ReferenceModel};
use crate::dtype::DType;
use crate::model::forward::Batch;
use crate::nn::{FusedOutput, ids};
use crate::setup::{Freeze, Generation, Reference, Setup};
use crate::tape::{Failure, Kind, Tape, Tensor};

impl Trainer {
    /// Generates if this micro-batch of a step is the first of a generation, and returns what the micro-batch trains on.
    pub(super) fn generated(&mut self, t: &Tape, number: u64) -> Option<Rollout> {
        if number.is_multiple_of(self.run.setup.generated_micro_batches()) {
            let made = t.scope("generate", || self.rollout(t));
            if made.is_none() {
                t.fail(|| Failure::HeadNotReplaced);
            }
            // The generation before is kept until this one is copied in another order, by a permutation on the host.
            let shuffled = made.map(|made| made.map(|x| t.index_from_host(x, [x.size(0)])));
            self.generations.as_mut()?.held = shuffled;
        }
        let rows = self.run.setup.batch;
        let held = self.generations.as_ref()?.held.as_ref()?;
        Some(held.map(|x| t.narrow(x, 0, rows)))
    }

    fn rollout(&self, t: &Tape) -> Option<Rollout> {
        let generations = self.generations.as_ref()?;
        let setup = &self.run.setup;
        let samples = generations.run.setup.batch;
        let [prompt, completion] = setup.prompt_and_completion();
        match setup.generation {
            Generation::Transformers => self.sample(t, generations, completion)?,
            // vLLM's memory is none of the training program's tensors.
            Generation::Vllm => {}
        }
        log_lengths(t, samples);
        let input = |length: u64, name| t.as_kind(Kind::Input, || ids(t, &[samples, length], name));
        let prompts = ["prompt_ids", "prompt_mask"].map(|name| input(prompt, name));
        let completions = ["completion_ids", "completion_mask"].map(|name| input(completion, name));
        let sampled = setup
            .generation
            .is_vllm()
            .then(|| t.empty([samples, completion], DType::F32, "sampling_per_token_logps"));
        let items = t.reduce_all(&t.reduce_all(&completions[1], "sum"), "num_items_in_batch");
        let [ids, mask] = [0, 1].map(|part| t.cat(&[&prompts[part], &completions[part]], 1));
        let scored = |of| {
            t.no_grad(|| {
                self.run
                    .without_checkpoints(|| self.completion_log_probs(t, [&ids, &mask], of))
            })
        };
        let old = match setup.makes_old_log_probs() {
            true => Some(scored(Scored::Policy)?),
            false => None,
        };
        let ratio = match (&old, &sampled) {
            (Some(old), Some(sampled)) => Some(importance_ratio(t, old, sampled, &completions[1])),
            _ => None,
        };
        let reference = match setup.reference {
            Reference::EveryStep => Some(scored(Scored::Reference)?),
            Reference::Precomputed | Reference::None => None,
        };
        let advantages = advantages(t, samples);
        drop((ids, mask));
        Some(Rollout {
            prompts,
            completions,
            advantages,
            items,
            old,
            ratio,
            sampled,
            reference,
        })
    }

    /// `_generate_single_turn` with `generate` of transformers: completions go to the host, and come back padded.
    fn sample(&self, t: &Tape, generations: &Generations, completion: u64) -> Option<()> {
        let run = &generations.run;
        let (samples, prompt) = (run.setup.batch, run.setup.seq);
        let inputs =
            ["input_ids", "attention_mask"].map(|name| t.as_kind(Kind::Input, || ids(t, &[samples, prompt], name)));
        let sampling = Sampling {
            tape: t,
            forward: self.forward(),
            run,
            // peft's `generate` calls the model inside it, which accelerate wraps in no autocast.
            autocast: match setup_is_adapted(&self.run.setup) {
                true => None,
                false => self.autocast,
            },
        };
        self.wrapper.iter().for_each(|wrapper| wrapper.generates(t, true));
        let whole = sampling.extend(&inputs, completion);
        self.wrapper.iter().for_each(|wrapper| wrapper.generates(t, false));
        let whole = whole?;
        let marks = |dtype, name| t.empty([samples, completion], dtype, name);
        let is_eos = marks(DType::Bool, "is_eos");
        let place = t.empty([samples], DType::I64, "eos_idx");
        let integers = marks(DType::I32, "is_eos");
        let first = t.empty([samples], DType::I64, "argmax");
        drop(integers);
        let has_end = t.empty([samples], DType::Bool, "any");
        drop(t.index_ids(&has_end, 0, DType::I64));
        drop((first, has_end));
        let indices = t.empty([completion], DType::I64, "sequence_indices");
        let comparison = marks(DType::Bool, "comparison");
        let mask = marks(DType::I32, "completion_mask");
        drop(comparison);
        // Copies on their way to the host.
        drop(marks(DType::I64, "completion_ids"));
        drop(marks(DType::Bool, "completion_mask"));
        drop((mask, indices, place, is_eos, whole, inputs));
        Some(())
    }

    /// `_get_per_token_logps_and_entropies` without gradients: log-probabilities of all completions, [samples, completion],
    /// as many samples at a time as a micro-batch has.
    fn completion_log_probs(&self, t: &Tape, [ids, mask]: [&Tensor; 2], of: Scored) -> Option<Tensor> {
        let rows = self.run.setup.batch;
        let [_, completion] = self.run.setup.prompt_and_completion();
        let mut parts = Vec::new();
        let (mut labels, mut output): (Option<Tensor>, Option<FusedOutput>) = (None, None);
        for _ in 0..ids.size(0) / rows {
            let [ids, mask] = [ids, mask].map(|x| t.narrow(x, 0, rows));
            labels = Some(completion_labels(t, &ids, &mask));
            let batch = Batch {
                ids: Some(ids),
                labels: labels.clone(),
                others: vec![mask],
                ..Batch::default()
            };
            let made = match (of, &self.reference) {
                (Scored::Policy, _) => self.scored(t, self.policy(), &batch, GRPO)?,
                (Scored::Reference, Some(reference)) => {
                    let model = reference.parts();
                    ReferenceModel::apart(t, || self.scored(t, model, &batch, REFERENCE))?
                }
                // The same model, and so the same head.
                (Scored::Reference, None) => t.without_adapters(|| self.scored(t, self.policy(), &batch, GRPO))?,
            };
            parts.push(t.narrow(&made.figures.log_probs, 1, completion));
            // The output before lives until this one is made.
            output = Some(made);
        }
        let all = t.cat(&parts.iter().collect::<Vec<_>>(), 0);
        drop((output, labels));
        Some(all)
    }
}

/// What `_generate` logs of the lengths of prompts and completions, of which none has ended.
fn log_lengths(t: &Tape, samples: u64) {
    let lengths = ["prompt_lengths", "completion_lengths"].map(|name| t.empty([samples], DType::I64, name));
    let total = t.reduce_all(&lengths[0], "sum");
    let is_truncated = t.compute(&lengths[1], DType::Bool, "is_truncated");
    drop(t.index_ids(&is_truncated, 0, DType::I64));
    drop((is_truncated, total, lengths));
}

/// Advantages of samples by one reward function, [samples], and what is logged of its rewards.
fn advantages(t: &Tape, samples: u64) -> Tensor {
    let rewards = t.empty([samples, 1], DType::F32, "rewards_per_func");
    let unscorable = t.empty([samples], DType::Bool, "unscorable_mask");
    let of_group = t.empty([samples], DType::F32, "rewards");
    let mean = nan_mean(t, &of_group);
    let deviation = nan_deviation(t, &of_group);
    let advantages = t.compute(&of_group, DType::F32, "advantages");
    drop((mean, deviation));
    for _ in 0..2 {
        drop(nan_mean(t, &of_group));
        drop(nan_deviation(t, &of_group));
    }
    drop((rewards, unscorable, of_group));
    advantages
}

/// `torch.nanmean`.
fn nan_mean(t: &Tape, x: &Tensor) -> Tensor {
    let known = t.compute(x, DType::Bool, "comparison");
    let count = t.count(&known, &[0]);
    drop(known);
    let sum = t.reduce_all(x, "nansum");
    let mean = t.compute(&sum, DType::F32, "nanmean");
    drop((sum, count));
    mean
}

/// `nanstd`.
fn nan_deviation(t: &Tape, x: &Tensor) -> Tensor {
    let mean = nan_mean(t, x);
    let squares = t.compute(x, DType::F32, "pow");
    let variance = nan_mean(t, &squares);
    drop(squares);
    let known = t.compute(x, DType::Bool, "comparison");
    let count = t.count(&known, &[0]);
    drop(known);
    let deviation = t.compute(&variance, DType::F32, "sqrt");
    drop((mean, variance, count));
    deviation
}

/// The model whose log-probabilities are made.
#[derive(Clone, Copy)]
enum Scored {
    /// The one that is trained.
    Policy,
    /// The one that it is compared with.
    Reference,
}

/// Returns true if only adapters are trained.
const fn setup_is_adapted(setup: &Setup) -> bool {
    matches!(setup.freeze, Freeze::Lora | Freeze::Qlora)
}

/// `vllm_importance_sampling_ratio` of each sample (`sequence_mask`, the default), [samples, 1].
fn importance_ratio(t: &Tape, old: &Tensor, sampled: &Tensor, mask: &Tensor) -> Tensor {
    let difference = t.no_grad(|| {
        let difference = t.sub(old, sampled);
        t.mul(&difference, mask)
    });
    let finite = t.compute(&difference, DType::F32, "nan_to_num");
    drop(difference);
    let of_sample = t.empty([old.size(0), 1], DType::F32, "sum");
    drop(finite);
    let ratio = t.compute(&of_sample, DType::F32, "exp");
    let outside = t.compute(&of_sample, DType::Bool, "comparison");
    let masked = t.compute(&ratio, DType::F32, "importance_sampling_ratio");
    drop((outside, ratio, of_sample));
    masked
}
