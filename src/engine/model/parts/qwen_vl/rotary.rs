//! Rotary positions of patches: half of a head for rows, half for columns.

use super::block::Positions;
use crate::dtype::DType;
use crate::nn::{Builder, apply_rotary, inverse_frequencies, inverse_frequencies_again};
use crate::tape::{Module, Tape, Tensor};

/// `Qwen2VLVisionRotaryEmbedding`.
pub struct VisionRotary {
    module: Module,
    inv_freq: Tensor,
    _original_inv_freq: Tensor,
    /// True if columns come before rows, and both alternate (Kimi-K2.5).
    flips: bool,
}

impl VisionRotary {
    /// Makes the inverse frequencies, held twice (`inv_freq`, `original_inv_freq`).
    pub fn new(b: &Builder, head_dim: u64) -> Self {
        Self::named(b, "rotary_pos_emb", head_dim, false)
    }

    /// Makes the inverse frequencies as the module `name`; columns come before rows, alternating, if `flips`.
    pub fn named(b: &Builder, name: &'static str, head_dim: u64, flips: bool) -> Self {
        b.tape().scope(name, || {
            let n = (head_dim / 2).div_ceil(2);
            Self {
                module: b.module(),
                inv_freq: inverse_frequencies(b.tape(), n, || b.buffer("inv_freq", [n], DType::F32)),
                _original_inv_freq: b.buffer("original_inv_freq", [n], DType::F32),
                flips,
            }
        })
    }

    /// Runs `_init_weights` at the end of the tower's constructor.
    pub fn initialised(&self, t: &Tape) {
        inverse_frequencies_again(t, &self.inv_freq);
    }

    /// Rows and columns [patches, 2] → cosines and sines, each [patches, head_dim] in fp32.
    pub fn call(&self, t: &Tape, position_ids: &Tensor) -> Positions {
        self.call_in(t, position_ids, DType::F32)
    }

    /// The same in the given type.
    pub fn call_in(&self, t: &Tape, position_ids: &Tensor, dtype: DType) -> Positions {
        self.module.call(t, move || self.forward_in(t, position_ids, dtype))
    }

    /// Positions [patches, axes], of which the first two count → cosines and sines, each [patches, head_dim] in the given
    /// type.
    pub fn forward_in(&self, t: &Tape, position_ids: &Tensor, dtype: DType) -> Positions {
        let [patches, axes, n] = [position_ids.size(0), position_ids.size(1), self.inv_freq.size(0)];
        let positions = t.empty([patches, axes, 1], DType::F32, "positions as float");
        let freqs = t.empty([patches, axes, n], DType::F32, "frequencies");
        let wave = |name| {
            let wave = t.compute(&freqs, DType::F32, name);
            t.compute(&wave, DType::F32, "times attention scaling")
        };
        let mut cos = wave("cos");
        let mut sin = wave("sin");
        let recompose = |x: &Tensor| {
            let flipped = self.flips.then(|| t.empty([patches, n, 2], DType::F32, "flip"));
            let halves = t.empty([patches, 2 * n], DType::F32, "cat");
            drop(flipped);
            let both = t.empty([patches, 4 * n], DType::F32, "cat");
            drop(halves);
            let _ = x;
            both
        };
        cos = recompose(&cos);
        sin = recompose(&sin);
        let made = Positions {
            cos: t.to_dtype(&cos, dtype),
            sin: t.to_dtype(&sin, dtype),
        };
        drop((positions, freqs));
        made
    }
}

/// `apply_rotary_pos_emb_vision`: queries and keys [patches, heads, head_dim], rotated in fp32.
pub fn apply_vision_rotary(t: &Tape, q: &Tensor, k: &Tensor, cos: &Tensor, sin: &Tensor) -> (Tensor, Tensor) {
    let (wide_q, wide_k) = (t.to_dtype(q, DType::F32), t.to_dtype(k, DType::F32));
    let (cos, sin) = (t.unsqueeze(cos, 1), t.unsqueeze(sin, 1));
    let (cos, sin) = (t.to_dtype(&cos, DType::F32), t.to_dtype(&sin, DType::F32));
    let mut rotated_q = apply_rotary(t, &wide_q, &cos, &sin);
    let mut rotated_k = apply_rotary(t, &wide_k, &cos, &sin);
    rotated_q = t.to_dtype(&rotated_q, q.dtype());
    rotated_k = t.to_dtype(&rotated_k, k.dtype());
    (rotated_q, rotated_k)
}

/// `liger_rotary_pos_emb_vision`: the same in one kernel, where the queries and keys in fp32 are.
pub fn apply_vision_rotary_by_liger(t: &Tape, q: &Tensor, k: &Tensor, cos: &Tensor, sin: &Tensor) -> (Tensor, Tensor) {
    let wide = |x: &Tensor| t.transpose(&t.unsqueeze(&t.to_dtype(x, DType::F32), 0), 1, 2);
    let (wide_q, wide_k) = (wide(q), wide(k));
    let (cos, sin) = (t.to_dtype(cos, DType::F32), t.to_dtype(sin, DType::F32));
    let [rotated_q, rotated_k] = t.liger_rope([&wide_q, &wide_k], [&cos, &sin]);
    let back = |x: &Tensor, dtype| t.to_dtype(&t.squeeze(&t.transpose(x, 1, 2), 0), dtype);
    let out_q = back(&rotated_q, q.dtype());
    drop(rotated_q);
    let out_k = back(&rotated_k, k.dtype());
    (out_q, out_k)
}
