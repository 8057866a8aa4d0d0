//! Mask functions that decide which keys a query may attend to, evaluated over all positions at once as transformers
//! does (`and_masks`, `or_masks` and the overlays of `masking_utils.py`).

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// One function of (batch, head, query, key).
pub(super) enum Rule<'a> {
    /// `query >= 0`.
    Any,
    /// `key <= query`.
    Causal,
    /// `key > query - window`.
    Window,
    /// Both positions have the same id in a table of [batch, seq], and it is not negative.
    SameBlock(&'a Tensor),
    /// Both positions have the same number in a table of [batch, seq].
    SameSample(&'a Tensor),
    /// The key is marked in a table of [batch, seq].
    Marked(&'a Tensor),
    /// All of them hold.
    And(Vec<Self>),
    /// One of them holds.
    Or(Vec<Self>),
}

/// The positions over which rules are evaluated.
#[derive(Clone, Copy)]
pub(super) struct Positions {
    pub batch: u64,
    pub seq: u64,
    /// True if evaluated through `torch.vmap`, which makes one constant for each query.
    pub vmap: bool,
}

impl Rule<'_> {
    /// Returns a tensor of booleans that broadcasts to [batch, 1, seq, seq].
    pub fn evaluate(&self, t: &Tape, at: Positions) -> Tensor {
        let Positions { batch, seq, .. } = at;
        match self {
            Self::Any => t.empty([1, 1, seq, 1], DType::Bool, "query ≥ 0"),
            Self::Causal => t.empty([1, 1, seq, seq], DType::Bool, "key ≤ query"),
            Self::Window => {
                let bound = t.empty([1, 1, seq, 1], DType::I64, "first position of the window");
                let out = t.empty([1, 1, seq, seq], DType::Bool, "key within the window");
                drop(bound);
                out
            }
            Self::SameBlock(ids) => {
                let of_query = at.look_up(t, [batch, 1, seq, 1], ids.dtype(), "block of the query");
                let of_key = at.look_up(t, [batch, 1, 1, seq], ids.dtype(), "block of the key");
                let same = t.empty([batch, 1, seq, seq], DType::Bool, "same block");
                let counts = t.empty([batch, 1, seq, 1], DType::Bool, "block counts");
                let out = t.empty([batch, 1, seq, seq], DType::Bool, "mask and mask");
                drop((same, counts, of_query, of_key));
                out
            }
            Self::SameSample(samples) => {
                let of_query = at.look_up(t, [batch, 1, seq, 1], samples.dtype(), "sample of the query");
                let of_key = at.look_up(t, [batch, 1, 1, seq], samples.dtype(), "sample of the key");
                let same = t.empty([batch, 1, seq, seq], DType::Bool, "same sample");
                drop((of_query, of_key));
                same
            }
            Self::Marked(table) => at.look_up(t, [batch, 1, 1, seq], table.dtype(), "padding of keys"),
            Self::And(rules) => at.fold(t, rules, "mask and mask"),
            Self::Or(rules) => at.fold(t, rules, "mask or mask"),
        }
    }
}

impl Positions {
    /// `result = result & rule(…)` or `|`, one rule after the other, starting from a constant.
    fn fold(self, t: &Tape, rules: &[Rule<'_>], name: &'static str) -> Tensor {
        let mut result = if self.vmap {
            t.empty([1, 1, self.seq, 1], DType::Bool, "constant")
        } else {
            t.empty([], DType::Bool, "constant")
        };
        for rule in rules {
            let part = rule.evaluate(t, self);
            result = t.empty(t.broadcast(result.shape(), part.shape(), name), DType::Bool, name);
        }
        result
    }

    /// `table[batch, position]`: the two indices are broadcast to each other, and copied if that is not contiguous.
    fn look_up(self, t: &Tape, shape: [u64; 4], dtype: DType, name: &'static str) -> Tensor {
        let copies = if self.batch == 1 { 1 } else { 2 };
        let indices: Vec<Tensor> = (0..copies).map(|_| t.empty(shape, DType::I64, "index")).collect();
        let out = t.empty(shape, dtype, name);
        drop(indices);
        out
    }
}
