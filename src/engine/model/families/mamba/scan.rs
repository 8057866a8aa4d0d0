//! `mamba_selective_scan`: a state that is updated position by position.

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Arguments of the scan.
pub struct ScanCall<'a> {
    /// Input [batch, channels, seq].
    pub x: &'a Tensor,
    /// Time steps [batch, channels, seq].
    pub step: &'a Tensor,
    /// Decay of the state, [channels, state] in fp32.
    pub a: &'a Tensor,
    /// Weight of the input in the state, [batch, seq, state].
    pub b: &'a Tensor,
    /// Weight of the state in the output, [batch, seq, state].
    pub c: &'a Tensor,
    /// Weight of the input in the output, [channels] in fp32.
    pub d: &'a Tensor,
    /// Gate of the output, [batch, channels, seq].
    pub gate: &'a Tensor,
    /// Bias of time steps, [channels] in fp32.
    pub step_bias: &'a Tensor,
}

/// [batch, channels, seq] → the same, in fp32, and the last state.
pub fn selective_scan(t: &Tape, call: &ScanCall<'_>) -> (Tensor, Tensor) {
    let dtype = call.x.dtype();
    let mut step = {
        let bias = t.to_dtype(call.step_bias, call.step.dtype());
        t.add(call.step, &t.unsqueeze(&bias, 1))
    };
    step = t.softplus(&step);
    let decay = {
        let a = t.unsqueeze(&t.unsqueeze(call.a, 0), 2);
        let product = t.mul(&a, &t.unsqueeze(&step, 3));
        t.exp(&product)
    };
    let weight = {
        let step = t.unsqueeze(&step, 3);
        let wide = t.to_dtype(&t.unsqueeze(call.b, 1), DType::F32);
        t.mul(&step, &wide)
    };
    let input = {
        let wide = t.to_dtype(&t.unsqueeze(call.x, 3), DType::F32);
        t.mul(&weight, &wide)
    };
    let [batch, channels, seq] = [call.x.size(0), call.x.size(1), call.x.size(2)];
    let mut state = t.empty([batch, channels, call.a.size(1)], dtype, "state");
    let mut outputs = Vec::new();
    for _position in 0..seq {
        state = {
            let decayed = t.mul(&t.select(&decay, 2), &state);
            t.add(&decayed, &t.select(&input, 2))
        };
        let output = {
            let narrow = t.to_dtype(&state, dtype);
            t.matmul(&narrow, &t.unsqueeze(&t.select(call.c, 1), 2))
        };
        outputs.push(t.select(&output, 2));
    }
    let mut out = t.stack_last(&outputs.iter().collect::<Vec<_>>());
    out = {
        let skipped = t.mul(call.x, &t.unsqueeze(&t.unsqueeze(call.d, 0), 2));
        t.add(&out, &skipped)
    };
    let open = t.activation("SiluBackward0", call.gate, "silu");
    (t.mul(&out, &open), state)
}
