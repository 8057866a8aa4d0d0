//! AFMoE's experts (`transformers/models/afmoe/modeling_afmoe.py`).

use crate::dtype::DType;
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{Builder, Experts, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `AfmoeSparseMoeBlock`.
pub(super) struct SparseMlp {
    module: Module,
    /// `AfmoeTokenChoiceRouter`.
    gate: Linear,
    shared_experts: Mlp,
    experts: Experts,
    /// Correction of the choice, which is never trained.
    expert_bias: Tensor,
    chosen: u64,
}

impl SparseMlp {
    pub fn new(b: &Builder, c: &DecoderConfig, e: &ExpertsConfig) -> Self {
        let t = b.tape();
        let experts = e.sizes.experts;
        let widths = [c.hidden, e.shared_width().unwrap_or(e.sizes.intermediate)];
        Self {
            module: b.module(),
            gate: t.scope("router", || Linear::wrapped(b, "gate", c.hidden, experts)),
            shared_experts: t.scope("shared_experts", || Mlp::of(b, widths, false, c.activation)),
            experts: Experts::new(b, "experts", e.sizes, c.activation),
            expert_bias: b.frozen_weight("expert_bias", [experts]),
            chosen: e.chosen(),
        }
    }

    /// `AfmoeTokenChoiceRouter.forward`.
    fn route(&self, t: &Tape, rows: &Tensor) -> [Tensor; 3] {
        let logits = t.to_dtype(&self.gate.call(t, rows), DType::F32);
        let scores = t.sigmoid(&logits);
        let [_values, indices] = t.topk(&t.add(&scores, &self.expert_bias), self.chosen);
        let mut weights = t.gather_last(&scores, &indices);
        let shifted = t.shift(&t.sum_last(&weights));
        weights = t.div(&weights, &shifted);
        weights = t.scale(&weights);
        drop(shifted);
        [logits, weights, indices]
    }
}

impl FeedForward for SparseMlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let [_logits, weights, indices] = t.scope("router", || self.route(t, &t.view(&x, *rows.shape())));
            let of_shared = self.shared_experts.call(t, rows.clone());
            let routed = self.experts.call(t, &rows, &indices, &weights);
            t.add(&t.view(&of_shared, shape), &t.view(&routed, shape))
        })
    }
}
