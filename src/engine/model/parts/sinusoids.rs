//! Tables of sinusoidal position embeddings (`M2M100SinusoidalPositionalEmbedding`).

use crate::dtype::DType;
use crate::nn;
use crate::tape::{Tape, Tensor};

/// `get_embedding`: sines and cosines of this shape in type `dtype`, made by `last`.
pub(crate) fn sinusoids(t: &Tape, dtype: DType, [entries, width]: [u64; 2], last: impl FnOnce() -> Tensor) -> Tensor {
    let half = width / 2;
    let f32s = |shape: &[u64], name| t.empty(shape, DType::F32, name);
    let frequencies = {
        let steps = nn::ids(t, &[half], "arange");
        let wide = f32s(&[half], "float");
        drop(steps);
        let scaled = f32s(&[half], "mul");
        drop(wide);
        let out = f32s(&[half], "exp");
        drop(scaled);
        out
    };
    let angles = {
        let steps = nn::ids(t, &[entries], "arange");
        let wide = f32s(&[entries], "float");
        drop(steps);
        let out = f32s(&[entries, half], "mul");
        drop(wide);
        out
    };
    drop(frequencies);
    let waves = [f32s(&[entries, half], "sin"), f32s(&[entries, half], "cos")];
    if dtype == DType::F32 {
        let joined = last();
        drop((waves, angles));
        return joined;
    }
    let joined = f32s(&[entries, width], "cat");
    drop((waves, angles));
    let narrow = last();
    drop(joined);
    narrow
}
