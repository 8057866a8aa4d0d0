//! Head of a language model: output projection, logits and loss.

use crate::dtype::DType;
use crate::model::forward::{Batch, Output};
use crate::nn::{self, Builder, Linear};
use crate::setup::Loss;
use crate::tape::{Component, Tape, Tensor};

/// Form of the logits that a family makes of the head's product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// The logits.
    AsTheyAre,
    /// Logits once they are soft-capped.
    Capped,
    /// Logits once they are multiplied by a number.
    Scaled,
    /// Logits once they are multiplied by a number and then soft-capped.
    ScaledAndCapped,
    /// Logits in fp32.
    InF32,
}

impl Logits {
    /// Logits that are soft-capped if `caps`.
    pub const fn capped(caps: bool) -> Self {
        if caps { Self::Capped } else { Self::AsTheyAre }
    }

    /// Logits that are multiplied by a number if `scales`.
    pub const fn scaled(scales: bool) -> Self {
        if scales { Self::Scaled } else { Self::AsTheyAre }
    }

    /// Makes the logits of the head's product.
    pub fn of(self, t: &Tape, product: Tensor) -> Tensor {
        match self {
            Self::ScaledAndCapped => {
                let scaled = t.scale(&product);
                drop(product);
                nn::soft_cap(t, scaled)
            }
            Self::AsTheyAre => product,
            Self::Capped => nn::soft_cap(t, product),
            Self::Scaled => t.scale(&product),
            Self::InF32 => t.to_dtype(&product, DType::F32),
        }
    }
}

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
    logits_and_loss_in(t, lm_head.into(), h, batch, Logits::AsTheyAre)
}

/// The same with logits in the given form.
pub fn logits_and_loss_in(t: &Tape, lm_head: Option<&Linear>, h: Tensor, batch: &Batch, form: Logits) -> Output {
    let Some(lm_head) = lm_head else {
        return Output {
            loss: h,
            held: Vec::new(),
        };
    };
    if !t.stage().is_whole() {
        return t.component("", Component::Head, || Output {
            loss: lm_head.call(t, &h),
            held: Vec::new(),
        });
    }
    formed_logits_and_loss(t, lm_head, h, batch, form)
}

/// Logits of the last position (`logits_to_keep=1`), [batch, 1, vocab].
pub fn last_logits(t: &Tape, lm_head: &Linear, h: &Tensor) -> Tensor {
    formed_last_logits(t, lm_head, h, Logits::AsTheyAre)
}

/// Logits of the last position, [batch, 1, vocab], in the given form.
pub fn formed_last_logits(t: &Tape, lm_head: &Linear, h: &Tensor, form: Logits) -> Tensor {
    let last = t.slice(h, 1, 1);
    t.component("", Component::Head, || {
        let logits = lm_head.call(t, &last);
        form.of(t, logits)
    })
}

/// Logits and loss of the last hidden states; logits are in the given form.
pub fn formed_logits_and_loss(t: &Tape, lm_head: &Linear, h: Tensor, batch: &Batch, form: Logits) -> Output {
    let Some(labels) = &batch.labels else {
        return Output {
            loss: match &batch.kept {
                Some(kept) => t.component("", Component::Head, || form.of(t, lm_head.call(t, &kept.of(t, &h)))),
                None => formed_last_logits(t, lm_head, &h, form),
            },
            held: Vec::new(),
        };
    };
    if let Some(scores) = &batch.scores {
        return t.component("", Component::Head, || Output {
            loss: scores.score(t, lm_head, &h, labels),
            held: Vec::new(),
        });
    }
    // The hidden states are a local of the model's forward, freed when it returns.
    let (states, labels) = match &batch.kept {
        Some(kept) => (kept.of(t, &h), &kept.labels),
        None => (h.clone(), labels),
    };
    if batch.loss == Loss::FusedLinear {
        return t.component("", Component::Head, || Output {
            loss: t.scope("loss", || nn::fused_causal_lm_loss(t, &states, lm_head, labels)),
            held: Vec::new(),
        });
    }
    t.component("", Component::Head, || {
        let mut logits = lm_head.call(t, &states);
        logits = form.of(t, logits);
        let loss;
        if batch.loss == Loss::Shifted {
            (loss, logits) = t.scope("loss", || nn::cast_and_shifted_lm_loss(t, logits, labels));
        } else {
            loss = t.scope("loss", || nn::causal_lm_loss(t, &logits, labels));
        }
        drop((h, states));
        Output {
            loss,
            held: vec![logits],
        }
    })
}
