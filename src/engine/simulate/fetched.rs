//! Runs the micro-batches of a step as transformers' `Trainer` does: all of them are on the GPU before the first one runs.

use super::parts::Passes;
use super::steps::Trainer;
use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::Batch;
use crate::setup::{Reference, TrainerKind};
use crate::tape::{Failure, Kind, Mark, Tape, Tensor};

/// Tensors that variables of `Trainer._run_epoch` keep from one step to the next.
#[derive(Default)]
pub(super) struct Fetched {
    /// `batch_samples`: the micro-batches of the step.
    pub batches: Vec<Batch>,
    /// Inputs of micro-batches of other sizes.
    others: Option<Tensor>,
    /// `num_items_in_batch`: the number of tokens that have a loss.
    pub items: Option<Tensor>,
    /// True if the model's class takes that number.
    takes_items: bool,
    /// True if the loss shifts labels, of which the first then counts for nothing (`_loss_shifts_labels`): known by the end of
    /// the class's name, which `GPT2LMHeadModel`, `IdeficsForVisionText2Text` and their like have not.
    shifts_labels: bool,
    /// True if Liger's forward of the model takes `logits_to_keep`: those of Qwen2-VL and Qwen2.5-VL do not (0.8).
    pub cuts_fused: bool,
    /// `tr_loss_step`: the loss of the last micro-batch.
    loss: Option<Tensor>,
    /// `_tr_loss`: the sum of losses that are not logged yet, made before the first batch.
    total: Option<Tensor>,
    /// `grad_norm`: the norm of the last update's gradients.
    pub norm: Option<Tensor>,
}

impl Trainer {
    /// Runs forward and backward of each micro-batch of a step.
    pub(super) fn fetched_micro_batches(&mut self, t: &Tape) -> Passes {
        let start = t.mark();
        let count = self.run.setup.accum;
        self.fetched
            .total
            .get_or_insert_with(|| t.empty([], DType::F32, "_tr_loss"));
        // The step before has its micro-batches until all of this one are fetched (`get_batch_samples`).
        let (batches, others) = self.fetch_all(t);
        self.fetched.items = self.number_of_items(t, &batches);
        (self.fetched.batches, self.fetched.others) = (batches, others);
        let [mut before_forward, mut after_forward, mut after_backward] = [start; 3];
        for number in 0..count as usize {
            // What follows a failure is never looked at.
            if t.failure().is_some() || t.has_unlike_layers() {
                break;
            }
            let trainer = self.run.setup.trainer;
            // GRPO generates before the first micro-batch: its forward begins there.
            if trainer != TrainerKind::TrlGrpo || number == 0 {
                before_forward = t.mark();
                t.reach(Mark::BeforeForward);
                self.work.begin(t.work_mark(), number == 0);
            }
            let rolled = self.roll(t);
            let is_last = number + 1 == count as usize;
            self.wrapper.iter().for_each(|wrapper| wrapper.begin(is_last));
            let loss = self.fetched_loss(t, number);
            after_forward = t.mark();
            t.reach(Mark::AfterForward);
            self.work.after_forward = t.work_mark();
            self.run_backward(t, &loss);
            after_backward = t.mark();
            t.reach(Mark::AfterBackward);
            self.work.after_backward = t.work_mark();
            if let Some(engine) = self.engine().filter(|_| is_last && t.failure().is_none()) {
                // `DeepSpeedEngineWrapper.backward` steps.
                let update = t.work_mark();
                engine.step(t);
                (self.work.update, self.work.end) = (update, t.work_mark());
            }
            // Without its graph, which ends with `training_step`.
            self.fetched.loss = Some(loss.detach());
            if let Some(rolled) = rolled {
                let live = Some(loss.detach());
                drop(loss);
                let mut marks = [
                    (Mark::AfterForward, &mut after_forward),
                    (Mark::AfterBackward, &mut after_backward),
                ];
                self.unroll(t, rolled, live, &mut marks);
            }
        }
        Passes {
            start,
            before_forward,
            after_forward,
            after_backward,
            end: t.mark(),
            replaced: self.run.kept().replaced(),
        }
    }
}

