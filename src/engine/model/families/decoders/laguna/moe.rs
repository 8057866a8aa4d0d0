//! Laguna's experts (`transformers/models/laguna/modeling_laguna.py`).

use std::rc::Rc;

use crate::dtype::DType;
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::{DecoderConfig, ExpertsConfig, OwnSizes};
use crate::nn::{Builder, Experts, Wrapped};
use crate::tape::{Module, Tape, Tensor};

/// `LagunaSparseMoeBlock`.
pub(super) struct SparseMlp {
    module: Module,
    experts: Experts,
    gate: Router,
    shared_experts: Mlp,
}

/// `LagunaTopKRouter`.
struct Router {
    module: Module,
    weight: Rc<Wrapped>,
    /// Correction of the choice, which is never trained.
    correction: Tensor,
    chosen: u64,
    caps: bool,
}

impl SparseMlp {
    pub fn new(b: &Builder, c: &DecoderConfig, e: &ExpertsConfig) -> Self {
        let t = b.tape();
        let widths = [c.hidden, e.shared_width().unwrap_or(e.sizes.intermediate)];
        Self {
            module: b.module(),
            experts: Experts::new(b, "experts", e.sizes, c.activation),
            gate: t.scope("gate", || Router::new(b, c, e)),
            shared_experts: t.scope("shared_experts", || Mlp::of(b, widths, false, c.activation)),
        }
    }
}

impl Router {
    fn new(b: &Builder, c: &DecoderConfig, e: &ExpertsConfig) -> Self {
        Self {
            module: b.module(),
            weight: Wrapped::new(b, "weight", [e.sizes.experts, c.hidden]),
            correction: b.frozen_weight("e_score_correction_bias", [e.sizes.experts]),
            chosen: e.chosen(),
            caps: matches!(c.own, OwnSizes::Laguna { caps_logits: true, .. }),
        }
    }

    /// Rows [tokens, hidden] → logits [tokens, experts], and weights and indices of the chosen experts, [tokens, chosen].
    fn call(&self, t: &Tape, rows: &Tensor) -> [Tensor; 3] {
        self.module.call(t, || {
            let rows = t.view(rows, *rows.shape());
            let mut logits = {
                let weight = self.weight.activate(t);
                t.to_dtype(&t.linear(&rows, weight.get(t), None), DType::F32)
            };
            if self.caps {
                logits = capped(t, &logits);
            }
            let scores = t.sigmoid(&logits);
            let choice = t.add(&scores, &t.to_dtype(&self.correction, scores.dtype()));
            let [_values, indices] = t.topk(&choice, self.chosen);
            let mut weights = t.gather_last(&scores, &indices);
            weights = t.div(&weights, &t.sum_last(&weights));
            weights = t.to_dtype(&weights, rows.dtype());
            [logits, weights, indices]
        })
    }
}

/// `cap * tanh(x / cap)` of logits, which live until it is made.
fn capped(t: &Tape, logits: &Tensor) -> Tensor {
    let bent = {
        let shares = t.scale(logits);
        t.tanh(&shares)
    };
    t.scale(&bent)
}

impl FeedForward for SparseMlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let of_shared = self.shared_experts.call(t, rows.clone());
            let [_logits, weights, indices] = self.gate.call(t, &rows);
            let mut h = self.experts.call(t, &rows, &indices, &weights);
            h = t.scale(&h);
            h = t.add(&h, &of_shared);
            t.reshape(&h, shape)
        })
    }
}
