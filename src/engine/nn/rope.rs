//! Rotary position embeddings.

use super::builder::Builder;
use super::complex_rotary::complex_waves;
use crate::dtype::DType;
use crate::tape::{Module, Tape, Tensor};

/// `LlamaRotaryEmbedding`: cosines and sines of every position, recomputed in each forward.
pub struct Rotary {
    pub(super) module: Module,
    pub(super) inv_freq: Tensor,
    /// Kept by the module for rope kinds that change with the length.
    _original_inv_freq: Tensor,
    pub(super) head_dim: u64,
    frequencies: Frequencies,
    waves: Waves,
    /// True if each forward computes the frequencies again, on the host (PhiMoE), and whether they depend on the length.
    recomputed: Option<bool>,
    /// True if each forward looks whether the frequencies still suit its length (`dynamic_frequency_update`).
    is_dynamic: bool,
}

/// How the rotation of each position is given to attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waves {
    /// Cosines and sines, repeated for the second half of each head.
    Repeated,
    /// Cosines and sines of half of each head only (gpt-oss).
    Halves,
    /// Complex numbers, given in place of both (DeepSeek-V2).
    Complex,
}

/// Initialisation of the inverse frequencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frequencies {
    /// `compute_default_rope_parameters`.
    Default,
    /// `_compute_proportional_rope_parameters`: this many pairs of elements are rotated, the others have zeros.
    Proportional(u64),
    /// Those of height and width, this many, alternate before those of time (`Ernie4_5_VLMoeTextRotaryEmbedding`).
    Interleaved(u64),
}

impl Frequencies {
    /// Makes `n` inverse frequencies, of which `last` is the result.
    fn make(self, t: &Tape, n: u64, last: impl FnOnce() -> Tensor) -> Tensor {
        let rotated = match self {
            Self::Default => return inverse_frequencies(t, n, last),
            Self::Interleaved(first) => {
                let _in_order = inverse_frequencies(t, n, || t.empty([n], DType::F32, "mul"));
                let all = last();
                drop(t.empty([first], DType::F32, "cat"));
                return all;
            }
            Self::Proportional(rotated) => rotated,
        };
        let part = |name| t.empty([rotated], DType::F32, name);
        let power = {
            let shares = {
                let steps = {
                    let _whole = t.empty([rotated], DType::I64, "arange");
                    part("arange as float")
                };
                let shares = part("div");
                drop(steps);
                shares
            };
            let power = part("pow");
            drop(shares);
            power
        };
        let reciprocal = part("reciprocal");
        if rotated == n {
            let all = last();
            drop((reciprocal, power));
            return all;
        }
        let some = part("mul");
        drop((reciprocal, power));
        let rest = t.empty([n - rotated], DType::F32, "zeros");
        let all = last();
        drop((rest, some));
        all
    }
}

/// `1.0 / (base ** (torch.arange(0, dim, 2) / dim))`, whose last product is `last` (`compute_default_rope_parameters`).
/// Parameters made after it reuse the memory that its temporaries free.
pub fn inverse_frequencies(t: &Tape, n: u64, last: impl FnOnce() -> Tensor) -> Tensor {
    let part = |name| t.empty([n], DType::F32, name);
    let power = {
        let shares = {
            let _steps = part("arange");
            part("div")
        };
        let power = part("pow");
        drop(t.empty([], DType::I64, "base"));
        drop(shares);
        power
    };
    let reciprocal = part("reciprocal");
    let frequencies = last();
    drop(reciprocal);
    drop(power);
    frequencies
}

/// Recomputes the frequencies, as `_init_weights` does to copy them into the buffers of a complete model.
pub fn inverse_frequencies_again(t: &Tape, like: &Tensor) {
    let n = like.size(0);
    inverse_frequencies(t, n, || t.empty([n], DType::F32, "mul"));
}

impl Rotary {
    /// The inverse frequencies, held twice (`inv_freq`, `original_inv_freq`).
    pub fn new(b: &Builder, head_dim: u64) -> Self {
        Self::with(b, head_dim, Frequencies::Default)
    }

    /// The inverse frequencies of the given kind, held twice.
    pub fn with(b: &Builder, head_dim: u64, frequencies: Frequencies) -> Self {
        b.tape().scope("rotary_emb", || {
            let n = head_dim / 2;
            let inv_freq = frequencies.make(b.tape(), n, || b.buffer("inv_freq", [n], DType::F32));
            let _original_inv_freq = b.buffer("original_inv_freq", [n], DType::F32);
            Self {
                module: b.module(),
                inv_freq,
                _original_inv_freq,
                head_dim,
                frequencies,
                waves: Waves::Repeated,
                recomputed: None,
                is_dynamic: false,
            }
        })
    }

