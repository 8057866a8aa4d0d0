//! Aria's experts, which a loop runs one by one, each on its own tokens (`transformers/models/aria/modeling_aria.py`).

use crate::dtype::DType;
use crate::model::decoder::layer::{FeedForward, Layer};
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::{DecoderConfig, ExpertsConfig};
use crate::nn::{Activation, Builder, Linear, activate};
use crate::tape::{Module, Tape, Tensor};

/// Makes a block of Aria's decoder: Llama's, with experts in place of the MLP.
pub(crate) struct ExpertLayer;

impl ExpertLayer {
    #[expect(clippy::new_ret_no_self, reason = "the registry makes every block by `new`")]
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Layer {
        let Some(experts) = &c.experts else {
            unreachable!("the family has experts")
        };
        Layer::with_mlp(b, c, index, &|| {
            Box::new(MoeLayer::new(b, (c.activation, c.mlp_bias), experts))
        })
    }
}

/// `AriaTextMoELayer`.
struct MoeLayer {
    module: Module,
    router: Linear,
    experts: Experts,
    shared_experts: Mlp,
}

impl MoeLayer {
    fn new(b: &Builder, (activation, bias): (Activation, bool), e: &ExpertsConfig) -> Self {
        let hidden = e.sizes.hidden;
        let shared = e.shared_width().unwrap_or(e.sizes.intermediate);
        Self {
            module: b.module(),
            router: Linear::new(b, "router", hidden, e.sizes.experts, false),
            experts: b.tape().scope("experts", || Experts::new(b, e)),
            shared_experts: b
                .tape()
                .scope("shared_experts", || Mlp::of(b, [hidden, shared], bias, activation)),
        }
    }
}

impl FeedForward for MoeLayer {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let logits = self.router.call(t, &rows);
            let routed = t.view(&self.experts.call(t, &rows, &logits), shape);
            let shared = self.shared_experts.call(t, t.view(&rows, shape));
            let sum = t.add(&routed, &shared);
            drop(logits);
            sum
        })
    }
}

/// `AriaExperts`.
struct Experts {
    module: Module,
    fc1: GroupedGemm,
    fc2: GroupedGemm,
    chosen: u64,
}

impl Experts {
    fn new(b: &Builder, e: &ExpertsConfig) -> Self {
        let sizes = e.sizes;
        let (hidden, inside) = (sizes.hidden, sizes.intermediate);
        let gemm = |name, [input, output]: [u64; 2]| {
            b.tape()
                .scope(name, || GroupedGemm::new(b, [sizes.experts, input, output]))
        };
        Self {
            module: b.module(),
            fc1: gemm("fc1", [hidden, 2 * inside]),
            fc2: gemm("fc2", [inside, hidden]),
            chosen: e.chosen(),
        }
    }

    /// Rows [tokens, hidden] and the router's logits [tokens, experts] → what the chosen experts make, [tokens, hidden].
    fn call(&self, t: &Tape, rows: &Tensor, logits: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [chosen, weights] = {
                let [top, chosen] = t.topk(logits, self.chosen);
                [chosen, t.softmax(&top, None)]
            };
            let pairs = chosen.numel();
            let flat = t.view(&chosen, [pairs]);
            let counts = {
                let wide = t.compute(&flat, DType::F32, "chosen as fp32");
                let counts = t.empty([logits.last()], DType::F32, "histc");
                drop(wide);
                t.compute(&counts, DType::I64, "tokens of each expert")
            };
            let order = {
                let [sorted, order] = t.sort_ids(&flat);
                drop(sorted);
                order
            };
            let permuted = {
                let tokens = t.compute(&order, DType::I64, "token of each pair");
                t.index_select(rows, &tokens)
            };
            let mut projected = self.fc1.call(t, &permuted);
            let halves = t.split(&projected, 1, &[projected.last() / 2; 2]);
            projected = {
                let activated = activate(t, Activation::Silu, halves[0].clone());
                t.mul(&activated, &halves[1])
            };
            let made = self.fc2.call(t, &projected);
            let mut unpermuted = t.empty([pairs, made.last()], made.dtype(), "zeros");
            unpermuted = t.index_copy(unpermuted, &order, &made);
            unpermuted = t.view(&unpermuted, [chosen.size(0), self.chosen, made.last()]);
            let out = t.sum_dim(&t.mul(&unpermuted, &t.unsqueeze(&weights, 2)), 1);
            drop((counts, permuted, halves, projected, made));
            out
        })
    }
}

/// `AriaGroupedExpertsGemm`, as it runs without the package `grouped_gemm`, which it names and does not call.
struct GroupedGemm {
    module: Module,
    /// [experts, inputs, outputs].
    weight: Tensor,
}

impl GroupedGemm {
    fn new(b: &Builder, shape: [u64; 3]) -> Self {
        Self {
            module: b.module(),
            weight: b.weight("weight", shape),
        }
    }

    /// `sequential_experts_gemm`: rows [pairs, inputs] in the order of experts → [pairs, outputs]. How many rows each expert
    /// has depends on the tokens: they are taken to be spread evenly.
    fn call(&self, t: &Tape, rows: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [pairs, experts] = [rows.size(0), self.weight.size(0)];
            // The counts of the experts' tokens are copied to the host.
            t.wait();
            let mut output = t.empty([pairs, self.weight.last()], rows.dtype(), "zeros");
            // The loop's variable holds an expert's product until the next one is made.
            let mut _last = None;
            for expert in 0..experts {
                let share = pairs / experts + u64::from(expert < pairs % experts);
                let tokens = t.slice(rows, 0, share);
                let made = t.matmul(&tokens, &t.select(&self.weight, 0));
                _last = Some(made.clone());
                output = t.set_slice(output, &made);
            }
            output
        })
    }
}
