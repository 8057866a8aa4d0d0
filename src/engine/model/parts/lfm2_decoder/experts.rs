//! LFM2-MoE's experts (`Lfm2MoeSparseMoeBlock`).

use std::rc::Rc;

use super::config::Lfm2Experts;
use crate::dtype::DType;
use crate::nn::{Activation, Builder, Experts, Wrapped};
use crate::tape::{Module, Tape, Tensor};

/// `Lfm2MoeSparseMoeBlock`.
pub struct SparseMlp {
    module: Module,
    gate: Gate,
    experts: Experts,
    /// Correction of the choice, in fp32.
    expert_bias: Option<Tensor>,
}

/// `Lfm2MoeTopKRouter`.
struct Gate {
    module: Module,
    weight: Rc<Wrapped>,
    chosen: u64,
    is_normalised: bool,
}

impl SparseMlp {
    pub fn new(b: &Builder, e: &Lfm2Experts) -> Self {
        let experts = Experts::new(b, "experts", e.sizes, Activation::Silu);
        let gate = b.tape().scope("gate", || Gate {
            module: b.module(),
            weight: Wrapped::of(b, "weight", b.weight("weight", [e.sizes.experts, e.sizes.hidden])),
            chosen: e.chosen,
            is_normalised: e.is_normalised,
        });
        Self {
            module: b.module(),
            gate,
            experts,
            expert_bias: e
                .has_bias
                .then(|| b.buffer("expert_bias", [e.sizes.experts], DType::F32)),
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let rows = t.view(x, [x.numel() / x.last(), x.last()]);
            let [_logits, weights, indices] = self.gate.call(t, &rows, self.expert_bias.as_ref());
            let out = self.experts.call(t, &rows, &indices, &weights);
            t.reshape(&out, *x.shape())
        })
    }
}

impl Gate {
    /// Tokens [n, hidden] → logits [n, experts], and weights and indices of the chosen experts, [n, chosen].
    fn call(&self, t: &Tape, rows: &Tensor, bias: Option<&Tensor>) -> [Tensor; 3] {
        self.module.call(t, || {
            let weight = self.weight.activate(t);
            let logits = t.linear(rows, weight.get(t), None);
            let scores = t.sigmoid(&logits);
            let mut _corrected = None;
            let (mut weights, indices);
            match bias {
                Some(bias) => {
                    let choice = t.add(&scores, bias);
                    let [values, places] = t.topk(&choice, self.chosen);
                    weights = t.gather_last(&scores, &places);
                    indices = places;
                    _corrected = Some((choice, values));
                }
                None => [weights, indices] = t.topk(&scores, self.chosen),
            }
            drop(scores);
            if self.is_normalised {
                weights = {
                    let shifted = t.shift(&t.sum_last(&weights));
                    t.div(&weights, &shifted)
                };
            }
            let weights = t.scale(&weights);
            [logits, weights, indices]
        })
    }
}
