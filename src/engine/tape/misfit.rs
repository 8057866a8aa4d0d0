//! Shapes that an operation refuses: the run fails there, and the recording continues with shapes that fit.

use super::core::Tape;
use super::dims::{self, Dims};
use super::failure::Failure;
use super::tensor::Tensor;

/// The most bytes of a tensor: a hundred times what any GPU holds.
pub(super) const MOST_BYTES: u64 = 1 << 44;

impl Tape {
    /// Returns the bytes of a tensor; one that no GPU could hold fails the run, and is recorded as small.
    pub(super) fn possible(&self, bytes: u64, shape: &Dims, name: &'static str) -> u64 {
        if bytes <= MOST_BYTES {
            return bytes;
        }
        self.fail(|| Failure::TooLarge {
            layer: self.path_of_scope(self.scope_id()),
            tensor: name.to_owned(),
            shape: shape.to_vec(),
        });
        0
    }

    /// Fails the run because an operation refuses these shapes.
    pub fn misfit(&self, operation: &str, shapes: &[&[u64]]) {
        self.fail(|| Failure::Shapes {
            layer: self.path_of_scope(self.scope_id()),
            operation: operation.to_owned(),
            shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
        });
    }

    /// Fails the run if `fits` is false, because an operation refuses two tensors.
    pub(super) fn fits(&self, fits: bool, operation: &str, a: &Tensor, b: &Tensor) {
        if !fits {
            self.misfit(operation, &[a.shape(), b.shape()]);
        }
    }

    /// Returns the shape of an elementwise result of two operands; of extents that do not broadcast, the larger one.
    pub fn broadcast(&self, a: &Dims, b: &Dims, operation: &str) -> Dims {
        dims::broadcast(a, b).unwrap_or_else(|larger| {
            self.misfit(operation, &[a, b]);
            larger
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::tape::{Component, Gpu};

    /// An operation on two tensors.
    type Operation = fn(&Tape, &Tensor, &Tensor);

    fn failed(run: impl FnOnce(&Tape)) -> String {
        let t = Tape::new(Gpu::H200);
        t.component("model", Component::LanguageModel, || t.layer("layers", 3, || run(&t)));
        t.failure().expect("it does not fit").to_string()
    }

    #[test]
    fn an_operation_that_does_not_fit_is_named_with_its_layer_and_shapes() {
        let of = |t: &Tape, shape: &[u64]| t.empty(shape, DType::F32, "x");
        let said = failed(|t| drop(t.add(&of(t, &[2, 3]), &of(t, &[2, 4]))));
        assert!(
            said.contains("in model.layers.3, add does not fit shapes [2, 3] and [2, 4]"),
            "{said}"
        );
        let runs: [(&str, Operation); 8] = [
            ("view", |t, x, _| drop(t.view(x, [2, 7]))),
            ("expand", |t, x, _| drop(t.expand(x, [2, 7]))),
            ("linear", |t, x, y| drop(t.linear(x, y, None))),
            ("bmm", |t, x, y| drop(t.bmm(&t.unsqueeze(x, 0), &t.unsqueeze(y, 0)))),
            ("cat", |t, x, y| drop(t.cat(&[x, y], 0))),
            ("masked_scatter", |t, x, y| drop(t.masked_scatter(y, y, x))),
            ("avg_pool2d", |t, x, _| drop(t.avg_pool2d(&t.view(x, [1, 1, 2, 3]), 0))),
            ("avg_pool2d", |t, x, _| drop(t.avg_pool2d(&t.view(x, [1, 1, 2, 3]), 4))),
        ];
        for (name, run) in runs {
            let said = failed(|t| run(t, &of(t, &[2, 3]), &of(t, &[4, 5])));
            assert!(said.contains("in model.layers.3, ") && said.contains(name), "{said}");
        }
    }
}
