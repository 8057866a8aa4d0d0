//! Losses (`transformers/loss/loss_utils.py`).

use super::linear::Linear;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// `ForCausalLMLoss`: logits [batch, seq, vocab] in fp32, labels [batch, seq] shifted by one.
pub fn causal_lm_loss(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    let logits = t.to_dtype(logits, DType::F32);
    let [batch, seq, vocab] = [logits.size(0), logits.size(1), logits.size(2)];
    let padded = t.empty([batch, seq + 1], DType::I64, "padded labels");
    let shifted = t.contiguous(&t.slice(&padded, 1, seq));
    let flat = t.view(&logits, [batch * seq, vocab]);
    drop(logits);
    let target = t.view(&shifted, [batch * seq]);
    let loss = t.cross_entropy(&flat, &target);
    let _ = labels;
    drop((target, shifted, padded, flat));
    loss
}

/// The loss of transformers up to 4.47, in each model's own code: logits [batch, seq, vocab] are cast to fp32, and those but
/// the last of each sample copied. Returns it with the logits that the model gives back.
pub fn cast_and_shifted_lm_loss(t: &Tape, logits: Tensor, labels: &Tensor) -> (Tensor, Tensor) {
    let cast = t.to_dtype(&logits, DType::F32);
    drop(logits);
    let loss = shifted_lm_loss(t, &cast, labels, DType::F32);
    (loss, cast)
}

/// Cross entropy, in type `dtype`, of labels [batch, seq] shifted by one and the last of logits [batch, positions, vocab],
/// which are cut where [`causal_lm_loss`] pads the labels.
pub fn shifted_lm_loss(t: &Tape, logits: &Tensor, labels: &Tensor, dtype: DType) -> Tensor {
    let [batch, seq, vocab] = [logits.size(0), labels.size(1), logits.size(2)];
    let shifted = t.contiguous(&t.narrow(logits, 1, seq - 1));
    let target = t.contiguous(&t.slice(labels, 1, seq - 1));
    let precise = t.to_dtype(&shifted, dtype);
    let flat = t.view(&precise, [batch * (seq - 1), vocab]);
    let loss = t.cross_entropy(&flat, &t.view(&target, [batch * (seq - 1)]));
    drop((flat, precise, target, shifted));
    loss
}

/// `CrossEntropyLoss` of logits [batch, seq, vocab] in their own type and labels [batch, seq] as they are.
pub fn unshifted_lm_loss(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    let [batch, seq, vocab] = [logits.size(0), logits.size(1), logits.size(2)];
    let flat = t.view(logits, [batch * seq, vocab]);
    t.cross_entropy(&flat, &t.view(labels, [batch * seq]))
}

/// `ForCausalLMLoss` of a model with an encoder, whose labels need no shift (`shift_labels`): logits [batch, seq, vocab] in
/// fp32, labels [batch, seq].
pub fn aligned_lm_loss(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    let cast = t.to_dtype(logits, DType::F32);
    let loss = unshifted_lm_loss(t, &cast, labels);
    drop(cast);
    loss
}

/// `LigerForCausalLMLoss`: hidden states [batch, seq, width], the head, and labels [batch, seq] shifted by one.
pub fn fused_causal_lm_loss(t: &Tape, h: &Tensor, head: &Linear, labels: &Tensor) -> Tensor {
    let [batch, seq, width] = [h.size(0), h.size(1), h.size(2)];
    let padded = t.empty([batch, seq + 1], DType::I64, "padded labels");
    let shifted = t.contiguous(&t.slice(&padded, 1, seq));
    let flat = t.view(h, [batch * seq, width]);
    let target = t.view(&shifted, [batch * seq]);
    let loss = t.fused_linear_cross_entropy(&flat, head.head_weight(), &target);
    let _ = labels;
    drop((target, shifted, padded, flat));
    loss
}

/// `ForSequenceClassificationLoss` for more than one class: logits [batch, classes], labels [batch].
pub fn classification_loss(t: &Tape, logits: &Tensor, labels: &Tensor) -> Tensor {
    t.cross_entropy(logits, labels)
}
