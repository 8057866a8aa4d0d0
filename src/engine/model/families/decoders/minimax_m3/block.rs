//! MiniMax-M3's blocks: Llama's with clamped gates, and experts (`transformers/models/minimax_m3_vl/modeling_*.py`).

use super::shared_width;
use crate::model::decoder::layer::{FeedForward, Layer};
use crate::model::decoder::router::Router;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{Builder, Experts, Linear, clamped_gate};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block: Llama's, with experts or one gated MLP.
pub(crate) struct ClampedExpertLayer;

/// `MiniMaxM3VLDenseMLP`.
struct ClampedMlp {
    module: Module,
    gate_up_proj: Linear,
    down_proj: Linear,
}

/// `MiniMaxM3VLSparseMoeBlock`.
struct ClampedExperts {
    module: Module,
    gate: Router,
    experts: Experts,
    shared_experts: ClampedMlp,
}

impl ClampedExpertLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        match c.experts.as_ref().filter(|experts| experts.sparse[index]) {
            Some(experts) => Layer::with_mlp(b, c, index, &|| Box::new(ClampedExperts::new(b, c, experts))),
            None => Layer::with_mlp(b, c, index, &|| Box::new(ClampedMlp::new(b, c.hidden, c.intermediate))),
        }
    }
}

impl ClampedMlp {
    fn new(b: &Builder, hidden: u64, intermediate: u64) -> Self {
        Self {
            module: b.module(),
            gate_up_proj: Linear::new(b, "gate_up_proj", hidden, 2 * intermediate, false),
            down_proj: Linear::rows(b, "down_proj", intermediate, hidden, false),
        }
    }
}

impl FeedForward for ClampedMlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let gate_up = self.gate_up_proj.call(t, &x);
            let (product, _locals) = clamped_gate(t, &gate_up);
            self.down_proj.call(t, &product)
        })
    }
}

impl ClampedExperts {
    fn new(b: &Builder, c: &DecoderConfig, e: &ExpertsConfig) -> Self {
        let t = b.tape();
        Self {
            module: b.module(),
            gate: t.scope("gate", || Router::new(b, e)),
            experts: Experts::clamped(b, "experts", e.sizes),
            shared_experts: t.scope("shared_experts", || ClampedMlp::new(b, c.hidden, shared_width(c))),
        }
    }
}

impl FeedForward for ClampedExperts {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let shared = self.shared_experts.call(t, rows.clone());
            let [_logits, weights, indices] = self.gate.call(t, &rows);
            let mut h = self.experts.call(t, &rows, &indices, &weights);
            drop(rows);
            h = t.scale(&h);
            h = t.add(&h, &shared);
            let out = t.view(&h, shape);
            drop((shared, weights, indices));
            out
        })
    }
}
