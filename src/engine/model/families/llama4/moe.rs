//! Experts of Llama 4, which all take every token, scaled by the router.

use super::text_config::Llama4TextConfig;
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, Builder};
use crate::tape::{Module, Tape, Tensor};

/// `Llama4TextMoe`.
pub struct Moe {
    module: Module,
    /// [experts, hidden, 2 × intermediate].
    gate_up_proj: Tensor,
    /// [experts, intermediate, hidden].
    down_proj: Tensor,
    /// Weight of the router, [experts, hidden].
    router: Tensor,
    shared_expert: Mlp,
    chosen: u64,
    activation: Activation,
}

impl Moe {
    pub fn new(b: &Builder, c: &Llama4TextConfig) -> Self {
        let t = b.tape();
        let (experts, hidden, intermediate) = (c.experts, c.hidden, c.intermediate);
        let [gate_up_proj, down_proj] = t.scope("experts", || {
            [
                b.weight("gate_up_proj", [experts, hidden, 2 * intermediate]),
                b.weight("down_proj", [experts, intermediate, hidden]),
            ]
        });
        let router = t.scope("router", || b.weight("weight", [experts, hidden]));
        let shared_expert = t.scope("shared_expert", || {
            Mlp::of(b, [hidden, intermediate], false, c.activation)
        });
        Self {
            module: b.module(),
            gate_up_proj,
            down_proj,
            router,
            shared_expert,
            chosen: c.chosen,
            activation: c.activation,
        }
    }

    /// [batch, seq, hidden] → [batch × seq, hidden], and the router's logits.
    pub fn call(&self, t: &Tape, x: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, move || {
            let h = t.view(x, [x.numel() / x.last(), x.last()]);
            let (scores, logits) = t.scope("router", || self.route(t, &h));
            let [tokens, experts] = [scores.size(0), scores.last()];
            let mut routed = t.repeat_rows(&h, experts);
            routed = {
                let column = t.reshape(&t.transpose(&scores, 0, 1), [tokens * experts, 1]);
                t.mul(&routed, &column)
            };
            let of_experts = t.scope("experts", || self.experts(t, &routed));
            let mut out = self.shared_expert.call(t, h.clone());
            {
                let sum = t.sum_dim(&t.view(&of_experts, [experts, tokens, x.last()]), 0);
                out = t.add_(out, &sum);
            }
            drop((of_experts, routed, scores, h));
            (out, logits)
        })
    }

    /// `Llama4Router`: tokens [n, hidden] → scores and logits, [n, experts] each.
    fn route(&self, t: &Tape, x: &Tensor) -> (Tensor, Tensor) {
        let logits = t.linear(x, &self.router, None);
        let [values, places] = t.topk(&logits, self.chosen);
        let mut scores = t.compute(&logits, logits.dtype(), "full_like");
        scores = t.scatter_(scores, &places, &values);
        scores = {
            let activated = t.sigmoid(&t.to_dtype(&scores, DType::F32));
            t.to_dtype(&activated, scores.dtype())
        };
        drop((values, places));
        (scores, logits)
    }

    /// `Llama4TextExperts`: tokens of all experts, [experts × n, hidden] → the same shape.
    fn experts(&self, t: &Tape, x: &Tensor) -> Tensor {
        let experts = self.down_proj.size(0);
        let grouped = t.view(x, [experts, x.size(0) / experts, x.last()]);
        let product = |x: &Tensor, weight: &Tensor| {
            let weight = t.cast_low(weight);
            let x = t.cast_low(x);
            t.bmm(&x, &weight)
        };
        let gate_up = product(&grouped, &self.gate_up_proj);
        let half = gate_up.last() / 2;
        let parts = t.split(&gate_up, 2, &[half; 2]);
        let next = {
            let gated = {
                let activated = t.scope("act_fn", || nn::activate(t, self.activation, parts[0].clone()));
                t.mul(&parts[1], &activated)
            };
            product(&gated, &self.down_proj)
        };
        drop((parts, gate_up, grouped));
        t.view(&next, [next.size(0) * next.size(1), next.last()])
    }
}
