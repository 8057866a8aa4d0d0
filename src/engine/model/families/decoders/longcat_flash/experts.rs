//! LongCat-Flash's experts, which run one after the other on the tokens that they get
//! (`transformers/models/longcat_flash/modeling_longcat_flash.py`).

use std::rc::Rc;

use crate::dtype::DType;
use crate::model::decoder::{DecoderConfig, OwnSizes};
use crate::nn::{Activation, Builder, Linear, Wrapped, activate};
use crate::tape::{Module, Tape, Tensor};

/// `LongcatFlashMoE`.
pub(super) struct Moe {
    module: Module,
    experts: Experts,
    router: Router,
}

/// `LongcatFlashExperts`. How many tokens an expert gets depends on the batch: here all get as many, as far as they can.
struct Experts {
    module: Module,
    /// [all experts, 2 × intermediate, hidden].
    gate_up_proj: Rc<Wrapped>,
    /// [experts that compute, hidden, intermediate].
    down_proj: Rc<Wrapped>,
    activation: Activation,
}

/// `LongcatFlashTopkRouter`.
struct Router {
    module: Module,
    correction: Tensor,
    classifier: Linear,
    chosen: u64,
}

impl Moe {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (Some(e), OwnSizes::Shortcut { zero_experts, .. }) = (&c.experts, &c.own) else {
            unreachable!("the family has experts")
        };
        let (t, sizes) = (b.tape(), e.sizes);
        let all = sizes.experts + zero_experts;
        let up = [all, 2 * sizes.intermediate, sizes.hidden];
        let experts = t.scope("experts", || Experts {
            module: b.module(),
            gate_up_proj: Wrapped::new(b, "gate_up_proj", up),
            down_proj: Wrapped::new(b, "down_proj", [sizes.experts, sizes.hidden, sizes.intermediate]),
            activation: c.activation,
        });
        let router = t.scope("router", || Router {
            module: b.module(),
            correction: b.buffer("e_score_correction_bias", [all], b.dtype()),
            classifier: Linear::new(b, "classifier", sizes.hidden, all, false),
            chosen: e.chosen(),
        });
        Self {
            module: b.module(),
            experts,
            router,
        }
    }

    /// [batch, seq, hidden] → the same.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [weights, indices] = self.router.call(t, x);
            let rows = t.view(x, [x.numel() / x.last(), x.last()]);
            let out = self.experts.call(t, &rows, [&indices, &weights]);
            t.view(&out, *x.shape())
        })
    }
}

impl Router {
    /// Weights and indices of the experts that are chosen for tokens [.., hidden], [n, chosen] each.
    fn call(&self, t: &Tape, x: &Tensor) -> [Tensor; 2] {
        self.module.call(t, || {
            let logits = {
                let wide = t.to_dtype(&t.view(x, [x.numel() / x.last(), x.last()]), DType::F32);
                let weight = self
                    .classifier
                    .read_weight(t)
                    .map(|weight| t.to_dtype(&weight, DType::F32));
                t.linear(&wide, weight.as_ref().unwrap_or(&wide), None)
            };
            let scores = t.softmax(&logits, None);
            let indices = t.no_grad(|| {
                let choice = t.add(&scores, &t.unsqueeze(&self.correction, 0));
                let [_values, indices] = t.topk(&choice, self.chosen);
                indices
            });
            let mut weights = t.gather_last(&scores, &indices);
            weights = t.scale(&weights);
            [t.to_dtype(&weights, logits.dtype()), indices]
        })
    }
}

impl Experts {
    /// Rows [n, hidden], the experts chosen for each [n, k] and their weights [n, k] → [n, hidden].
    fn call(&self, t: &Tape, rows: &Tensor, [chosen, weights]: [&Tensor; 2]) -> Tensor {
        self.module.call(t, || {
            // The wrapper of the last parameter encloses the other.
            let down = self.down_proj.activate(t);
            let gate_up = self.gate_up_proj.activate(t);
            let mut out = t.empty_like(rows, rows.dtype(), "zeros_like");
            let [all, computing] = [&self.gate_up_proj, &self.down_proj].map(|weight| weight.weight().size(0));
            let taken = chosen.numel();
            let mask = t.empty([chosen.size(0), chosen.last(), all], DType::I64, "one_hot");
            let mask = t.permute(&mask, &[2, 1, 0]);
            let _hit = {
                let over = {
                    let counts = t.count(&mask, &[1, 2]);
                    t.compute(&counts, DType::Bool, "greater")
                };
                t.nonzero(&over, all.min(taken))
            };
            // Variables of the loop, which hold what the last expert made.
            let (mut _places, mut _state, mut _parts) = (None, None, None);
            let mut held: Option<Tensor> = None;
            for expert in 0..all.min(taken) {
                let count = taken / all + u64::from(expert < taken % all);
                let places = t.unbind_at(&t.nonzero(&t.select(&mask, 0), count), 1);
                let [of_choice, of_rows] = [places[0].clone(), places[1].clone()];
                _places = Some(places);
                let state = t.index(rows, std::slice::from_ref(&of_rows));
                _state = Some(state.clone());
                let mut h = state;
                if expert < computing {
                    let parts = {
                        let made = t.linear(&h, &t.select(gate_up.get(t), 0), None);
                        t.split(&made, 1, &[made.last() / 2; 2])
                    };
                    let [gate, up] = [parts[0].clone(), parts[1].clone()];
                    _parts = Some(parts);
                    h = {
                        let activated = t.scope("act_fn", || activate(t, self.activation, gate));
                        t.mul(&activated, &up)
                    };
                    drop(held.take());
                    h = t.linear(&h, &t.select(down.get(t), 0), None);
                }
                drop(held.take());
                h = {
                    let weight = t.index(&t.unsqueeze(weights, 2), &[of_rows.clone(), of_choice]);
                    t.mul(&h, &weight)
                };
                held = Some(h.clone());
                out = t.index_add_(out, &of_rows, &t.to_dtype(&h, rows.dtype()));
            }
            drop(held);
            let cached = gate_up.end();
            drop((cached, down));
            out
        })
    }
}
