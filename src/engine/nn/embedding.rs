//! Embedding tables.

use super::builder::Builder;
use crate::tape::{Tape, Tensor};

/// `torch.nn.Embedding`.
pub struct Embedding {
    weight: Tensor,
    /// True if each GPU of a group has a part of the entries.
    is_split: bool,
}

impl Embedding {
    /// Makes a table of `entries` × `width`.
    pub fn new(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        let weight = b.tape().scope(name, || b.weight("weight", [entries, width]));
        b.tape().note_table(&weight);
        Self {
            weight,
            is_split: false,
        }
    }

    /// Makes a table that is never trained (`_freeze=True`).
    pub fn frozen(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.frozen_weight("weight", [entries, width]),
            is_split: false,
        })
    }

    /// Makes a table whose entries are split over the GPUs of a group (`embedding_rowwise`).
    pub fn rowwise(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        let group = b.tape().group();
        Self {
            is_split: group > 1,
            ..Self::new(b, name, entries / group, width)
        }
    }

    /// The table, for a head that shares it.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// [..] → [.., width].
    pub fn forward(&self, t: &Tape, ids: &Tensor) -> Tensor {
        if self.is_split {
            t.embedding_rowwise(&self.weight, ids)
        } else {
            t.embedding(&self.weight, ids)
        }
    }
}

/// Gemma's token embedding, whose output is multiplied by √width.
pub struct ScaledEmbedding {
    table: Embedding,
    scale: Tensor,
}

impl ScaledEmbedding {
    /// Makes a table of `entries` × `width` and the factor, in the type of weights.
    pub fn new(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        let table = Embedding::new(b, name, entries, width);
        b.tape().scope(name, || Self {
            table,
            scale: b.buffer("embed_scale", [], b.dtype()),
        })
    }

    /// The table, for a head that shares it.
    pub fn weight(&self) -> &Tensor {
        self.table.weight()
    }

    /// [..] → [.., width].
    pub fn forward(&self, t: &Tape, ids: &Tensor) -> Tensor {
        let looked_up = self.table.forward(t, ids);
        t.mul(&looked_up, &self.scale)
    }
}