    /// Makes each forward look whether the frequencies still suit its length, if `is_dynamic`.
    pub fn dynamic(self, is_dynamic: bool) -> Self {
        Self { is_dynamic, ..self }
    }

    /// Makes each forward compute the frequencies again on the host, whose scale depends on the length if `Some(true)`.
    pub fn recomputed(self, recomputed: Option<bool>) -> Self {
        Self { recomputed, ..self }
    }

    /// Makes waves of the given form.
    pub fn of(self, waves: Waves) -> Self {
        Self { waves, ..self }
    }

    /// `dynamic_frequency_update`, for a length that the frequencies suit.
    pub(super) fn check_length(&self, t: &Tape) {
        if !self.is_dynamic {
            return;
        }
        let length = {
            let _last = t.empty([], DType::I64, "last position");
            t.empty([], DType::I64, "length")
        };
        drop(t.empty([], DType::Bool, "comparison"));
        let shorter = t.empty([], DType::Bool, "comparison");
        drop((shorter, length));
    }

    /// Runs `_init_weights` at the end of the constructor of the model that contains this.
    pub fn initialised(self, t: &Tape) -> Self {
        self.initialise(t);
        self
    }

    /// Runs `_init_weights` of tables that a parent holds already, and initialises after its other modules.
    pub fn initialise(&self, t: &Tape) {
        let n = self.inv_freq.size(0);
        self.frequencies
            .make(t, n, || t.empty([n], DType::F32, "inv_freq again"));
    }

    /// Cosines and sines, each [batch, positions, head_dim] in the type of `x`.
    pub fn call(&self, t: &Tape, x: &Tensor, position_ids: &Tensor) -> (Tensor, Tensor) {
        self.call_in(t, x.dtype(), position_ids)
    }

    /// Cosines and sines, each [batch, positions, head_dim] in the given type.
    pub fn call_in(&self, t: &Tape, dtype: DType, position_ids: &Tensor) -> (Tensor, Tensor) {
        self.module.call(t, || {
            t.no_grad(|| {
                self.check_length(t);
                let [batch, positions] = [position_ids.size(0), position_ids.size(1)];
                let mut _length = None;
                let freqs_in = if let Some(depends) = self.recomputed {
                    let length = {
                        let last = t.reduce_all(position_ids, "max");
                        t.compute(&last, DType::I64, "plus 1")
                    };
                    if depends {
                        drop(t.compute(&length, DType::Bool, "comparison"));
                    }
                    _length = Some(length);
                    t.empty([batch, self.head_dim / 2, 1], DType::F32, "frequencies from the host")
                } else {
                    let row = t.to_dtype(&t.view(&self.inv_freq, [1, self.head_dim / 2, 1]), DType::F32);
                    t.expand(&row, [batch, self.head_dim / 2, 1])
                };
                let expanded = t.compute(
                    &t.view(position_ids, [batch, 1, positions]),
                    DType::F32,
                    "positions as float",
                );
                let freqs = t.autocast(None, || t.matmul(&freqs_in, &expanded));
                let freqs = t.transpose(&freqs, 1, 2);
                let emb = match self.waves {
                    Waves::Repeated => t.cat(&[&freqs, &freqs], 2),
                    Waves::Halves => freqs.clone(),
                    Waves::Complex => {
                        let rotations = complex_waves(t, &freqs);
                        drop((freqs, expanded, freqs_in));
                        return (rotations.clone(), rotations);
                    }
                };
                let wave_of = |name| {
                    let wave = t.compute(&emb, DType::F32, name);
                    t.compute(&wave, DType::F32, "times attention scaling")
                };
                let cos = wave_of("cos");
                let sin = wave_of("sin");
                let rotated = (t.to_dtype(&cos, dtype), t.to_dtype(&sin, dtype));
                drop((expanded, freqs_in));
                rotated
            })
        })
    }
}

/// `rotate_half`: the second half of the last dimension, negated, before the first.
pub fn rotate_half(t: &Tape, x: &Tensor) -> Tensor {
    let d = x.dim() - 1;
    let half = x.last() / 2;
    let first = t.slice(x, d, half);
    let second = t.slice(x, d, half);
    let negated = t.neg(&second);
    t.cat(&[&negated, &first], d)
}

