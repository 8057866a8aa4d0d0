//! Shapes and strides, and the layout rules that decide if an operation must copy.

use crate::order::sort_short_by_key;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Most dimensions of a tensor (PyTorch allows more; no model here needs them).
pub const MAX_DIMS: usize = 8;

/// Up to [`MAX_DIMS`] extents, kept inline: a shape in elements, or strides in elements. Entries from `len` on are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dims {
    len: u8,
    at: [u64; MAX_DIMS],
}

impl Dims {
    /// Makes the given extents.
    ///
    /// # Panics
    /// When there are more than [`MAX_DIMS`].
    #[inline(never)]
    pub fn new(dims: &[u64]) -> Self {
        let mut at = [0; MAX_DIMS];
        at[..dims.len()].copy_from_slice(dims);
        Self {
            len: dims.len() as u8,
            at,
        }
    }

    /// Product of the extents: elements of a tensor of this shape.
    pub fn numel(&self) -> u64 {
        self.iter()
            .fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// Strides of a contiguous tensor of this shape.
    pub fn contiguous_strides(&self) -> Self {
        let mut strides = *self;
        let mut next = 1;
        for i in (0..self.len()).rev() {
            strides[i] = next;
            next = next.saturating_mul(self[i].max(1));
        }
        strides
    }

    /// Returns the extents with `i` and `j` exchanged.
    pub fn swapped(mut self, i: usize, j: usize) -> Self {
        self.swap(i, j);
        self
    }

    /// Returns the extents in the given order.
    pub fn permuted(&self, order: &[usize]) -> Self {
        let mut out = *self;
        for (to, &from) in order.iter().enumerate() {
            out[to] = self[from];
        }
        out
    }

    /// Returns the extents with `extent` inserted at `i`.
    pub fn inserted(&self, i: usize, extent: u64) -> Self {
        let mut out = *self;
        out.at.copy_within(i..MAX_DIMS - 1, i + 1);
        out.at[i] = extent;
        out.len += 1;
        out
    }

    /// Returns the extents without dimension `i`.
    pub fn removed(&self, i: usize) -> Self {
        let mut out = *self;
        out.at.copy_within(i + 1.., i);
        // Keep the unused entry 0, so that equal extents compare equal.
        out.at[MAX_DIMS - 1] = 0;
        out.len -= 1;
        out
    }
}

impl Deref for Dims {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.at[..self.len as usize]
    }
}

impl DerefMut for Dims {
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.at[..self.len as usize]
    }
}

impl Serialize for Dims {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self[..].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Dims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dims = Vec::deserialize(deserializer)?;
        match dims.len() {
            0..=MAX_DIMS => Ok(Self::new(&dims)),
            more => Err(de::Error::invalid_length(more, &"at most 8 dimensions")),
        }
    }
}

impl From<&[u64]> for Dims {
    fn from(dims: &[u64]) -> Self {
        Self::new(dims)
    }
}

impl<const N: usize> From<[u64; N]> for Dims {
    fn from(dims: [u64; N]) -> Self {
        Self::new(&dims)
    }
}

/// Returns true if a tensor's memory is in the order of its shape, without gaps.
pub fn is_contiguous(shape: &Dims, strides: &Dims) -> bool {
    let mut expected = 1;
    for i in (0..shape.len()).rev() {
        if shape[i] != 1 {
            if strides[i] != expected {
                return false;
            }
            expected = u64::saturating_mul(expected, shape[i]);
        }
    }
    true
}

/// Returns true if the strides are those of images with channels last (`is_channels_last_strides_2d` in
/// `c10/core/MemoryFormat.h`).
pub fn are_channels_last(shape: &Dims, strides: &Dims) -> bool {
    if shape.len() != 4 || strides[1] == 0 {
        return false;
    }
    let mut least = 0;
    for d in [1, 3, 2, 0] {
        let ambiguous = d == 0 && least == strides[1];
        if shape[d] == 0 || strides[d] < least || ambiguous {
            return false;
        }
        least = strides[d] * shape[d];
    }
    true
}

/// Returns true if some permutation of a tensor's dimensions is contiguous
/// (`TensorImpl::is_non_overlapping_and_dense`).
pub fn is_dense(shape: &Dims, strides: &Dims) -> bool {
    if is_contiguous(shape, strides) {
        return true;
    }
    let mut order: Vec<usize> = (0..shape.len()).filter(|&i| shape[i] != 1).collect();
    sort_short_by_key(&mut order, |&i| strides[i]);
    let mut expected = 1;
    order.iter().all(|&i| {
        let ok = strides[i] == expected;
        expected = u64::saturating_mul(expected, shape[i]);
        ok
    })
}

