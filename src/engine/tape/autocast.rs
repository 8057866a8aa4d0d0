//! `torch.autocast`: casts of operands, and the cache of cast weights.

use std::collections::HashMap;

use super::core::Tape;
use super::kind::Kind;
use super::tensor::Tensor;
use super::why::Why;
use crate::dtype::DType;
use crate::order::sort_by_key;

/// State of autocast in a thread.
#[derive(Default)]
pub(super) struct AutocastState {
    pub dtype: Option<DType>,
    depth: u32,
    /// `torch.autocast(cache_enabled=False)`.
    uncached: bool,
    /// Type of a model whose weights are packed, which fp32 inputs of its attention take outside autocast.
    packed: Option<DType>,
    /// Low-precision copies of leaves, by the leaf's identity; emptied when the outermost context ends.
    cache: HashMap<usize, (Tensor, Tensor)>,
}

impl Tape {
    /// Runs `f` under `torch.autocast(dtype)`, or unchanged if `dtype` is `None`.
    pub fn autocast<R>(&self, dtype: Option<DType>, f: impl FnOnce() -> R) -> R {
        let before = {
            let mut state = self.0.autocast.borrow_mut();
            state.depth += 1;
            std::mem::replace(&mut state.dtype, dtype)
        };
        let result = f();
        let cleared = {
            let mut state = self.0.autocast.borrow_mut();
            state.dtype = before;
            state.depth -= 1;
            if state.depth == 0 {
                std::mem::take(&mut state.cache)
            } else {
                HashMap::new()
            }
        };
        self.drop_cache(cleared);
        result
    }

    /// Sets if autocast caches its copies of weights (`cache_enabled`).
    pub fn set_autocast_cache(&self, enabled: bool) {
        self.0.autocast.borrow_mut().uncached = !enabled;
    }

    /// Notes that a model's weights are packed, and its type.
    pub fn pack_weights(&self, dtype: DType) {
        self.0.autocast.borrow_mut().packed = Some(dtype);
    }

    /// Type to which transformers casts attention's inputs for FlashAttention, if they are fp32: autocast's, or that of a model
    /// whose weights are packed (`get_target_dtype`, `integrations/flash_attention.py`). `None` if it leaves them.
    pub fn flash_dtype(&self, query: &Tensor) -> Option<DType> {
        let state = self.0.autocast.borrow();
        state.dtype.or(state.packed).filter(|_| query.dtype() == DType::F32)
    }

    /// Frees the copies in order of allocation, so that the log does not depend on hashing.
    fn drop_cache(&self, cache: HashMap<usize, (Tensor, Tensor)>) {
        let mut casts: Vec<_> = cache.into_values().collect();
        sort_by_key(&mut casts, |(_, cast)| cast.storage().id());
        casts.into_iter().for_each(drop);
    }

    /// Type of the current autocast context; `None` outside one.
    pub fn autocast_dtype(&self) -> Option<DType> {
        self.0.autocast.borrow().dtype
    }

    /// Casts an operand of an operation that autocast runs in low precision (`cached_cast`).
    pub fn cast_low(&self, t: &Tensor) -> Tensor {
        let Some(low) = self.autocast_dtype() else {
            return t.clone();
        };
        if !t.dtype().is_float() || t.dtype() == low {
            return t.clone();
        }
        let may_stay = t.0.leaf.is_some() && !self.0.autocast.borrow().uncached;
        if !(may_stay && t.dtype() == DType::F32) {
            return self.to_dtype(t, low);
        }
        if let Some((_, cast)) = self.0.autocast.borrow().cache.get(&t.key()) {
            return cast.clone();
        }
        let cast = self.to_dtype(t, low);
        cast.storage().classify(Kind::Temporary, Why::AutocastCopy);
        self.0
            .autocast
            .borrow_mut()
            .cache
            .insert(t.key(), (t.clone(), cast.clone()));
        cast
    }

    /// Casts an operand of an operation that autocast runs in fp32.
    pub fn cast_high(&self, t: &Tensor) -> Tensor {
        if self.autocast_dtype().is_none() || !t.dtype().is_float() || t.dtype() == DType::F32 {
            return t.clone();
        }
        self.to_dtype(t, DType::F32)
    }
}
