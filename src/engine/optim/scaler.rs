//! `torch.amp.GradScaler` (`torch/amp/grad_scaler.py`).

use smallvec::smallvec;

use super::Optimizer;
use super::work::{lists, note_parameter};
use crate::dtype::DType;
use crate::tape::work::HostOp;
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
        let fused = optimizer.scales_itself();
        self.work(t, optimizer);
        // `scaler.update()` reads the flag, then drops it
        let flag = if fused { self.check_inf(t) } else { self.unscale(t) };
        let passed_on = fused.then(|| {
            let found_inf = t.empty([], DType::F32, "found_inf over all devices");
            (t.empty([], DType::F32, "loss scale"), found_inf)
        });
        optimizer.step(t);
        drop(passed_on);
        drop(flag);
    }

    /// Records the work: gradients are checked and divided in place, then the host asks if all are finite.
    fn work(&self, t: &Tape, optimizer: &Optimizer) {
        if t.works() {
            let grads: Vec<Tensor> = optimizer.params().iter().filter_map(Tensor::grad).collect();
            t.host_op(HostOp::Step("scaler"));
            grads.iter().for_each(|grad| note_parameter(t, "scaler", grad));
            lists(
                t,
                &grads.iter().collect::<Vec<_>>(),
                &[("_amp_foreach_non_finite_check_and_unscale_", 1, 1)],
            );
            t.wait();
        }
    }

    /// `_check_inf_per_device`, for an optimizer that unscales within its own kernel.
    fn check_inf(&self, t: &Tape) -> Tensor {
        let scalar = |name| t.empty([], DType::F32, name);
        let (scale, flag) = (scalar("1"), scalar("found_inf"));
        let flag_here = scalar("found_inf on this device");
        drop(scalar("1 on this device"));
        drop((scale, flag));
        flag_here
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
