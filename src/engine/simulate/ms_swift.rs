//! What ms-swift's trainers make of a batch and its loss (`swift/trainers/seq2seq_trainer.py` and `mixin.py`,
//! `swift/rlhf_trainers/dpo_trainer.py` and `rlhf_mixin.py`, 4.6, on TRL 0.29).

use super::steps::Trainer;
use super::trl::ReferenceModel;
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, KeptLogits, Run};
use crate::setup::Loss;
use crate::tape::{Tape, Tensor};

impl Trainer {
    /// `prepare_logits_to_keep`: of one row the labelled positions, of several what begins before the first label.
    fn kept_logits(&self, t: &Tape, labels: &Tensor) -> KeptLogits {
        let [rows, seq] = [labels.size(0), labels.size(1)];
        let is_labelled = t.compute(labels, DType::Bool, "labels != -100");
        if rows > 1 {
            let numbers = t.compute(&is_labelled, DType::I32, "int");
            drop(is_labelled);
            let first = t.empty([rows], DType::I64, "argmax");
            drop(numbers);
            drop((t.compute(&t.empty([], DType::I64, "min"), DType::I64, "item"), first));
            let count = self.run.setup.from_first_label().min(seq);
            return KeptLogits {
                mask: None,
                count,
                labels: t.slice(labels, 1, count),
            };
        }
        let counted = self.run.setup.counted_labels().min(seq - 1);
        let picked = t.index_ids(&is_labelled, counted, DType::I64);
        // The first of them is the label of the position before.
        let padded = t.empty([1, counted + 1], DType::I64, "labels");
        drop(picked);
        let mask = t.empty([seq], DType::Bool, "logits_to_keep");
        drop(is_labelled);
        KeptLogits {
            mask: Some(mask),
            count: counted + 1,
            labels: padded,
        }
    }

