//! Rotary position embeddings by complex numbers (Llama 4).

use super::builder::Builder;
use super::rope::{inverse_frequencies, inverse_frequencies_again};
use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Module, Tape, Tensor};

/// `Llama4TextRotaryEmbedding`: the rotation of every position, recomputed in each forward.
pub struct ComplexRotary {
    module: Module,
    inv_freq: Tensor,
    _original_inv_freq: Tensor,
}

impl ComplexRotary {
    /// Makes the inverse frequencies, held twice, of heads of `head_dim` elements.
    pub fn new(b: &Builder, head_dim: u64) -> Self {
        b.tape().scope("rotary_emb", || {
            let n = head_dim / 2;
            let inv_freq = inverse_frequencies(b.tape(), n, || b.buffer("inv_freq", [n], DType::F32));
            let _original_inv_freq = b.buffer("original_inv_freq", [n], DType::F32);
            inverse_frequencies_again(b.tape(), &inv_freq);
            Self {
                module: b.module(),
                inv_freq,
                _original_inv_freq,
            }
        })
    }

    /// Positions [1, seq] → rotations [1, seq, half of a head] in complex numbers.
    pub fn call(&self, t: &Tape, position_ids: &Tensor) -> Tensor {
        self.module.call(t, || {
            t.no_grad(|| {
                let [batch, seq, half] = [position_ids.size(0), position_ids.size(1), self.inv_freq.size(0)];
                let frequencies = {
                    let row = t.to_dtype(&t.view(&self.inv_freq, [1, half, 1]), DType::F32);
                    t.expand(&row, [batch, half, 1])
                };
                let positions = t.compute(&t.view(position_ids, [batch, 1, seq]), DType::F32, "positions as float");
                let angles = t.autocast(None, || t.matmul(&frequencies, &positions));
                let angles = t.transpose(&angles, 1, 2);
                let waves = complex_waves(t, &angles);
                drop((angles, positions));
                waves
            })
        })
    }
}

/// `torch.polar` of angles, times a factor.
pub(super) fn complex_waves(t: &Tape, angles: &Tensor) -> Tensor {
    let freqs_cis = {
        let ones = t.compute(angles, DType::F32, "ones");
        let freqs_cis = t.compute(angles, DType::C64, "polar");
        drop(ones);
        freqs_cis
    };
    t.compute(&freqs_cis, DType::C64, "times attention scaling")
}

/// `apply_rotary_emb` of Llama 4: queries and keys [batch, seq, heads, width], and rotations that broadcast to their
/// complex pairs.
pub fn apply_complex_rotary(t: &Tape, x: [&Tensor; 2], freqs_cis: &Tensor) -> [Tensor; 2] {
    let pairs = x.map(|x| complex_pairs(t, x));
    let rotated = [0, 1].map(|i| rotated(t, &pairs[i], freqs_cis, *x[i].shape()));
    [0, 1].map(|i| t.to_dtype(&rotated[i], x[i].dtype()))
}

/// `apply_rotary_emb` of DeepSeek-V2: queries are back in their own type before keys are rotated.
pub fn apply_complex_rotary_in_turn(t: &Tape, x: [&Tensor; 2], freqs_cis: &Tensor) -> [Tensor; 2] {
    let pairs = x.map(|x| complex_pairs(t, x));
    [0, 1].map(|i| {
        let rotated = rotated(t, &pairs[i], freqs_cis, *x[i].shape());
        t.to_dtype(&rotated, x[i].dtype())
    })
}

/// Alternating elements as complex numbers.
fn complex_pairs(t: &Tape, x: &Tensor) -> Tensor {
    let wide = t.to_dtype(x, DType::F32);
    let [a, b, c, width] = [x.size(0), x.size(1), x.size(2), x.size(3)];
    t.view_as_complex(&t.reshape(&wide, [a, b, c, width / 2, 2]))
}

fn rotated(t: &Tape, pairs: &Tensor, freqs_cis: &Tensor, shape: Dims) -> Tensor {
    let product = t.mul_by_complex(pairs, freqs_cis);
    t.view(&t.view_as_real(&product), shape)
}
