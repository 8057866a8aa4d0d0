//! Fused weights of experts, and the products with them (`transformers/integrations/moe.py`).

use std::rc::Rc;

use super::activation::{Activation, activate};
use super::builder::Builder;
use super::wrapped::{Active, Wrapped};
use crate::dtype::DType;
use crate::tape::{Module, Tape, Tensor};

/// Sizes of a layer's experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertSizes {
    /// Experts of a layer.
    pub experts: u64,
    /// Elements of a token.
    pub hidden: u64,
    /// Elements inside each expert.
    pub intermediate: u64,
}

/// Experts with a gate, whose weights are one tensor for each projection. They run as a plain installation of
/// transformers runs them (`grouped_mm`): tokens are sorted by expert and multiplied group by group, so that no size
/// depends on which experts are chosen.
pub struct Experts {
    module: Module,
    /// [experts, 2 × intermediate, hidden], or with the last two exchanged; without a gate [experts, intermediate, hidden].
    gate_up_proj: Rc<Wrapped>,
    /// [experts, hidden, intermediate], or with the last two exchanged.
    down_proj: Rc<Wrapped>,
    /// Biases of both, [experts, outputs].
    biases: Option<[Tensor; 2]>,
    gate: Gate,
}

/// Gates of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// The first half of the projection, by this activation (`_default_apply_gate`).
    Activated(Activation),
    /// Alternating elements of the projection, clamped (`GptOssExperts._apply_gate`).
    Clamped,
    /// The halves of the projection, clamped (`MiniMaxM3VLExperts._apply_gate`).
    ClampedHalves,
    /// The halves of the projection, clamped, the first by SiLU (`HYV4Experts._apply_gate`).
    Limited,
    /// None: the activation of the whole projection (`NemotronHExperts`).
    Absent(Activation),
}

impl Experts {
    /// Makes the weights of a layer's experts.
    pub fn new(b: &Builder, name: &'static str, sizes: ExpertSizes, activation: Activation) -> Self {
        let ExpertSizes {
            experts,
            hidden,
            intermediate,
        } = sizes;
        b.tape().scope(name, || Self {
            module: b.module(),
            gate_up_proj: Wrapped::new(b, "gate_up_proj", [experts, 2 * intermediate, hidden]),
            down_proj: Wrapped::new(b, "down_proj", [experts, hidden, intermediate]),
            biases: None,
            gate: Gate::Activated(activation),
        })
    }

    /// Makes the weights of experts without a gate.
    pub fn plain(b: &Builder, name: &'static str, sizes: ExpertSizes, activation: Activation) -> Self {
        let ExpertSizes {
            experts,
            hidden,
            intermediate,
        } = sizes;
        b.tape().scope(name, || Self {
            module: b.module(),
            gate_up_proj: Wrapped::new(b, "up_proj", [experts, intermediate, hidden]),
            down_proj: Wrapped::new(b, "down_proj", [experts, hidden, intermediate]),
            biases: None,
            gate: Gate::Absent(activation),
        })
    }

    /// Makes the weights of MiniMax-M3's experts, whose gates are clamped.
    pub fn clamped(b: &Builder, name: &'static str, sizes: ExpertSizes) -> Self {
        Self {
            gate: Gate::ClampedHalves,
            ..Self::new(b, name, sizes, Activation::Silu)
        }
    }

    /// Makes the weights of HY-4's experts, whose gates are clamped before their activation.
    pub fn limited(b: &Builder, name: &'static str, sizes: ExpertSizes) -> Self {
        Self {
            gate: Gate::Limited,
            ..Self::new(b, name, sizes, Activation::Silu)
        }
    }

    /// Makes the weights of gpt-oss's experts, whose inputs come before their outputs, and their biases.
    pub fn biased(b: &Builder, name: &'static str, sizes: ExpertSizes) -> Self {
        let ExpertSizes {
            experts,
            hidden,
            intermediate,
        } = sizes;
        b.tape().scope(name, || {
            let gate_up_proj = Wrapped::with_inputs_first(b, "gate_up_proj", [experts, hidden, 2 * intermediate]);
            let gate_up_proj_bias = b.weight("gate_up_proj_bias", [experts, 2 * intermediate]);
            let down_proj = Wrapped::with_inputs_first(b, "down_proj", [experts, intermediate, hidden]);
            let down_proj_bias = b.weight("down_proj_bias", [experts, hidden]);
            Self {
                module: b.module(),
                gate_up_proj,
                down_proj,
                biases: Some([gate_up_proj_bias, down_proj_bias]),
                gate: Gate::Clamped,
            }
        })
    }

