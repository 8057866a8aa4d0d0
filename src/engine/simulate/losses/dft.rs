//! The loss of dynamic fine-tuning, each token's times its probability: `loss_type` dft of TRL's `SFTTrainer` (1.16), and
//! `use_dft_loss` of LLaMA-Factory (`dft_loss_func` in `llamafactory/train/trainer_utils.py`, 0.9.5), the `compute_loss_func` of its
//! trainer.

use super::super::steps::Trainer;
use crate::dtype::DType;
use crate::model::forward::Batch;
use crate::setup::Loss;
use crate::tape::{Tape, Tensor};

impl Trainer {
    /// Loss of each token of TRL's head, as `SFTTrainer`'s `loss_type` asks for it.
    pub(in super::super) fn weighted(&self, t: &Tape, per_token: Tensor, log_probs: &Tensor) -> Tensor {
        if self.run.setup.loss != Loss::Dft {
            return per_token;
        }
        let probs = t.exp(log_probs).detach();
        t.mul(&per_token, &probs)
    }

    /// `compute_loss` with `dft_loss_func`.
    pub(super) fn dft_loss(&self, t: &Tape, batch: &Batch) -> Tensor {
        let counted = self.run.setup.counted_labels();
        self.loss_of_logits(t, batch, |logits, labels| {
            of_logits(t, logits, (labels, counted), self.fetched.items.as_ref())
        })
    }
}

/// `dft_loss_func` of logits [batch, seq, vocab], of whose labels so many count.
fn of_logits(t: &Tape, logits: &Tensor, (labels, counted): (&Tensor, u64), items: Option<&Tensor>) -> Tensor {
    let logits = t.to_dtype(logits, DType::F32);
    let padded = t.pad_end(labels, 1, 1);
    let [rows, positions] = [labels.size(0), labels.size(1)];
    let shifted = t.contiguous(&t.narrow(&padded, 1, positions));
    let logits = t.view(&logits, [rows * positions, logits.last()]);
    let targets = t.view(&shifted, [rows * positions]);
    let per_token = t.cross_entropy_of_rows(&logits, &targets);
    let is_labelled = t.compute(&targets, DType::Bool, "labels != -100");
    drop(t.reduce_all(&is_labelled, "any"));
    // `if not valid_mask.any()`
    t.wait();
    let losses = t.index_rows(&per_token, &is_labelled, counted);
    let probs = t.no_grad(|| t.exp(&t.neg(&losses)));
    let weighted = t.mul(&losses, &probs);
    match items {
        Some(items) => t.div(&t.sum_all(&weighted), items),
        None => t.mean_all(&weighted),
    }
}
