//! An exponential moving average of all weights (`torch.optim.swa_utils.AveragedModel` with
//! `get_ema_multi_avg_fn`), updated after each step.

use std::cell::Cell;

use crate::dtype::DType;
use crate::tape::{Kind, Tape, Tensor, Why};

/// A copy of a model's weights and buffers.
pub struct Ema {
    copy: Vec<Tensor>,
    /// Set by the first update, which copies instead of averaging.
    updated: Cell<bool>,
}

impl Ema {
    /// Copies what the model holds, as `deepcopy` does.
    pub fn new(t: &Tape, model: &[Tensor]) -> Self {
        let copy = |x: &Tensor| {
            let copy = t.as_kind(Kind::Weight, || t.empty_like(x, x.dtype(), "moving average"));
            copy.storage().classify(Kind::Weight, Why::MovingAverage);
            copy
        };
        Self {
            copy: model.iter().map(copy).collect(),
            updated: Cell::default(),
        }
    }

    /// `update_parameters`: in place, except for the count of updates, which is copied to the GPU for each type of
    /// weights once there is something to average.
    pub fn update(&self, t: &Tape) {
        if !self.updated.replace(true) {
            return;
        }
        let mut seen: Vec<DType> = Vec::new();
        for dtype in self.copy.iter().map(Tensor::dtype).filter(|d| d.is_float()) {
            if !seen.contains(&dtype) {
                seen.push(dtype);
                drop(t.empty([], DType::I64, "number of averaged steps"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    #[test]
    fn the_average_takes_as_much_as_the_model() {
        let tape = Tape::new(Gpu::H200);
        let model = [[3, 5], [7, 11]].map(|shape| tape.parameter(shape, DType::Bf16, "weight"));
        let ema = Ema::new(&tape, &model);
        ema.update(&tape);
        ema.update(&tape);
        drop((ema, model));
        let bytes: Vec<u64> = tape.finish().allocations.iter().map(|b| b.bytes).collect();
        assert_eq!(bytes, [30, 154, 30, 154, 8]);
    }
}
