//! Embedding tables.

use super::builder::Builder;
use crate::tape::{Module, Tape, Tensor};

/// `torch.nn.Embedding`.
pub struct Embedding {
    module: Module,
    weight: Tensor,
    /// True if each GPU of a group has a part of the entries.
    is_split: bool,
}

impl Embedding {
    /// Makes a table of `entries` × `width`.
    pub fn new(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        b.tape().scope(name, || {
            let weight = b.weight("weight", [entries, width]);
            b.note_table(&weight);
            Self {
                module: b.module(),
                weight,
                is_split: false,
            }
        })
    }

    /// Makes a table that is never trained (`_freeze=True`).
    pub fn frozen(b: &Builder, name: &'static str, entries: u64, width: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
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
    pub fn call(&self, t: &Tape, ids: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, ids))
    }

    /// [..] → [.., width], which a hook on the module replaces.
    pub fn call_hooked(&self, t: &Tape, ids: &Tensor, hook: impl FnOnce(Tensor) -> Tensor) -> Tensor {
        self.module.call(t, || hook(self.forward(t, ids)))
    }

    /// The module, for classes that derive from `torch.nn.Embedding` and whose forward does more.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// [..] → [.., width], for a caller that has entered the module.
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
    pub fn call(&self, t: &Tape, ids: &Tensor) -> Tensor {
        self.call_hooked(t, ids, |embeds| embeds)
    }

    /// [..] → [.., width], which a hook on the module replaces.
    pub fn call_hooked(&self, t: &Tape, ids: &Tensor, hook: impl FnOnce(Tensor) -> Tensor) -> Tensor {
        self.table
            .call_hooked(t, ids, |looked_up| hook(t.mul(&looked_up, &self.scale)))
    }
}
