//! `transformers.optimization.Adafactor` with `scale_parameter=False, relative_step=False`, as of
//! transformers 5.17: one parameter after the other, in fp32.

use super::Optimizer;
use super::work::{Form, Pass, in_place, note_parameter};
use crate::dtype::DType;
use crate::tape::{Kind, Tape, Tensor, Why};

/// The local variables of `step`, which outlive each turn of its loop over the parameters.
#[derive(Default)]
struct Locals {
    grad: Option<Tensor>,
    p_data_fp32: Option<Tensor>,
    update: Option<Tensor>,
}

/// Positions among the states of one parameter; a vector has its whole second moment in place of
/// row and column.
const ROW: usize = 0;
const COL: usize = 1;

/// One parameter after the other.
pub(super) static ADAFACTOR: Form = Form {
    name: "adafactor",
    lists: None,
    update: Optimizer::adafactor,
};

/// `Adafactor.step` of transformers: in-place kernels for a matrix, in fp32.
const IN_PLACE: [Pass; 4] = [("div_", 1, 1), ("mul_", 1, 1), ("mul_", 2, 1), ("add_", 2, 1)];

impl Optimizer {
    fn adafactor(&mut self, t: &Tape) {
        let mut locals = Locals::default();
        let mut states = std::mem::take(&mut self.states);
        for (p, states) in self.params.iter().zip(&mut states) {
            let Some(grad) = p.grad() else { continue };
            note_parameter(t, ADAFACTOR.name, p);
            // `grad = p.grad` frees the last turn's copy before `grad.float()` makes this one's.
            locals.grad = None;
            let grad = t.to_dtype(&grad, DType::F32);
            locals.grad = Some(grad.clone());
            let fresh = states.0.is_empty();
            if fresh {
                states.0 = second_moments(t, &grad);
            }
            locals.p_data_fp32 = None;
            let data = t.to_dtype(p, DType::F32);
            locals.p_data_fp32 = Some(data.clone());
            let rms = root_mean_square(t, &data);
            rms.storage().classify(Kind::OptimizerState, Why::ParameterSize);
            let last = states.0.len() - 1;
            if fresh {
                states.0.push(rms);
            } else {
                states.0[last] = rms;
            }
            let squared = t.pow(&grad);
            locals.update = Some(t.shift(&squared));
            drop(squared);
            if p.dim() >= 2 {
                locals.update = Some(factored_update(t, &locals, &states.0[ROW], &states.0[COL]));
            } else {
                locals.update = Some(t.rsqrt(&states.0[ROW]));
            }
            locals.apply(t);
            in_place(t, p, &IN_PLACE, DType::F32);
            if p.dtype() != DType::F32 {
                in_place(t, p, &[("copy_", 2, 1)], p.dtype());
            }
        }
        self.states = states;
    }
}

impl Locals {
    /// Clips the update by its size, then `p_data_fp32.add_(-update)`.
    fn apply(&self, t: &Tape) {
        let Some(update) = &self.update else { return };
        let rms = root_mean_square(t, update);
        let clip = t.scale(&rms);
        drop(rms);
        drop(clip);
        drop(t.neg(update));
    }
}

/// Means of squares over rows and over columns, or of each element of a vector.
fn second_moments(t: &Tape, grad: &Tensor) -> Vec<Tensor> {
    let state = |shape, name| {
        let state = t.as_kind(Kind::OptimizerState, || t.empty(shape, DType::F32, name));
        state.storage().classify(Kind::OptimizerState, Why::State);
        state
    };
    let shape = *grad.shape();
    let d = shape.len();
    if d >= 2 {
        vec![
            state(shape.removed(d - 1), "exp_avg_sq_row"),
            state(shape.removed(d - 2), "exp_avg_sq_col"),
        ]
    } else {
        vec![state(shape, "exp_avg_sq")]
    }
}

/// `_rms`: `tensor.norm(2) / tensor.numel() ** 0.5`.
fn root_mean_square(t: &Tape, x: &Tensor) -> Tensor {
    let norm = t.reduce_all(x, "norm");
    t.scale(&norm)
}

/// Takes the squares into row and column means, then `_approx_sq_grad`.
fn factored_update(t: &Tape, locals: &Locals, row: &Tensor, col: &Tensor) -> Tensor {
    if let Some(squares) = &locals.update {
        drop(t.reduce_dim(squares, squares.dim() - 1, false, "mean of squares, rows"));
        drop(t.reduce_dim(squares, squares.dim() - 2, false, "mean of squares, columns"));
    }
    let r_factor = {
        let mean = t.reduce_dim(row, row.dim() - 1, true, "mean of rows");
        let r = t.mul(row, &mean);
        drop(mean);
        t.unsqueeze(&r, row.dim())
    };
    let c_factor = t.rsqrt(&t.unsqueeze(col, col.dim() - 1));
    t.mul(&r_factor, &c_factor)
}
