//! `torch.optim.Adafactor` (`torch/optim/_adafactor.py`), one parameter after the other, in the
//! parameters' own type.

use super::Optimizer;
use super::work::{Form, Pass, in_place, note_parameter};
use crate::tape::{Kind, Tape, Tensor, Why};

/// The local variables of `_single_tensor_adafactor`, which outlive each turn of its loop.
#[derive(Default)]
struct Locals {
    row_mean: Option<Tensor>,
    col_mean: Option<Tensor>,
    grad_squared: Option<Tensor>,
    var_estimate: Option<Tensor>,
    update: Option<Tensor>,
}

/// One parameter after the other.
pub(super) static ADAFACTOR: Form = Form {
    name: "adafactor_torch",
    lists: None,
    update: Optimizer::adafactor_torch,
};

/// `_single_tensor_adafactor`: in-place kernels for a matrix, in the parameter's type.
const IN_PLACE: [Pass; 5] = [
    ("mul_", 1, 1),
    ("div_", 1, 1),
    ("rsqrt_", 1, 1),
    ("mul_", 2, 1),
    ("add_", 2, 1),
];

impl Optimizer {
    fn adafactor_torch(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if let Some(grad) = p.grad().filter(|_| states.0.is_empty()) {
                states.0 = variances(t, &grad);
            }
        }
        let mut locals = Locals::default();
        for (p, states) in self.params.iter().zip(&self.states) {
            let Some(grad) = p.grad() else { continue };
            note_parameter(t, ADAFACTOR.name, p);
            drop(t.reduce_all(p, "norm"));
            // `param.norm(2).item()`, and the update's below
            t.wait();
            match &states.0[..] {
                [row_var, col_var] => locals.factored(t, &grad, row_var, col_var),
                [variance] => locals.whole(t, &grad, variance),
                _ => continue,
            }
            locals.update.clone_from(&locals.var_estimate);
            if let Some(update) = &locals.update {
                drop(t.reduce_all(update, "norm"));
                t.wait();
            }
            in_place(t, p, &IN_PLACE, p.dtype());
        }
    }
}

impl Locals {
    fn factored(&mut self, t: &Tape, grad: &Tensor, row_var: &Tensor, col_var: &Tensor) {
        let d = grad.dim();
        self.row_mean = Some(t.reduce_dim(grad, d - 1, true, "mean of squares, rows"));
        self.col_mean = Some(t.reduce_dim(grad, d - 2, true, "mean of squares, columns"));
        self.var_estimate = Some(t.matmul(row_var, col_var));
        drop(t.reduce_dim(row_var, d - 2, true, "mean of rows"));
    }

    fn whole(&mut self, t: &Tape, grad: &Tensor, variance: &Tensor) {
        self.grad_squared = Some(t.mul(grad, grad));
        self.var_estimate = Some(t.clone_of(variance));
    }
}

/// Means of squares over rows and over columns, or of each element of a vector.
fn variances(t: &Tape, grad: &Tensor) -> Vec<Tensor> {
    let state = |shape, name| {
        let state = t.as_kind(Kind::OptimizerState, || t.empty(shape, grad.dtype(), name));
        state.storage().classify(Kind::OptimizerState, Why::State);
        state
    };
    let d = grad.dim();
    if d < 2 {
        return vec![state(*grad.shape(), "variance")];
    }
    let (mut row, mut col) = (*grad.shape(), *grad.shape());
    row[d - 1] = 1;
    col[d - 2] = 1;
    vec![state(row, "row_var"), state(col, "col_var")]
}
