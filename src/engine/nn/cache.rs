//! Keys and values kept for generation, which a model whose configuration says `use_cache` also keeps
//! when it trains without checkpointing (`transformers/cache_utils.py`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::tape::{Tape, Tensor};

/// `DynamicCache`: it lives as long as the model's output.
#[derive(Clone, Default)]
pub struct KvCache(Rc<Held>);

#[derive(Default)]
struct Held {
    /// Keys and values of each block, in turn.
    states: RefCell<Vec<Tensor>>,
    /// The next block's place among them.
    next: Cell<usize>,
}

impl KvCache {
    /// Takes copies of a block's keys and values behind what it has, which its attention then uses.
    pub fn update(&self, t: &Tape, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        (self.grow(t, k), self.grow(t, v))
    }

    /// `torch.cat([held, new], dim=-2)`; what was held goes once that is made.
    fn grow(&self, t: &Tape, new: &Tensor) -> Tensor {
        let place = self.0.next.replace(self.0.next.get() + 1);
        let held = self.0.states.borrow().get(place).cloned();
        let grown = match &held {
            Some(held) => t.cat(&[held, new], 2),
            None => t.cat(&[new], 2),
        };
        let mut states = self.0.states.borrow_mut();
        if held.is_some() {
            states[place] = grown.clone();
        } else {
            states.push(grown.clone());
        }
        grown
    }

    /// The next forward begins with the first block again.
    pub fn rewind(&self) {
        self.0.next.set(0);
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        let states = self.0.states.borrow();
        states.iter().map(|x| x.numel() * x.dtype().width()).sum()
    }

    /// What it holds, block by block.
    pub fn into_tensors(self) -> Vec<Tensor> {
        self.0.states.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::tape::Gpu;

    #[test]
    fn a_block_s_keys_grow_by_a_copy_of_all() {
        let tape = Tape::new(Gpu::H200);
        let cache = KvCache::default();
        let states = |positions: u64| tape.empty([1, 2, positions, 4], DType::Bf16, "keys");
        for _block in 0..2 {
            let (k, v) = (states(10), states(10));
            drop(cache.update(&tape, &k, &v));
        }
        cache.rewind();
        let (k, v) = (states(1), states(1));
        let (keys, _) = cache.update(&tape, &k, &v);
        assert_eq!(keys.size(2), 11);
        assert_eq!(cache.bytes(), 2 * (2 * 11 + 2 * 10) * 2 * 4);
    }
}