impl Trainer {
    /// `accelerator.backward(loss)`, without the step that it makes with DeepSpeed.
    fn run_backward(&mut self, t: &Tape, loss: &Tensor) {
        let scaled = match self.engine() {
            Some(engine) => engine.scaled_alone(t, loss),
            None => self.scaler.scale(t, t.scale(loss)),
        };
        if !scaled.requires_grad() {
            t.fail(|| Failure::NoGradient);
        }
        if t.failure().is_none() {
            t.backward(&scaled);
            self.wrapper.iter().for_each(|wrapper| wrapper.after_backward(t));
        }
    }
}

impl Fetched {
    /// What is kept of a model's steps before the first.
    pub fn of(model: &Model) -> Self {
        Self {
            takes_items: model.config.family().takes_item_count(),
            shifts_labels: !matches!(model.model_type, "bert" | "bert-generation" | "gpt2" | "idefics"),
            cuts_fused: !matches!(model.model_type, "qwen2_vl" | "qwen2_5_vl"),
            ..Self::default()
        }
    }
}

impl Trainer {
    /// Makes the batches of a step, and the inputs of those of other sizes.
    fn fetch_all(&self, t: &Tape) -> (Vec<Batch>, Option<Tensor>) {
        let count = self.run.setup.accum;
        let batches = match (self.run.setup.trainer, self.run.setup.fetched) {
            // Prompts are no tensors yet.
            (TrainerKind::TrlGrpo, _) => Vec::new(),
            (_, None) => (0..count).map(|_| self.fetch(t)).collect(),
            // Which of them is the largest does not matter: each runs with the inputs of all on the GPU.
            (_, Some(_)) => vec![self.fetch(t); count as usize],
        };
        let mib = self.run.setup.fetched.filter(|_| count > 1).unwrap_or_default();
        let others = || t.empty([mib << 20], DType::U8, "other micro-batches");
        (batches, (mib > 0).then(|| t.as_kind(Kind::Input, others)))
    }

    /// Makes a batch; with the reference model's log-probabilities [pairs] of chosen and rejected samples, if they were
    /// made before training. The completion mask of preferences is as large as labels.
    fn fetch(&self, t: &Tape) -> Batch {
        let mut batch = self.forward.batch(t, &self.run);
        let setup = &self.run.setup;
        if setup.trainer == TrainerKind::TrlDpo && setup.reference == Reference::Precomputed {
            let names = ["ref_chosen_logps", "ref_rejected_logps"];
            let logged = names.map(|name| t.as_kind(Kind::Input, || t.empty([setup.batch / 2], DType::F32, name)));
            batch.others.extend(logged);
        }
        batch
    }
}

impl Trainer {
    /// `_get_num_items_in_batch`: labels that count, over all micro-batches, if the trainer counts them.
    fn number_of_items(&self, t: &Tape, batches: &[Batch]) -> Option<Tensor> {
        let counts = match self.run.setup.trainer {
            TrainerKind::TrlDpo | TrainerKind::MsSwiftDpo => false,
            // `model_accepts_loss_kwargs = True`
            TrainerKind::MsSwift => true,
            _ => self.fetched.takes_items,
        };
        if !counts {
            return None;
        }
        let mut total = None;
        for labels in batches.iter().filter_map(|batch| batch.labels.as_ref()) {
            let last = labels.dim() - 1;
            let counted = match self.fetched.shifts_labels {
                true => t.narrow(labels, last, labels.last().saturating_sub(1)),
                false => labels.clone(),
            };
            let number = {
                let is_counted = t.compute(&counted, DType::Bool, "labels != -100");
                let all: Vec<usize> = (0..is_counted.dim()).collect();
                t.count(&is_counted, &all)
            };
            // `sum` begins at the number 0.
            total = Some(t.compute(total.as_ref().unwrap_or(&number), DType::I64, "num_items_in_batch"));
        }
        total
    }
}
