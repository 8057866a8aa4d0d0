//! Rotary positions of three axes: time, height and width (Qwen-VL).

use super::rope::Rotary;
use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// Axes of a position: time, height, width.
pub const AXES: u64 = 3;

/// Assignment of a head's frequencies to the axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MropeLayout {
    /// One section after the other (Qwen2-VL, Qwen2.5-VL).
    Sections,
    /// Interleaved, written over those of time (Qwen3-VL).
    Interleaved,
    /// Those of height and width, this many, alternate before those of time, each for a pair of elements, in fp32 (ERNIE
    /// 4.5 VL).
    Paired(u64),
}

impl Rotary {
    /// Cosines and sines of positions [3, batch, positions], each [batch, positions, head_dim] in the
    /// type of `x` (`Qwen2VLRotaryEmbedding`, `Qwen3VLTextRotaryEmbedding`).
    pub fn call_multimodal(
        &self,
        t: &Tape,
        x: &Tensor,
        position_ids: &Tensor,
        layout: MropeLayout,
    ) -> (Tensor, Tensor) {
        self.module.call(t, || {
            t.no_grad(|| {
                self.check_length(t);
                let [batch, positions] = [position_ids.size(1), position_ids.size(2)];
                let half = self.head_dim / 2;
                let inv_freq = {
                    let row = t.to_dtype(&t.view(&self.inv_freq, [1, 1, half, 1]), DType::F32);
                    t.expand(&row, [AXES, batch, half, 1])
                };
                let rows = t.view(position_ids, [AXES, batch, 1, positions]);
                let expanded = match rows.dtype() {
                    DType::F32 => rows,
                    _ => t.compute(&rows, DType::F32, "positions as float"),
                };
                let freqs = t.autocast(None, || t.matmul(&inv_freq, &expanded));
                let freqs = t.transpose(&freqs, 2, 3);
                let mut cos = scaled(t, &freqs, "cos");
                let mut sin = scaled(t, &freqs, "sin");
                sin = recompose(t, &sin, layout);
                cos = recompose(t, &cos, layout);
                match layout {
                    MropeLayout::Paired(_) => (cos, sin),
                    _ => (t.to_dtype(&cos, x.dtype()), t.to_dtype(&sin, x.dtype())),
                }
            })
        })
    }
}

fn scaled(t: &Tape, freqs: &Tensor, name: &'static str) -> Tensor {
    let wave = t.compute(freqs, DType::F32, name);
    t.compute(&wave, DType::F32, "times attention scaling")
}

/// `recomposition_frequencies`: [3, batch, positions, half] → [batch, positions, 2 × half].
fn recompose(t: &Tape, waves: &Tensor, layout: MropeLayout) -> Tensor {
    let one = t.select(waves, 0);
    let half = match layout {
        MropeLayout::Sections => t.empty(*one.shape(), DType::F32, "cat"),
        MropeLayout::Interleaved => one,
        MropeLayout::Paired(spatial) => {
            let shape = one.shape().removed(2);
            let _alternating = t.empty(shape.inserted(2, spatial), DType::F32, "stack");
            let half = t.empty(*one.shape(), DType::F32, "cat");
            return t.empty(shape.inserted(2, 2 * half.last()), DType::F32, "repeat_interleave");
        }
    };
    t.cat(&[&half, &half], 2)
}
