//! `torch.amp.GradScaler` (`torch/amp/grad_scaler.py`).

use smallvec::smallvec;

use super::Optimizer;
use crate::dtype::DType;
use crate::tape::{Kind, Tape, Tensor};

/// Loss scaling for fp16; disabled, it passes everything through.
pub struct GradScaler {
    enabled: bool,
    state: Vec<Tensor>,
}

impl GradScaler {
    /// A scaler; its two scalars appear on first use.
    pub fn new(enabled: bool) -> Self {
        Self {
            enabled,
            state: Vec::new(),
        }
    }

    /// `scaler.scale(loss)`.
    pub fn scale(&mut self, t: &Tape, loss: Tensor) -> Tensor {
        if !self.enabled {
            return loss;
        }
        if self.state.is_empty() {
            let scalar = |name, dtype| t.as_kind(Kind::OptimizerState, || t.empty([], dtype, name));
            self.state = vec![scalar("loss scale", DType::F32), scalar("growth tracker", DType::I32)];
        }
        let scale = &self.state[0];
        let mut rec = t.record("MulBackward0", &[&loss]);
        rec.save(t, scale);
        let out = t.empty([], DType::F32, "scaled loss");
        rec.finish(t, out, |t, b| {
            smallvec![Some(t.empty([], b.grad().dtype(), "mul backward"))]
        })
    }

    /// `scaler.step(optimizer)`, then `scaler.update()`.
    pub fn step(&mut self, t: &Tape, optimizer: &mut Optimizer) {
        if !self.enabled {
            return optimizer.step(t);
        }
        let found_inf = if optimizer.scales_itself() {
            t.empty([], DType::F32, "found_inf")
        } else {
            self.unscale(t)
        };
        optimizer.step(t);
        drop(found_inf);
    }

    /// `unscale_`: gradients are divided in place by a scale that was inverted in double; what
    /// stays is one flag for the device.
    fn unscale(&self, t: &Tape) -> Tensor {
        let wide = t.empty([], DType::I64, "loss scale in double");
        let inverse = t.empty([], DType::I64, "inverse scale in double");
        drop(wide);
        let narrow = t.empty([], DType::F32, "inverse scale");
        drop(inverse);
        let flag = t.empty([], DType::F32, "found_inf");
        let flag_here = t.empty([], DType::F32, "found_inf on this device");
        let inverse_here = t.empty([], DType::F32, "inverse scale on this device");
        drop((inverse_here, narrow, flag));
        flag_here
    }
}