    /// `Seq2SeqTrainer._prepare_inputs`, `compute_loss`, and the accuracy that it logs.
    pub(super) fn swift_loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        let labels = batch.labels.as_ref().filter(|labels| labels.dim() == 2);
        // Of several samples Liger's loss would view what is cut as rows, which fails.
        let cuts = |labels: &Tensor| match self.run.setup.loss {
            Loss::FusedLinear => self.fetched.cuts_fused && labels.size(0) == 1,
            _ => true,
        };
        let kept = labels
            .filter(|labels| cuts(labels))
            .map(|labels| self.kept_logits(t, labels));
        let labels = kept.as_ref().map(|kept| &kept.labels).or(labels).cloned();
        let inputs = Batch { kept, ..batch.clone() };
        let (mut loss, outputs) = self.outputs(t, &inputs);
        if let Some(labels) = &labels {
            // This micro-batch's share of the step's labels (`Template.compute_sft_loss`).
            let shifted = t.narrow(labels, 1, labels.size(1) - 1);
            let is_labelled = t.compute(&shifted, DType::Bool, "labels != -100");
            let count = t.count(&is_labelled, &[0, 1]);
            drop(is_labelled);
            let share = t.empty([], DType::F32, "div");
            drop(count);
            loss = t.scale(&loss);
            drop(share);
        }
        // What wraps the model may hand out the loss beside them.
        if let Some(logits) = outputs.iter().find(|output| output.dim() == 3) {
            let [rows, positions] = [logits.size(0), logits.size(1)];
            drop(t.empty([rows, positions], DType::I64, "argmax"));
        }
        drop((outputs, labels, inputs));
        self.run.drop_cache();
        loss
    }

    /// `DPOTrainer.get_batch_loss_metrics`, without what it logs: numbers of a few samples.
    pub(super) fn swift_dpo_loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        let policy = self.sequence_log_probs(t, batch, |batch| self.outputs(t, batch).0);
        let reference = t.no_grad(|| match &self.reference {
            Some(reference) => {
                let model = reference.parts();
                ReferenceModel::apart(t, || self.sequence_log_probs(t, batch, |b| self.logits(t, model, b)))
            }
            // The same model without its adapters.
            None => self.run.without_checkpoints(|| {
                t.without_adapters(|| self.sequence_log_probs(t, batch, |b| self.logits(t, self.policy(), b)))
            }),
        });
        let pairs = policy.size(0) / 2;
        let halves = t.split(&policy, 0, &[pairs, pairs]);
        let ratios = t.sub(&halves[0], &halves[1]);
        let delta = t.shift(&ratios);
        let scaled = t.scale(&delta);
        let losses = t.neg(&t.activation("LogSigmoidBackward0", &scaled, "log_sigmoid"));
        drop((scaled, delta, ratios, halves, policy, reference));
        let loss = t.mean_all(&losses);
        self.run.drop_cache();
        t.scale(&loss)
    }

    /// Logits of a forward, which accelerate turns into fp32.
    fn logits(&self, t: &Tape, model: (&dyn Forward, &Run), batch: &Batch) -> Tensor {
        let forward = || t.autocast(self.autocast, || model.0.loss(t, model.1, batch)).loss;
        let logits = self.wrapped_of(t, model.1, forward);
        // FSDP2 hands them out in its policy's type, which they have; DDP copies outputs for a backward alone.
        if let Some(wrapper) = self.wrapper_of(model.1).filter(|wrapper| wrapper.shards_states()) {
            drop(wrapper.wrapped_outputs(t, None, Vec::new()));
        }
        match self.autocast {
            Some(_) => t.to_dtype(&logits, DType::F32),
            None => logits,
        }
    }

    /// `concatenated_forward`: sums of the log-probabilities of each sample's labels, [2 × pairs].
    fn sequence_log_probs(&self, t: &Tape, batch: &Batch, forward: impl FnOnce(&Batch) -> Tensor) -> Tensor {
        let Some(labels) = &batch.labels else {
            unreachable!("a text batch has labels")
        };
        let kept = self.kept_logits(t, labels);
        let inputs = Batch {
            labels: None,
            kept: Some(kept.clone()),
            ..batch.clone()
        };
        let logits = forward(&inputs);
        drop(inputs);
        let rolled = t.compute(&kept.labels, DType::I64, "roll");
        let mask = t.compute(&rolled, DType::Bool, "labels != -100");
        let targets = t.compute(&rolled, DType::I64, "clone");
        drop(t.compute(&mask, DType::Bool, "not"));
        let mean_logits = t.mean(&logits, 2);
        let [rows, positions] = [logits.size(0), logits.size(1)];
        let places = t.view(&targets, [rows, positions, 1]);
        if logits.dtype().is_half() {
            let sums = t.sum_dim(&selected_of_rows(t, &logits, &places), 1);
            drop((mean_logits, places, targets, mask, rolled, logits, kept));
            return sums;
        }
        let selected = t.gather_last(&logits, &places);
        let of_rows: Vec<Tensor> = t.unbind(&logits).iter().map(|row| t.logsumexp(row)).collect();
        let of_rows: Vec<Tensor> = of_rows.iter().map(|row| t.view(row, [1, positions])).collect();
        let totals = t.cat(&of_rows.iter().collect::<Vec<_>>(), 0);
        drop(of_rows);
        let per_token = t.sub(&selected, &t.view(&totals, [rows, positions, 1]));
        drop((totals, selected));
        let sums = t.sum_dim(&t.view(&per_token, [rows, positions]), 1);
        drop((mean_logits, places, targets, mask, rolled, per_token, logits, kept));
        sums
    }
}

/// `selective_log_softmax` of logits in 16 bits, one row after the other: [rows, positions].
fn selected_of_rows(t: &Tape, logits: &Tensor, places: &Tensor) -> Tensor {
    let positions = logits.size(1);
    let rows = t.unbind(logits).into_iter().zip(t.unbind(places));
    let of_row = |(logits, places): (Tensor, Tensor)| {
        let log_probs = t.log_softmax(&logits, None);
        let selected = t.gather_last(&log_probs, &places);
        t.view(&selected, [1, positions])
    };
    let of_rows: Vec<Tensor> = rows.map(of_row).collect();
    t.cat(&of_rows.iter().collect::<Vec<_>>(), 0)
}
