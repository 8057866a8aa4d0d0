//! Shapes and strides, and the layout rules that decide if an operation must copy.

use crate::order::sort_short_by_key;
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Most dimensions of a tensor (PyTorch allows more; no model here needs them).
pub const MAX_DIMS: usize = 8;

/// Order of an image's dimensions in memory with channels last, outermost first.
const CHANNELS_LAST: [usize; 4] = [0, 2, 3, 1];

/// Order of a volume's dimensions in memory with channels last, outermost first.
const CHANNELS_LAST_3D: [usize; 5] = [0, 2, 3, 4, 1];

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

    /// Strides of an image of this shape that is contiguous with channels last.
    pub fn channels_last_strides(&self) -> Self {
        self.strides_of_order(&CHANNELS_LAST)
    }

    /// Strides of a tensor of this shape whose dimensions lie in the given order, outermost first, without gaps.
    fn strides_of_order(&self, order: &[usize]) -> Self {
        let mut strides = *self;
        let mut next = 1;
        for &i in order.iter().rev() {
            strides[i] = next;
            next = u64::saturating_mul(next, self[i].max(1));
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

/// Strides of `torch.cat`: channels last if all parts have four dimensions in that layout, else contiguous
/// (`cat_compute_output_memory_format` in `aten/src/ATen/native/cuda/Shape.cu`).
pub fn joined_strides<'a>(shape: &Dims, mut parts: impl Iterator<Item = (&'a Dims, &'a Dims)>) -> Dims {
    match parts.all(|(shape, strides)| is_channels_last(shape, strides)) {
        true => shape.channels_last_strides(),
        false => shape.contiguous_strides(),
    }
}

/// Returns true for strides of four dimensions in the order of channels last, with gaps or without
/// (`is_channels_last_strides_2d_s4` in `c10/core/MemoryFormat.h`).
pub fn is_channels_last(shape: &Dims, strides: &Dims) -> bool {
    if shape.len() != 4 {
        return false;
    }
    let mut least = 0;
    for i in [1, 3, 2, 0] {
        if strides[i] < least || strides[1] == 0 || i == 0 && least == strides[1] {
            return false;
        }
        least = strides[i] * shape[i].max(1);
    }
    true
}

/// Returns true if an image's or a volume's memory is in the order of channels last, without gaps.
pub fn is_channels_last_contiguous(shape: &Dims, strides: &Dims) -> bool {
    let order = match shape.len() {
        4 => &CHANNELS_LAST[..],
        5 => &CHANNELS_LAST_3D[..],
        _ => return false,
    };
    is_contiguous(&shape.permuted(order), &strides.permuted(order))
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
    if is_contiguous(shape, like) {
        return shape.contiguous_strides();
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
    order.reverse();
    shape.strides_of_order(order)
}

fn goes_inside(shape: &Dims, strides: &Dims, a: usize, b: usize) -> bool {
    if strides[a] == 0 || strides[b] == 0 {
        return false;
    }
    strides[a] < strides[b] || (strides[a] == strides[b] && shape[a] < shape[b])
}

/// Strides of the result of an elementwise operation on operands, each with its shape and strides, that are broadcast to
/// `shape`: the first operand that is not broadcast along either of two dimensions says which goes inside
/// (`TensorIteratorBase::reorder_dimensions`).
pub fn dense_strides_of(shape: &Dims, operands: &[(Dims, Dims)]) -> Dims {
    let along = |(own, strides): &(Dims, Dims), i: usize| match i.checked_sub(shape.len() - own.len()) {
        Some(i) if own[i] != 1 => strides[i],
        _ => 0,
    };
    // Order of two dimensions of which the first is now the inner one.
    let compare = |inner: usize, outer: usize| {
        for operand in operands {
            match (along(operand, inner), along(operand, outer)) {
                (0, _) | (_, 0) => {}
                (a, b) if a != b => return a.cmp(&b),
                _ if shape[inner] > shape[outer] => return Ordering::Greater,
                _ => {}
            }
        }
        Ordering::Equal
    };
    let mut order: [usize; MAX_DIMS] = std::array::from_fn(|i| i);
    let order = &mut order[..shape.len()];
    order.reverse();
    for i in 1..order.len() {
        let mut at = i;
        for inner in (0..i).rev() {
            match compare(order[inner], order[at]) {
                Ordering::Greater => {
                    order.swap(inner, at);
                    at = inner;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    order.reverse();
    shape.strides_of_order(order)
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
