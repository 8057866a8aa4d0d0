//! Keys and values kept for generation, which a model whose configuration says `use_cache` also keeps
//! when it trains without checkpointing (`transformers/cache_utils.py`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Tape, Tensor};

/// `DynamicCache`: it lives as long as the model's output.
#[derive(Clone, Default)]
pub struct KvCache(Rc<Held>);

#[derive(Default)]
struct Held {
    /// Number of positions that each block sees; all for blocks that are not listed.
    windows: Vec<Option<u64>>,
    layers: RefCell<Vec<Layer>>,
    /// Index of the next block in `layers`.
    next: Cell<usize>,
    /// States of blocks without keys and values.
    others: RefCell<Vec<Tensor>>,
}

/// Keys and values of one block, each [batch, heads, positions, width].
struct Layer {
    states: [Tensor; 2],
    /// The window as a number on the GPU (`DynamicSlidingWindowLayer`).
    _window: Option<Tensor>,
}

impl KvCache {
    /// Makes a cache for blocks that see the given number of positions, or all.
    pub fn with_windows(windows: &[Option<u64>]) -> Self {
        Self(Rc::new(Held {
            windows: windows.to_vec(),
            ..Held::default()
        }))
    }

    /// Appends copies of a block's keys and values to its cache, and returns what its attention then uses.
    pub fn update(&self, t: &Tape, k: &Tensor, v: &Tensor) -> (Tensor, Tensor) {
        let place = self.0.next.replace(self.0.next.get() + 1);
        let window = self.0.windows.get(place).copied().flatten();
        let fresh = place >= self.0.layers.borrow().len();
        if !fresh && window.is_none() {
            return self.grow(t, place, [k, v]);
        }
        let held = self.0.layers.borrow().get(place).map(|layer| layer.states.clone());
        let number = window
            .filter(|_| fresh)
            .map(|_| t.empty([], DType::I64, "sliding window"));
        let grown = match &held {
            Some([keys, values]) => [t.cat(&[keys, k], 2), t.cat(&[values, v], 2)],
            // Both begin empty, in the keys' type.
            None => [k, v].map(|new| t.cat_as(&[new], 2, k.dtype())),
        };
        let kept = match window {
            Some(window) => grown.each_ref().map(|x| t.slice(x, 2, x.size(2).min(window - 1))),
            None => grown.clone(),
        };
        let mut layers = self.0.layers.borrow_mut();
        if fresh {
            layers.push(Layer {
                states: kept,
                _window: number,
            });
        } else {
            layers[place].states = kept;
        }
        let [keys, values] = grown;
        (keys, values)
    }

    /// Extends the keys of a block without a window, then its values: what was kept of each is freed at once
    /// (`DynamicLayer.update`).
    fn grow(&self, t: &Tape, place: usize, new: [&Tensor; 2]) -> (Tensor, Tensor) {
        for (number, new) in new.into_iter().enumerate() {
            let held = self.0.layers.borrow()[place].states[number].clone();
            self.0.layers.borrow_mut()[place].states[number] = t.cat(&[&held, new], 2);
        }
        let [keys, values] = self.0.layers.borrow()[place].states.clone();
        (keys, values)
    }

    /// Keeps a state of a block without keys and values (`LinearAttentionLayer`).
    pub fn keep(&self, state: Tensor) {
        self.0.others.borrow_mut().push(state);
    }

    /// A block's cached keys and values, without new ones (cross-attention to an image seen before).
    pub fn seen(&self) -> Option<(Tensor, Tensor)> {
        let place = self.0.next.get();
        let [keys, values] = self.0.layers.borrow().get(place)?.states.clone();
        self.0.next.set(place + 1);
        Some((keys, values))
    }

    /// Restarts at the first block for the next forward.
    pub fn rewind(&self) {
        self.0.next.set(0);
    }

    /// Positions that the first block has cached.
    pub fn positions(&self) -> u64 {
        self.0
            .layers
            .borrow()
            .first()
            .map_or(0, |layer| layer.states[0].size(2))
    }

    /// Shapes and types of the keys and values, block after block.
    pub fn states(&self) -> Vec<(Dims, DType)> {
        let layers = self.0.layers.borrow();
        let states = layers.iter().flat_map(|layer| &layer.states);
        states.map(|x| (*x.shape(), x.dtype())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let bytes = cache
            .states()
            .iter()
            .map(|(shape, dtype)| shape.numel() * dtype.width())
            .sum::<u64>();
        assert_eq!(bytes, 2 * (2 * 11 + 2 * 10) * 2 * 4);
    }
}
