//! Experts in place of a decoder's MLP.

use super::config::DecoderConfig;
use super::experts::{Combination, ExpertsConfig, SharedKind};
use super::layer::{FeedForward, Layer};
use super::mlp::Mlp;
use super::router::Router;
use crate::dtype::DType;
use crate::nn::{Activation, Builder, Experts, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block of a decoder with experts: Llama's, with experts or an MLP.
pub(crate) struct ExpertLayer;

impl ExpertLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        let Some(experts) = c.experts.as_ref().filter(|experts| experts.sparse[index]) else {
            return Layer::new(b, c, index);
        };
        let form = (c.activation, c.mlp_bias);
        Layer::with_mlp(b, c, index, &|| Box::new(SparseMlp::new(b, form, experts)))
    }
}

/// `Qwen3MoeSparseMoeBlock`, `DeepseekV3MoE` and their variants.
pub(crate) struct SparseMlp {
    module: Module,
    experts: Experts,
    gate: Router,
    shared: Option<Shared>,
    /// Norm of what all experts together make (A.X-K1).
    post_mlp_layernorm: Option<RmsNorm>,
}

/// An expert that all tokens pass.
struct Shared {
    kind: SharedKind,
    mlp: Mlp,
    gate: Option<Linear>,
}

impl Shared {
    fn new(
        b: &Builder,
        (kind, intermediate): (SharedKind, u64),
        hidden: u64,
        (activation, bias): (Activation, bool),
    ) -> Self {
        let mlp = b
            .tape()
            .scope(kind.name(), || Mlp::of(b, [hidden, intermediate], bias, activation));
        let gated = kind == SharedKind::Gated;
        let gate = gated.then(|| Linear::new(b, "shared_expert_gate", hidden, 1, false));
        Self { kind, mlp, gate }
    }

    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        self.mlp.call(t, x)
    }

    /// Multiplies what the expert made by its gate, if it has one.
    fn gated(&self, t: &Tape, rows: &Tensor, output: Tensor) -> Tensor {
        let Some(gate) = &self.gate else { return output };
        let activated = t.sigmoid(&gate.call(t, rows));
        t.mul(&activated, &output)
    }
}

impl SharedKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Gated => "shared_expert",
            Self::Added | Self::AddedAndNormed | Self::AddedFirst | Self::Last(_) => "shared_experts",
            Self::Beside | Self::Outside => "shared_mlp",
        }
    }
}

impl SparseMlp {
    /// Makes the experts of a decoder whose MLPs have this activation, and biases or not.
    pub fn new(b: &Builder, form: (Activation, bool), e: &ExpertsConfig) -> Self {
        Self::around(b, form, e, &|| Experts::new(b, "experts", e.sizes, form.0))
    }

    /// Makes a block around these experts.
    pub fn around(b: &Builder, form: (Activation, bool), e: &ExpertsConfig, experts: &dyn Fn() -> Experts) -> Self {
        let gate = || b.tape().scope("gate", || Router::new(b, e));
        let first = e.gate_first.then(gate);
        let experts = experts();
        let gate = first.unwrap_or_else(gate).corrected_by_block(b);
        let shared = e.shared.map(|kind| Shared::new(b, kind, e.sizes.hidden, form));
        let is_normed = matches!(e.shared, Some((SharedKind::AddedAndNormed, _)));
        Self {
            module: b.module(),
            experts,
            gate,
            shared,
            post_mlp_layernorm: is_normed.then(|| RmsNorm::new(b, "post_mlp_layernorm", e.sizes.hidden)),
        }
    }

    /// Rows [tokens, hidden] → what the chosen experts make of them, and the router's logits [tokens, experts].
    pub fn call_on_rows(&self, t: &Tape, rows: &Tensor) -> [Tensor; 2] {
        self.module.call(t, move || {
            let [logits, weights, indices] = self.gate.call(t, rows);
            let out = self.experts.call(t, rows, &indices, &weights);
            [out, logits]
        })
    }

    /// Combines what the expert that all tokens pass makes last (`HYV3MoE.forward`, `Cohere2MoeSparseMoeBlock.forward`).
    fn forward_combined(&self, t: &Tape, shared: &Shared, how: Combination, x: Tensor) -> Tensor {
        let shape = *x.shape();
        let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
        let [_logits, weights, indices] = self.gate.call(t, &rows);
        let routed = self.experts.call(t, &rows, &indices, &weights);
        let widened = |x: Tensor| match how {
            Combination::SumInF32 => t.to_dtype(&x, DType::F32),
            Combination::Sum | Combination::Average => x,
        };
        // What is not added in fp32 has a variable of its own.
        let mut _own = None;
        let mut sum = {
            let of_routed = widened(routed.clone());
            let of_shared = widened(shared.forward(t, rows.clone()));
            _own = (how != Combination::SumInF32).then(|| of_shared.clone());
            t.add(&of_routed, &of_shared)
        };
        if how == Combination::Average {
            sum = t.scale(&sum);
        }
        let out = t.to_dtype(&sum, rows.dtype());
        drop(sum);
        t.view(&out, shape)
    }

    /// Runs the expert that all tokens pass first, and adds what it makes last (`HunYuanMoEV1Moe.forward`).
    fn forward_beside(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let shape = *x.shape();
        let of_shared = shared.forward(t, x.clone());
        let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
        let [_logits, weights, indices] = self.gate.call(t, &rows);
        let routed = self.experts.call(t, &rows, &indices, &weights);
        let out = t.add(&t.view(&routed, shape), &of_shared);
        drop(of_shared);
        out
    }

    /// Adds what the expert that all tokens pass makes after the others, if there is one (`DeepseekV3MoE.forward`,
    /// `MiMoV2FlashMoE.forward`).
    fn forward_then_shared(&self, t: &Tape, shared: Option<&Shared>, x: Tensor) -> Tensor {
        let shape = *x.shape();
        let [_logits, weights, indices] = self.gate.call(t, &x);
        let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
        let mut out = self.experts.call(t, &rows, &indices, &weights);
        drop(rows);
        out = t.view(&out, shape);
        let Some(shared) = shared else { return out };
        let of_shared = shared.forward(t, x.clone());
        let sum = t.add(&out, &of_shared);
        drop((out, of_shared));
        match &self.post_mlp_layernorm {
            Some(norm) => norm.call(t, &sum),
            None => sum,
        }
    }
}

impl FeedForward for SparseMlp {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let runs_last = |shared: &&Shared| matches!(shared.kind, SharedKind::Added | SharedKind::AddedAndNormed);
            if let Some(shared) = self.shared.as_ref().filter(runs_last) {
                return self.forward_then_shared(t, Some(shared), x);
            }
            match &self.shared {
                Some(shared) if shared.kind == SharedKind::Beside => return self.forward_beside(t, shared, x),
                Some(shared) => {
                    if let SharedKind::Last(how) = shared.kind {
                        return self.forward_combined(t, shared, how, x);
                    }
                }
                None if self.gate.is_grouped() => return self.forward_then_shared(t, None, x),
                None => {}
            }
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let mut shared = self.shared.as_ref().map(|shared| shared.forward(t, rows.clone()));
            let [_logits, weights, indices] = self.gate.call(t, &rows);
            let mut out = self.experts.call(t, &rows, &indices, &weights);
            if let (Some(module), Some(output)) = (&self.shared, shared.take()) {
                let output = module.gated(t, &rows, output);
                out = t.add(&out, &output);
                shared = Some(output);
            }
            let out = t.reshape(&out, shape);
            drop(shared);
            out
        })
    }
}
