//! `LabelSmoother` of transformers' `Trainer` (`transformers/trainer_pt_utils.py`, 5.17), which `label_smoothing_factor` asks
//! for: the model gets no labels, and the trainer computes the loss of all its logits.

use super::super::steps::Trainer;
use crate::dtype::DType;
use crate::model::forward::Batch;
use crate::tape::{Tape, Tensor};

impl Trainer {
    /// `compute_loss` with a `label_smoother`.
    pub(super) fn smoothed_loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        // `LabelSmoother` shifts labels of classes that transformers knows as language models by name, and FSDP2 renames classes.
        let is_renamed = self.wrapper.as_ref().is_some_and(|wrapper| wrapper.shards_states());
        self.loss_of_logits(t, batch, |logits, labels| {
            let positions = labels.size(1) - u64::from(!is_renamed);
            smoothed(t, logits, (labels, positions), self.fetched.items.as_ref())
        })
    }
}

/// `LabelSmoother.__call__` of logits [batch, seq, vocab], of so many positions of each sample.
fn smoothed(t: &Tape, logits: &Tensor, (labels, positions): (&Tensor, u64), items: Option<&Tensor>) -> Tensor {
    let shifted = t.contiguous(&t.narrow(logits, 1, positions));
    let labels = t.contiguous(&t.narrow(labels, 1, positions));
    let log_probs = t.neg(&t.log_softmax(&shifted, None));
    let places = t.view(&labels, [labels.size(0), positions, 1]);
    let is_padding = t.compute(&places, DType::Bool, "labels == -100");
    let clamped = t.compute(&places, DType::I64, "clamp");
    drop((places, labels));
    let chosen = t.gather_last(&log_probs, &clamped);
    let of_all = t.sum_last_in(&log_probs, DType::F32);
    let chosen = t.masked_fill_(chosen, &is_padding);
    let of_all = t.masked_fill_(of_all, &is_padding);
    let counted = match items {
        Some(items) => items.clone(),
        None => {
            let padding = t.count(&is_padding, &[0, 1, 2]);
            t.compute(&padding, DType::I64, "numel - sum")
        }
    };
    let chosen = t.div(&t.sum_all(&chosen), &counted);
    let elements = t.compute(&counted, DType::I64, "mul by the vocabulary");
    let of_all = t.div(&t.sum_all(&of_all), &elements);
    t.add(&t.scale(&chosen), &t.scale(&of_all))
}
