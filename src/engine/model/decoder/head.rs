//! Head of a language model: output projection, logits and loss.

use crate::model::forward::{Batch, Output};
use crate::nn::{self, Builder, Linear};
use crate::setup::Loss;
use crate::tape::{Component, Tape, Tensor};

/// Makes the output projection for a token embedding with the table `embedding`, [vocab, hidden], tied to it or separate.
pub fn head_for(b: &Builder, embedding: &Tensor, is_tied: bool) -> Linear {
    b.tape().component("", Component::Head, || match is_tied {
        true => Linear::tied(b, "lm_head", embedding),
        false => Linear::new(b, "lm_head", embedding.size(1), embedding.size(0), false),
    })
}

/// Logits and loss of the last hidden states; in a stage of a pipeline before the last, the hidden states for the next
/// stage.
pub fn logits_and_loss<'a>(t: &Tape, lm_head: impl Into<Option<&'a Linear>>, h: Tensor, batch: &Batch) -> Output {
    let Some(lm_head) = lm_head.into() else {
        return Output {
            loss: h,
            held: Vec::new(),
        };
    };
    if !t.stage().is_whole() {
        return t.component("", Component::Head, || Output {
            loss: t.scope("lm_head", || lm_head.forward(t, &h)),
            held: Vec::new(),
        });
    }
    capped_logits_and_loss(t, lm_head, h, batch, false)
}

/// Logits of the last position (`logits_to_keep=1`), [batch, 1, vocab].
pub fn last_logits(t: &Tape, lm_head: &Linear, h: &Tensor) -> Tensor {
    capped_last_logits(t, lm_head, h, false)
}

/// Logits of the last position, [batch, 1, vocab], soft-capped if `softcap`.
pub fn capped_last_logits(t: &Tape, lm_head: &Linear, h: &Tensor, softcap: bool) -> Tensor {
    let last = t.slice(h, 1, 1);
    t.component("", Component::Head, || {
        let logits = t.scope("lm_head", || lm_head.forward(t, &last));
        if softcap { nn::soft_cap(t, logits) } else { logits }
    })
}

/// Logits and loss of the last hidden states; logits are soft-capped if `softcap`.
pub fn capped_logits_and_loss(t: &Tape, lm_head: &Linear, h: Tensor, batch: &Batch, softcap: bool) -> Output {
    let Some(labels) = &batch.labels else {
        return Output {
            loss: capped_last_logits(t, lm_head, &h, softcap),
            held: Vec::new(),
        };
    };
    if batch.loss == Loss::FusedLinear {
        return t.component("", Component::Head, || Output {
            loss: t.scope("loss", || nn::fused_causal_lm_loss(t, &h, lm_head, labels)),
            held: Vec::new(),
        });
    }
    t.component("", Component::Head, || {
        let mut logits = t.scope("lm_head", || lm_head.forward(t, &h));
        if softcap {
            logits = nn::soft_cap(t, logits);
        }
        let loss = t.scope("loss", || nn::causal_lm_loss(t, &logits, labels));
        // The hidden states are a local of the model's forward, freed when it returns.
        drop(h);
        Output {
            loss,
            held: vec![logits],
        }
    })
}
