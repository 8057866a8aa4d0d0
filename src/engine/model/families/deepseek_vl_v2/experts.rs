//! Experts of DeepSeek-V2 as its own code runs them, one by one (`DeepseekV2MoE` of `modeling_deepseek.py`).

use std::rc::Rc;

use super::config::{ExpertsConfig, LanguageConfig};
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::nn::{Builder, Numbered};
use crate::tape::{Module, Tape, Tensor};

/// `DeepseekV2MoE`.
pub struct Experts {
    module: Module,
    experts: Vec<Numbered<Mlp>>,
    gate: Gate,
    shared: Option<Mlp>,
    chosen: u64,
}

/// `MoEGate`.
struct Gate {
    module: Module,
    weight: Tensor,
    chosen: u64,
    balances: bool,
    normalises: bool,
}

impl Experts {
    pub fn new(b: &Builder, c: &LanguageConfig, e: &ExpertsConfig) -> Self {
        let t = b.tape();
        let mlp = |width| Mlp::of(b, [c.hidden, width], false, c.activation);
        let experts = (0..e.count as usize)
            .map(|i| Numbered::new(b, "experts", i, || Rc::new(mlp(e.intermediate))))
            .collect();
        Self {
            module: b.module(),
            experts,
            gate: t.scope("gate", || Gate {
                module: b.module(),
                weight: b.weight("weight", [e.count, c.hidden]),
                chosen: e.chosen,
                balances: e.balances,
                normalises: e.normalises,
            }),
            shared: e.shared.map(|width| t.scope("shared_experts", || mlp(width))),
            chosen: e.chosen,
        }
    }

    /// [batch, seq, hidden] → the same; each expert takes as many tokens as any other.
    pub fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let [weights, chosen, balance] = self.gate.call(t, &x);
            let tokens = x.numel() / x.last();
            let rows = t.view(&x, [tokens, x.last()]);
            let repeated = t.repeat_each(&rows, self.chosen, 0);
            drop(rows);
            let flat = t.view(&chosen, [tokens * self.chosen]);
            let mut y = t.compute(&repeated, repeated.dtype(), "empty_like");
            for (i, expert) in self.experts.iter().enumerate() {
                let taken = share(tokens * self.chosen, self.experts.len() as u64, i as u64);
                y = self.of_expert(t, expert, (&repeated, &flat, taken), y);
            }
            y = {
                let of_tokens = t.view(&y, [tokens, self.chosen, shape[shape.len() - 1]]);
                let weighted = t.mul(&of_tokens, &t.unsqueeze(&weights, 2));
                drop(of_tokens);
                t.sum_dim(&weighted, 1)
            };
            y = t.view(&t.to_dtype(&y, repeated.dtype()), shape);
            y = t.add_auxiliary_loss(&y, &balance);
            if let Some(shared) = &self.shared {
                let of_all = shared.call(t, x.clone());
                y = t.add(&y, &of_all);
            }
            drop((repeated, flat, chosen, weights, balance));
            y
        })
    }

    /// `y[flat_topk_idx == i] = expert(hidden_states[flat_topk_idx == i])`.
    fn of_expert(
        &self,
        t: &Tape,
        expert: &Numbered<Mlp>,
        (rows, chosen, taken): (&Tensor, &Tensor, u64),
        y: Tensor,
    ) -> Tensor {
        let mine = || t.compute(chosen, DType::Bool, "tokens of an expert");
        let input = t.index_rows(rows, &mine(), taken);
        let made = expert.call(t, input);
        t.index_put_rows(y, &mine(), &made)
    }
}

/// Tokens of expert `i` where `count` share `all` of them.
const fn share(all: u64, count: u64, i: u64) -> u64 {
    all / count + (i < all % count) as u64
}

impl Gate {
    /// Weights of the chosen experts and their indices, [tokens, chosen] each, and the loss that balances experts.
    fn call(&self, t: &Tape, x: &Tensor) -> [Tensor; 3] {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let rows = t.view(x, [batch * seq, hidden]);
            let logits = {
                let wide = t.to_dtype(&rows, DType::F32);
                t.linear(&wide, &t.to_dtype(&self.weight, DType::F32), None)
            };
            let scores = t.softmax(&logits, Some(DType::F32));
            let [mut weights, indices] = t.topk(&scores, self.chosen);
            let mut _denominator = None;
            if self.normalises {
                let sum = t.shift(&t.sum_last(&weights));
                weights = t.div(&weights, &sum);
                _denominator = Some(sum);
            }
            weights = t.scale(&weights);
            let balance = match self.balances {
                true => self.balance(t, &scores, [batch, seq]),
                false => t.empty([], DType::F32, "no loss"),
            };
            drop((scores, logits));
            [weights, indices, balance]
        })
    }

    /// Share of the tokens of each expert in a sample, times its mean score.
    fn balance(&self, t: &Tape, scores: &Tensor, [batch, seq]: [u64; 2]) -> Tensor {
        let experts = scores.last();
        let of_samples = t.view(scores, [batch, seq, experts]);
        let shares = t.empty([batch, experts], DType::F32, "zeros");
        drop(t.empty([batch, seq * self.chosen], DType::F32, "ones"));
        let product = {
            let means = t.mean(&of_samples, 1);
            t.mul(&shares, &means)
        };
        let sums = t.sum_dim(&product, 1);
        drop(product);
        let mean = t.mean_all(&sums);
        drop(sums);
        let loss = t.scale(&mean);
        drop(shares);
        loss
    }
}
