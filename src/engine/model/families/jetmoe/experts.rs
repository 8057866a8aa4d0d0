//! Experts that run one after the other on the rows that they get, and the router that shares the rows.

use super::JetMoeConfig;
use crate::dtype::DType;
use crate::nn::{Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `JetMoeParallelExperts`: a linear layer of each expert.
pub(super) struct ParallelExperts {
    module: Module,
    /// [experts, outputs, inputs].
    weight: Tensor,
}

/// `JetMoeTopKGating`.
pub(super) struct Router {
    module: Module,
    layer: Linear,
    chosen: u64,
}

/// Experts of attention or of the MLP, each with a projection into it and one out of it.
pub(super) struct Experts {
    pub input: ParallelExperts,
    pub output: ParallelExperts,
    pub router: Router,
    bias: Tensor,
}

/// What the router says of the rows of a batch, which are each taken by some experts.
pub(super) struct Routes {
    /// Order that sorts the taken rows by their experts, [rows × chosen].
    pub order: Tensor,
    /// Row of each taken one, in that order.
    pub rows: Tensor,
    /// Weight of each taken one, in that order.
    pub gates: Tensor,
    /// Rows that each expert takes. They depend on the batch; here all experts take as many, as far as they can.
    pub sizes: Vec<u64>,
}

impl ParallelExperts {
    fn new(b: &Builder, name: &'static str, experts: u64, [input, output]: [u64; 2]) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [experts, output, input]),
        })
    }

    /// Rows in the order of their experts [rows, inputs] → [rows, outputs].
    pub fn call(&self, t: &Tape, x: &Tensor, sizes: &[u64]) -> Tensor {
        self.module.call(t, || {
            let parts = t.split(x, 0, sizes);
            let map = |part| t.linear(part, &t.select(&self.weight, 0), None);
            let outputs: Vec<Tensor> = parts.iter().map(map).collect();
            let outputs: Vec<&Tensor> = outputs.iter().collect();
            t.cat(&outputs, 0)
        })
    }
}

impl Router {
    fn new(b: &Builder, c: &JetMoeConfig) -> Self {
        Self {
            module: b.module(),
            layer: Linear::new(b, "layer", c.hidden, c.experts, false),
            chosen: c.chosen,
        }
    }

    /// Routes of rows [rows, hidden], and the logits in fp32.
    pub fn call(&self, t: &Tape, x: &Tensor) -> (Routes, Tensor) {
        self.module.call(t, || {
            let logits = {
                let logits = self.layer.call(t, x);
                t.to_dtype(&logits, DType::F32)
            };
            let [values, places] = t.topk(&logits, self.chosen);
            let gates = {
                let shares = t.softmax(&values, None);
                t.to_dtype(&shares, x.dtype())
            };
            let (count, experts) = (x.size(0), logits.size(1));
            let chosen = ["zeros", "scatter"].map(|name| t.empty([count, experts], gates.dtype(), name));
            let counts = {
                let whole = t.empty([count, experts], DType::I64, "long");
                let counts = t.empty([experts], DType::I64, "sum");
                drop(whole);
                counts
            };
            // The numbers go to the host.
            drop(counts);
            let taken = count * self.chosen;
            let [sorted, order] = t.sort_ids(&t.view(&places, [taken]));
            let rows = t.compute(&order, DType::I64, "row");
            let of_taken = t.index(&t.view(&gates, [taken]), std::slice::from_ref(&order));
            drop((sorted, chosen, gates, values, places));
            let sizes = (0..experts)
                .map(|expert| taken / experts + u64::from(expert < taken % experts))
                .collect();
            let routes = Routes {
                order,
                rows,
                gates: of_taken,
                sizes,
            };
            (routes, logits)
        })
    }
}

impl Experts {
    /// Makes experts of these widths: of what goes into them, of what the first projection makes, of what the second takes.
    pub fn new(b: &Builder, c: &JetMoeConfig, [made, taken]: [u64; 2]) -> Self {
        let bias = b.weight("bias", [c.hidden]);
        Self {
            input: ParallelExperts::new(b, "input_linear", c.experts, [c.hidden, made]),
            output: ParallelExperts::new(b, "output_linear", c.experts, [taken, c.hidden]),
            router: b.tape().scope("router", || Router::new(b, c)),
            bias,
        }
    }

    /// Maps what was taken out of the experts and sums it for each row, to [batch, seq, hidden].
    pub fn merged(&self, t: &Tape, taken: &Tensor, routes: &Routes, [batch, seq]: [u64; 2]) -> Tensor {
        let mut out = self.output.call(t, taken, &routes.sizes);
        out = t.mul(&out, &t.unsqueeze(&routes.gates, 1));
        let hidden = out.last();
        let zeros = t.empty([batch * seq, hidden], out.dtype(), "zeros");
        let sum = t.index_add(&zeros, &routes.rows, &out);
        let shifted = t.add(&t.view(&sum, [batch, seq, hidden]), &self.bias);
        drop((sum, zeros, out));
        shifted
    }
}