/// Strides of a new tensor of `shape` whose dimensions have the memory order of `like`'s strides, as `empty_like`
/// (preserve format) and elementwise operations return (`infer_dense_strides_dim_order`,
/// `TensorIteratorBase::reorder_dimensions`).
pub fn dense_strides_like(shape: &Dims, like: &Dims) -> Dims {
    let contiguous = shape.contiguous_strides();
    if is_contiguous(shape, like) {
        return contiguous;
    }
    let mut order: [usize; MAX_DIMS] = std::array::from_fn(|i| i);
    let order = &mut order[..shape.len()];
    // Innermost first; equal or broadcast (0) strides keep the order of the shape.
    order.reverse();
    for i in 1..order.len() {
        let mut j = i;
        while j > 0 && goes_inside(shape, like, order[j], order[j - 1]) {
            order.swap(j, j - 1);
            j -= 1;
        }
    }
    let mut strides = contiguous;
    let mut next = 1;
    for &i in order.iter() {
        strides[i] = next;
        next = u64::saturating_mul(next, shape[i].max(1));
    }
    strides
}

fn goes_inside(shape: &Dims, strides: &Dims, a: usize, b: usize) -> bool {
    if strides[a] == 0 || strides[b] == 0 {
        return false;
    }
    strides[a] < strides[b] || (strides[a] == strides[b] && shape[a] < shape[b])
}

/// Strides with which a tensor of `shape` and `strides` can be viewed as `to` without a copy (`computeStride`); `None`
/// if it must be copied.
pub fn view_strides(shape: &Dims, strides: &Dims, to: &Dims) -> Option<Dims> {
    if is_contiguous(shape, strides) || shape.numel() == 0 {
        return Some(to.contiguous_strides());
    }
    let mut out = *to;
    let mut view_d = to.len();
    let mut tensor_numel = 1;
    let mut view_numel = 1;
    let mut base = *strides.last()?;
    for d in (0..shape.len()).rev() {
        tensor_numel *= shape[d];
        let chunk_ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != tensor_numel * base);
        if !chunk_ends {
            continue;
        }
        while view_d > 0 && (view_numel < tensor_numel || to[view_d - 1] == 1) {
            view_d -= 1;
            out[view_d] = view_numel * base;
            view_numel *= to[view_d];
        }
        if view_numel != tensor_numel {
            return None;
        }
        if d > 0 {
            base = strides[d - 1];
            tensor_numel = 1;
            view_numel = 1;
        }
    }
    (view_d == 0).then_some(out)
}

/// Shape of an elementwise result of two operands.
///
/// # Errors
/// When the shapes do not broadcast; then the larger of each extent.
pub fn broadcast(a: &Dims, b: &Dims) -> Result<Dims, Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = *long;
    let lead = long.len() - short.len();
    let mut fits = true;
    for (i, &s) in short.iter().enumerate() {
        let l = long[lead + i];
        fits &= l == s || l == 1 || s == 1;
        out[lead + i] = match (l, s) {
            (1, n) | (n, 1) => n,
            _ => l.max(s),
        };
    }
    if fits { Ok(out) } else { Err(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_split_and_transposed_keeps_its_memory_order() {
        // [B, S, H, D] seen as [B, H, S, D]
        let shape = Dims::new(&[2, 12, 512, 64]);
        let strides = Dims::new(&[512 * 768, 64, 768, 1]);
        assert!(is_dense(&shape, &strides) && !is_contiguous(&shape, &strides));
        assert_eq!(dense_strides_like(&shape, &strides), strides);
        // a third of a fused qkv projection: gaps, so not dense, but the order is kept
        let sliced = Dims::new(&[512 * 2304, 64, 2304, 1]);
        assert!(!is_dense(&shape, &sliced));
        assert_eq!(dense_strides_like(&shape, &sliced), strides);
    }

    #[test]
    fn views_that_need_a_copy_are_refused() {
        let shape = Dims::new(&[2, 512, 12, 64]);
        let contiguous = shape.contiguous_strides();
        assert!(view_strides(&shape, &contiguous, &Dims::new(&[1024, 768])).is_some());
        let swapped = (shape.swapped(1, 2), contiguous.swapped(1, 2));
        assert_eq!(view_strides(&swapped.0, &swapped.1, &Dims::new(&[24, 512, 64])), None);
        assert!(view_strides(&swapped.0, &swapped.1, &Dims::new(&[2, 12, 512, 8, 8])).is_some());
    }

    #[test]
    fn a_shape_is_the_same_whatever_was_taken_out_of_it() {
        let rows = Dims::new(&[3072, 7, 1]);
        assert_eq!(rows.removed(2).removed(1), Dims::new(&[3072]));
        assert_eq!(rows.removed(1).inserted(1, 7), rows);
    }
}
