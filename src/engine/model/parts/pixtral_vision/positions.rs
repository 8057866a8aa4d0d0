//! Rotary positions of Pixtral's patches: alternating frequencies for rows and columns.

use crate::dtype::DType;
use crate::nn::{self, Builder, inverse_frequencies};
use crate::tape::{Tape, Tensor};

/// `PixtralVisionRotaryEmbedding`.
pub struct PatchRotary {
    inv_freq: Tensor,
    _original_inv_freq: Tensor,
}

impl PatchRotary {
    /// Makes the inverse frequencies, held twice (`inv_freq`, `original_inv_freq`).
    pub fn new(b: &Builder, head_dim: u64) -> Self {
        let t = b.tape();
        t.scope("patch_positional_embedding", || {
            let n = head_dim / 2;
            let in_order = in_order(t, n);
            let inv_freq = b.buffer("inv_freq", [n], DType::F32);
            drop(in_order);
            Self {
                inv_freq,
                _original_inv_freq: b.buffer("original_inv_freq", [n], DType::F32),
            }
        })
    }

    /// Runs `_init_weights` at the end of the tower's constructor.
    pub fn initialised(self, t: &Tape) -> Self {
        let n = self.inv_freq.size(0);
        let in_order = in_order(t, n);
        drop(t.empty([n], DType::F32, "inv_freq again"));
        drop(in_order);
        self
    }

    /// Rows and columns [patches, 2] → cosines and sines, each [patches, head_dim] in the given type.
    pub fn forward(&self, t: &Tape, dtype: DType, position_ids: &Tensor) -> (Tensor, Tensor) {
        t.no_grad(|| {
            let (patches, n) = (position_ids.size(0), self.inv_freq.size(0));
            let positions = t.compute(position_ids, DType::F32, "positions as float");
            let column = t.view(&positions, [2 * patches, 1]);
            let row = t.view(&self.inv_freq, [1, n]);
            let freqs = t.autocast(None, || t.matmul(&column, &row));
            let wave = |name| {
                let wave = t.compute(&freqs, DType::F32, name);
                t.compute(&wave, DType::F32, "times attention scaling")
            };
            let (cos, sin) = (wave("cos"), wave("sin"));
            let recomposed = |x: Tensor| {
                let halves = t.empty([patches, n], DType::F32, "cat");
                let both = t.empty([patches, 2 * n], DType::F32, "cat");
                drop((halves, x));
                both
            };
            let (cos, sin) = (recomposed(cos), recomposed(sin));
            (t.to_dtype(&cos, dtype), t.to_dtype(&sin, dtype))
        })
    }
}

fn in_order(t: &Tape, n: u64) -> Tensor {
    inverse_frequencies(t, n, || t.empty([n], DType::F32, "inverse frequencies"))
}

/// Rows and columns of the patches of images of `[rows, columns]`, [patches, 2], and the axes of the last image, which are
/// variables of the tower's forward.
pub fn position_ids(t: &Tape, images: &[[u64; 2]]) -> (Tensor, Option<[Tensor; 2]>) {
    let mut axes = None;
    let mut places = Vec::with_capacity(images.len());
    for &[rows, columns] in images {
        axes = Some([nn::ids(t, &[rows], "arange"), nn::ids(t, &[columns], "arange")]);
        let flat = [0, 1].map(|_| nn::ids(t, &[rows * columns], "flatten"));
        places.push(nn::ids(t, &[rows * columns, 2], "stack"));
        drop(flat);
    }
    let all = t.no_grad(|| t.cat(&places.iter().collect::<Vec<_>>(), 0));
    (all, axes)
}
