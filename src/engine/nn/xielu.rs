//! xIELU, an activation with parameters (`XIELUActivation` in `transformers/activations.py`), in Python: its CUDA package is not
//! simulated.

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{Module, Tape, Tensor};

/// `XIELUActivation`.
pub struct Xielu {
    module: Module,
    /// Slopes of positive and of negative values, [1] each.
    alphas: [Tensor; 2],
    beta: Tensor,
    /// Largest value that the exponential of negative ones takes.
    eps: Tensor,
}

impl Xielu {
    /// Makes the module, after the one in bf16 that `ACT2FN` makes and the caller replaces.
    pub fn new(b: &Builder, name: &'static str) -> Self {
        let t = b.tape();
        t.scope(name, || {
            let replaced = {
                let alpha = || computed(t, DType::Bf16, || t.empty([1], DType::Bf16, "alpha"));
                let alphas = [alpha(), alpha()];
                let others = ["beta", "eps"].map(|name| t.empty([], DType::Bf16, name));
                (alphas, others)
            };
            let alpha = |name| computed(t, b.dtype(), || b.weight(name, [1]));
            let made = Self {
                module: b.module(),
                alphas: ["alpha_p", "alpha_n"].map(alpha),
                beta: b.buffer("beta", [], b.dtype()),
                eps: b.buffer("eps", [], b.dtype()),
            };
            drop(replaced);
            made
        })
    }

    /// `_xielu_python`.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let alpha_p = t.softplus(&self.alphas[0]);
            let alpha_n = {
                let softened = t.softplus(&self.alphas[1]);
                t.add(&self.beta, &softened)
            };
            let positive = t.compute(x, DType::Bool, "comparison");
            let upper = {
                let square = {
                    let scaled = t.mul(&alpha_p, x);
                    t.mul(&scaled, x)
                };
                let line = t.mul(&self.beta, x);
                t.add(&square, &line)
            };
            let lower = {
                let curve = {
                    let difference = {
                        let power = {
                            let least = t.minimum(x, &self.eps);
                            t.expm1(&least)
                        };
                        t.sub(&power, x)
                    };
                    t.mul(&difference, &alpha_n)
                };
                let line = t.mul(&self.beta, x);
                t.add(&curve, &line)
            };
            let out = t.select_where(&positive, &upper, &lower);
            drop((alpha_p, alpha_n));
            out
        })
    }
}

/// `torch.log(torch.expm1(torch.tensor(…)))`, whose last result is `last`.
fn computed(t: &Tape, dtype: DType, last: impl FnOnce() -> Tensor) -> Tensor {
    let power = {
        let _number = t.empty([], dtype, "number");
        t.empty([], dtype, "expm1")
    };
    let out = last();
    drop(power);
    out
}
