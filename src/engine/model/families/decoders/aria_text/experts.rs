//! Aria's experts (`transformers/models/aria/modeling_aria.py`), as they run without the library `grouped_gemm`.

use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::nn::{Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `AriaTextMoELayer`.
pub(super) struct SequentialMoe {
    module: Module,
    router: Linear,
    experts: Experts,
    shared: Mlp,
}

/// `AriaExperts`.
struct Experts {
    module: Module,
    fc1: Maps,
    fc2: Maps,
    chosen: u64,
}

/// `AriaGroupedExpertsGemm`: a linear map of each expert.
struct Maps {
    module: Module,
    /// [experts, inputs, outputs].
    weight: Tensor,
}

impl Maps {
    fn new(b: &Builder, name: &'static str, shape: [u64; 3]) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", shape),
        })
    }

    /// `sequential_experts_gemm`: rows in the order of their experts [rows, inputs] → [rows, outputs].
    fn call(&self, t: &Tape, x: &Tensor, sizes: &[u64]) -> Tensor {
        self.module.call(t, || {
            let mut out = t.empty([x.size(0), self.weight.last()], x.dtype(), "zeros");
            // The variable holds what an expert makes until the next has made its own.
            let mut made = None;
            for &size in sizes {
                let rows = t.slice(x, 0, size);
                made = Some(t.matmul(&rows, &t.select(&self.weight, 0)));
                out = made.iter().fold(out, |out, made| t.set_slice(out, made));
            }
            drop(made);
            out
        })
    }
}

impl Experts {
    fn call(&self, t: &Tape, x: &Tensor, logits: &Tensor) -> Tensor {
        self.module.call(t, || {
            let (count, experts) = (x.size(0), logits.size(1));
            let taken = count * self.chosen;
            let (weights, places) = {
                let [values, places] = t.topk(logits, self.chosen);
                (t.softmax(&values, None), places)
            };
            let counts = {
                let counted = {
                    let wide = t.empty([taken], DType::F32, "places as float");
                    let counted = t.empty([experts], DType::F32, "histc");
                    drop(wide);
                    counted
                };
                let counts = t.empty([experts], DType::I64, "rows of each expert");
                drop(counted);
                counts
            };
            let order = {
                let [_sorted, order] = t.sort_ids(&t.view(&places, [taken]));
                order
            };
            let rows = {
                let places = t.compute(&order, DType::I64, "row");
                t.index_select(x, &places)
            };
            // How many rows an expert takes depends on the batch; here all take as many, as far as they can.
            let share = |expert| taken / experts + u64::from(expert < taken % experts);
            let sizes: Vec<u64> = (0..experts).map(share).collect();
            let parts = {
                let fused = self.fc1.call(t, &rows, &sizes);
                t.split(&fused, 1, &[fused.last() / 2; 2])
            };
            let product = {
                let opened = t.activation("SiluBackward0", &parts[0], "silu");
                t.mul(&opened, &parts[1])
            };
            let made = self.fc2.call(t, &product, &sizes);
            let zeros = t.empty([taken, x.last()], made.dtype(), "zeros");
            let back = t.index_copy(zeros, &order, &made);
            let of_rows = t.view(&back, [count, self.chosen, x.last()]);
            let sum = {
                let weighted = t.mul(&of_rows, &t.unsqueeze(&weights, 2));
                t.sum_dim(&weighted, 1)
            };
            drop((
                of_rows, back, made, product, parts, rows, order, counts, weights, places,
            ));
            sum
        })
    }
}

impl SequentialMoe {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let Some(e) = &c.experts else {
            unreachable!("the family has experts")
        };
        let (t, sizes) = (b.tape(), e.sizes);
        let width = e.shared_width().unwrap_or(sizes.intermediate);
        Self {
            module: b.module(),
            router: Linear::new(b, "router", c.hidden, sizes.experts, false),
            experts: t.scope("experts", || Experts {
                module: b.module(),
                fc1: Maps::new(b, "fc1", [sizes.experts, c.hidden, 2 * sizes.intermediate]),
                fc2: Maps::new(b, "fc2", [sizes.experts, sizes.intermediate, c.hidden]),
                chosen: e.chosen(),
            }),
            shared: t.scope("shared_experts", || {
                Mlp::of(b, [c.hidden, width], c.mlp_bias, c.activation)
            }),
        }
    }
}

impl FeedForward for SequentialMoe {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let shape = *x.shape();
            let rows = t.view(&x, [x.numel() / x.last(), x.last()]);
            let logits = self.router.call(t, &rows);
            let routed = t.view(&self.experts.call(t, &rows, &logits), shape);
            let of_shared = self.shared.call(t, t.view(&rows, shape));
            let sum = t.add(&routed, &of_shared);
            drop((of_shared, routed, logits, rows));
            sum
        })
    }
}