    /// `grouped_mm_experts_forward`: tokens [n, hidden], the experts chosen for each [n, k] and their weights [n, k] →
    /// [n, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor, chosen: &Tensor, weights: &Tensor) -> Tensor {
        self.module.call(t, || {
            // The wrapper of the last parameter encloses the other.
            let down = self.down_proj.activate(t);
            let gate_up = self.gate_up_proj.activate(t);
            let out = self.sorted(t, x, [chosen, weights], [&gate_up, &down]);
            let cached = gate_up.end();
            drop((cached, down));
            out
        })
    }

    fn sorted(
        &self,
        t: &Tape,
        x: &Tensor,
        [chosen, weights]: [&Tensor; 2],
        [gate_up, down]: [&Active<'_>; 2],
    ) -> Tensor {
        let [tokens, k] = [chosen.size(0), chosen.last()];
        let pairs = tokens * k;
        let sample_weights = t.reshape(weights, [pairs]);
        let expert_ids = t.reshape(chosen, [pairs]);
        let [ids_g, perm] = t.sort_ids(&expert_ids);
        let selected = {
            let of_pairs = t.compute(&perm, DType::I64, "token of each pair");
            t.index(x, &[of_pairs])
        };
        let sample_weights_g = t.index(&sample_weights, std::slice::from_ref(&perm));
        let _histc_input = t.compute(&ids_g, DType::I32, "to int32");
        let counts = t.empty([self.gate_up_proj.weight().size(0)], DType::I32, "histc");
        let ends = t.ends_of(&counts);
        let sentinels = t.unsqueeze(&t.compute(&ids_g, DType::Bool, "ge"), 1);
        let bias_of = |which: usize| {
            let biases = self.biases.as_ref();
            biases.map(|biases| t.index(&biases[which], std::slice::from_ref(&ids_g)))
        };
        let gate_up = gate_up.get(t);
        let mut bias = bias_of(0);
        let selected = t.masked_fill_(selected, &sentinels);
        let mut proj_out = self.grouped_linear(t, &selected, gate_up, &ends, bias.as_ref());
        proj_out = t.masked_fill(&proj_out, &sentinels);
        proj_out = match self.gate {
            Gate::Activated(activation) => gated(t, activation, &proj_out),
            Gate::Clamped => clamped(t, &proj_out),
            Gate::ClampedHalves => clamped_gate(t, &proj_out).0,
            Gate::Limited => limited(t, &proj_out),
            Gate::Absent(activation) => t.scope("act_fn", || activate(t, activation, proj_out)),
        };
        let down = down.get(t);
        bias = bias_of(1).or(bias);
        proj_out = self.grouped_linear(t, &proj_out, down, &ends, bias.as_ref());
        proj_out = t.masked_fill(&proj_out, &sentinels);
        let mut weighted = t.mul(&proj_out, &t.unsqueeze(&sample_weights_g, 1));
        let inverse = t.compute(&perm, DType::I64, "inverse order");
        drop(t.compute(&perm, DType::I64, "arange"));
        weighted = t.index(&weighted, std::slice::from_ref(&inverse));
        let sum = t.sum_dim(&t.view(&weighted, [tokens, k, x.last()]), 1);
        t.to_dtype(&sum, x.dtype())
    }

    /// `_grouped_linear`.
    fn grouped_linear(&self, t: &Tape, x: &Tensor, weight: &Tensor, ends: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let x = t.to_dtype(x, weight.dtype());
        match bias {
            Some(bias) => t.add_(t.grouped_mm(&x, weight, ends), bias),
            None => t.grouped_mm(&x, &t.transpose(weight, 1, 2), ends),
        }
    }
}

/// `_default_apply_gate`.
fn gated(t: &Tape, activation: Activation, gate_up: &Tensor) -> Tensor {
    let half = gate_up.last() / 2;
    let parts = t.split(gate_up, 1, &[half; 2]);
    let activated = t.scope("act_fn", || activate(t, activation, parts[0].clone()));
    t.mul(&activated, &parts[1])
}

/// `HYV4Experts._apply_gate`.
fn limited(t: &Tape, gate_up: &Tensor) -> Tensor {
    let half = gate_up.last() / 2;
    let parts = t.split(gate_up, 1, &[half; 2]);
    let gate = t.clamp(&parts[0]);
    let up = t.clamp_between(&parts[1]);
    let activated = activate(t, Activation::Silu, gate.clone());
    let product = t.mul(&activated, &up);
    drop((up, gate));
    product
}

/// `GptOssExperts._apply_gate`.
fn clamped(t: &Tape, gate_up: &Tensor) -> Tensor {
    let half = gate_up.last() / 2;
    clamped_product(t, [0, 1].map(|_| t.narrow(gate_up, 1, half))).0
}

/// Multiplies the second half of a projection by the first, both clamped (`MiniMaxM3VLDenseMLP.forward`); returns the
/// locals beside the product.
pub fn clamped_gate(t: &Tape, gate_up: &Tensor) -> (Tensor, [Tensor; 3]) {
    let half = gate_up.last() / 2;
    let parts = t.split(gate_up, gate_up.dim() - 1, &[half; 2]);
    clamped_product(t, [parts[0].clone(), parts[1].clone()])
}

/// Clamps a gate and what it multiplies, and multiplies both.
fn clamped_product(t: &Tape, [mut gate, mut up]: [Tensor; 2]) -> (Tensor, [Tensor; 3]) {
    gate = t.clamp(&gate);
    up = t.clamp_between(&up);
    let glu = {
        let activated = t.sigmoid(&t.scale(&gate));
        t.mul(&gate, &activated)
    };
    let product = t.mul(&t.shift(&up), &glu);
    (product, [glu, up, gate])
}
