//! Keys and values kept for generation, which a model whose configuration says `use_cache` also keeps
//! when it trains without checkpointing (`transformers/cache_utils.py`).

use std::cell::RefCell;
use std::rc::Rc;

use crate::tape::{Tape, Tensor};

/// `DynamicCache`: it lives as long as the model's output.
#[derive(Clone, Default)]
pub struct KvCache(Rc<RefCell<Vec<Tensor>>>);

impl KvCache {
    /// Takes copies of a block's keys and values, which its attention then uses.
    pub fn update(&self, t: &Tape, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        let (keys, values) = (t.cat(&[k], 2), t.cat(&[v], 2));
        self.0.borrow_mut().extend([keys.clone(), values.clone()]);
        (keys, values)
    }

    /// What it holds, block by block.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.0.take()
    }
}