/// `apply_rotary_pos_emb` of one of queries and keys: `x * cos + rotate_half(x) * sin`.
pub fn apply_rotary(t: &Tape, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let straight = t.mul(x, cos);
    let rotated = {
        let rotated = rotate_half(t, x);
        t.mul(&rotated, sin)
    };
    t.add(&straight, &rotated)
}

/// Rotation of alternating elements of queries and keys as pairs, by cosines and sines of half as many elements
/// (`apply_rotary_pos_emb_interleave`).
pub fn apply_rotary_to_pairs(t: &Tape, x: [&Tensor; 2], cos: &Tensor, sin: &Tensor) -> [Tensor; 2] {
    let pairs = x.map(|x| [0, 1].map(|_| t.narrow(x, 3, x.last() / 2)));
    pairs.each_ref().map(|[first, second]| {
        let rotated = {
            let straight = t.mul(first, cos);
            t.sub(&straight, &t.mul(second, sin))
        };
        let other = {
            let straight = t.mul(second, cos);
            t.add(&straight, &t.mul(first, sin))
        };
        t.cat(&[&rotated, &other], 3)
    })
}

/// `apply_rotary_pos_emb` of nanochat, whose `rotate_half` negates the first half instead, and puts it last.
pub fn apply_rotary_back(t: &Tape, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let straight = t.mul(x, cos);
    let rotated = {
        let rotated = {
            let (d, half) = (x.dim() - 1, x.last() / 2);
            let first = t.slice(x, d, half);
            let second = t.slice(x, d, half);
            let negated = t.neg(&first);
            t.cat(&[&second, &negated], d)
        };
        t.mul(&rotated, sin)
    };
    t.add(&straight, &rotated)
}

/// Phi's rotation of the first elements of each head, as many as `cos` has: both queries and keys are rotated, then
/// both are concatenated with their other elements. The caller's variables keep the rotated elements and the others,
/// which come second.
pub fn apply_partial_rotary(
    t: &Tape,
    [q, k]: [&Tensor; 2],
    cos: &Tensor,
    sin: &Tensor,
) -> ([Tensor; 2], [(Tensor, Tensor); 2]) {
    let parts = [q, k].map(|x| rotated_part(t, x, cos.last()));
    let [rotated_q, rotated_k] = [0, 1].map(|i| apply_rotary(t, &parts[i].0, cos, sin));
    let [(_, rest_q), (_, rest_k)] = parts;
    let held = [(rotated_q, rest_q), (rotated_k, rest_k)];
    let whole = [0, 1].map(|i| t.cat(&[&held[i].0, &held[i].1], q.dim() - 1));
    (whole, held)
}

/// Rotates the first elements of each head, both queries and keys before either is concatenated with its other elements
/// (Qwen3.5). A rotated part is freed once it is.
pub fn apply_rotary_to_part(t: &Tape, x: [&Tensor; 2], cos: &Tensor, sin: &Tensor) -> [Tensor; 2] {
    let parts = x.map(|x| rotated_part(t, x, cos.last()));
    let rotated = [0, 1].map(|i| apply_rotary(t, &parts[i].0, cos, sin));
    let mut rests = parts.map(|(_, rest)| rest).into_iter();
    rotated.map(|rotated| {
        let rest = rests.next().unwrap_or_else(|| rotated.clone());
        t.cat(&[&rotated, &rest], rotated.dim() - 1)
    })
}

/// Rotates the first elements of each head, concatenating the queries before the keys are rotated (Phi-3).
pub fn apply_partial_rotary_in_turn(t: &Tape, [q, k]: [&Tensor; 2], cos: &Tensor, sin: &Tensor) -> [Tensor; 2] {
    let parts = [q, k].map(|x| rotated_part(t, x, cos.last()));
    [0, 1].map(|i| {
        let rotated = apply_rotary(t, &parts[i].0, cos, sin);
        t.cat(&[&rotated, &parts[i].1], q.dim() - 1)
    })
}

/// Splits each head into its first `width` elements and the others.
fn rotated_part(t: &Tape, x: &Tensor, width: u64) -> (Tensor, Tensor) {
    let d = x.dim() - 1;
    let rotated = t.slice(x, d, width);
    (rotated, t.narrow(x, d, x.last().saturating_sub(width)))
}
