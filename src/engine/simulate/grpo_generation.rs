//! What TRL's GRPOTrainer keeps of a generation for the micro-batches that train on it (1.16).

use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::{Batch, Run};
use crate::setup::{Checkpointing, Setup, TrainerKind};
use crate::tape::{Tape, Tensor};

/// The generations of a run.
pub(super) struct Generations {
    /// The forward's view of all prompts of a generation.
    pub run: Run,
    /// `_buffered_inputs`.
    pub held: Option<Rollout>,
}

/// Completions of one generation, and what the loss needs of each.
#[derive(Clone)]
pub(super) struct Rollout {
    /// Ids and mask, [samples, prompt].
    pub prompts: [Tensor; 2],
    /// Ids and mask, [samples, completion].
    pub completions: [Tensor; 2],
    /// [samples].
    pub advantages: Tensor,
    /// `num_items_in_batch`.
    pub items: Tensor,
    /// `old_per_token_logps`, [samples, completion].
    pub old: Option<Tensor>,
    /// `importance_sampling_ratio`, [samples, 1].
    pub ratio: Option<Tensor>,
    /// `sampling_per_token_logps`, [samples, completion].
    pub sampled: Option<Tensor>,
    /// `ref_per_token_logps`, [samples, completion].
    pub reference: Option<Tensor>,
}

/// What the loss of a micro-batch is computed of.
pub(super) enum Inputs<'a> {
    /// Samples, and the number of labels of a step that count.
    Batch(&'a Batch, Option<&'a Tensor>),
    /// Completions that GRPO generated; `None` if that failed.
    Rollout(Option<Rollout>),
}

impl Generations {
    /// Makes the state of a run that generates.
    pub fn of(model: &Model, setup: &Setup) -> Option<Self> {
        (setup.trainer == TrainerKind::TrlGrpo).then(|| {
            let [prompt, _] = setup.prompt_and_completion();
            let setup = Setup {
                batch: setup.batch.saturating_mul(setup.generated_micro_batches()),
                seq: prompt,
                ckpt: Checkpointing::None,
                use_cache: Some(true),
                ..setup.clone()
            };
            let mut run = Run::new(model, &setup);
            run.generates = true;
            Self { run, held: None }
        })
    }
}

impl Rollout {
    /// The same with `f` of every tensor that has a row for each sample.
    pub fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Self {
        Self {
            prompts: self.prompts.each_ref().map(&f),
            completions: self.completions.each_ref().map(&f),
            advantages: f(&self.advantages),
            items: self.items.clone(),
            old: self.old.as_ref().map(&f),
            ratio: self.ratio.as_ref().map(&f),
            sampled: self.sampled.as_ref().map(&f),
            reference: self.reference.as_ref().map(&f),
        }
    }
}

/// Labels of which only the completion's count, [rows, seq].
pub(super) fn completion_labels(t: &Tape, ids: &Tensor, mask: &Tensor) -> Tensor {
    let is_padding = t.compute(mask, DType::Bool, "attention_mask == 0");
    let labels = t.compute(ids, DType::I64, "labels");
    drop(is_padding);
    labels
}
