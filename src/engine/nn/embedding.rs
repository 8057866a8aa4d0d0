//! Embedding tables.

use super::builder::Builder;
use crate::tape::{Tape, Tensor};

/// `torch.nn.Embedding`.
pub struct Embedding {
    weight: Tensor,
}

impl Embedding {
    /// A table of `entries` × `width`.
    pub fn new(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [entries, width]),
        })
    }

    /// The table, for a head that shares it.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// [..] → [.., width].
    pub fn forward(&self, t: &Tape, ids: &Tensor) -> Tensor {
        t.embedding(&self.weight, ids)
    }
}
