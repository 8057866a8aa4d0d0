//! Layouts of tensors in their storages.

use super::fault::Fault;
use super::limits::MOST_ELEMENTS;
use crate::dtype::DType;
use crate::tape::dims::{Dims, MAX_DIMS};

/// Layout of a tensor in its storage, in elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub dtype: DType,
    pub shape: Dims,
    pub strides: Dims,
}

impl Layout {
    /// Builds a layout from extents and strides; contiguous if there are no strides.
    pub fn new(dtype: DType, shape: &[u64], strides: Option<&[u64]>) -> Result<Self, Fault> {
        let too_much = || Fault::TooMuch("elements in a tensor");
        let numel = shape.iter().try_fold(1u64, |all, &extent| all.checked_mul(extent));
        numel.filter(|&n| n <= MOST_ELEMENTS).ok_or_else(too_much)?;
        // An extent of 0 makes the product 0 and hides the others, so each is checked.
        if shape.iter().any(|&extent| extent > MOST_ELEMENTS) {
            return Err(too_much());
        }
        let Some(strides) = strides else {
            return Ok(Self::dense(dtype, shape));
        };
        if strides.len() != shape.len() {
            return Err(Fault::Strides);
        }
        let span = shape.iter().zip(strides).try_fold(0u64, |all, (&extent, &stride)| {
            all.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
        });
        span.filter(|&n| n <= MOST_ELEMENTS).ok_or_else(too_much)?;
        // The stride of a dimension of extent 1 has no effect.
        let step = |(&extent, &stride): (&u64, &u64)| if extent > 1 { stride } else { stride.min(MOST_ELEMENTS) };
        let strides: Vec<u64> = shape.iter().zip(strides).map(step).collect();
        Ok(Self::strided(dtype, shape, &strides))
    }

    fn dense(dtype: DType, shape: &[u64]) -> Self {
        let few: Vec<u64> = match shape.len() {
            0..=MAX_DIMS => shape.to_vec(),
            _ => vec![shape.iter().product()],
        };
        let shape = if few.iter().all(|&extent| extent > 0) {
            Dims::new(&few)
        } else {
            Dims::new(&[0])
        };
        Self {
            dtype,
            shape,
            strides: shape.contiguous_strides(),
        }
    }

    /// Builds a layout with strides; merges adjacent dimensions that lie in one run if there are more than rules
    /// support.
    fn strided(dtype: DType, shape: &[u64], strides: &[u64]) -> Self {
        if shape.contains(&0) {
            return Self::dense(dtype, &[0]);
        }
        if shape.len() <= MAX_DIMS {
            return Self {
                dtype,
                shape: Dims::new(shape),
                strides: Dims::new(strides),
            };
        }
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (&extent, &stride) in shape.iter().zip(strides).filter(|(extent, _)| **extent > 1) {
            match runs.last_mut() {
                Some(last) if last.1 == stride * extent => *last = (last.0 * extent, stride),
                _ => runs.push((extent, stride)),
            }
        }
        match runs.len() {
            0..=MAX_DIMS => {
                let (shape, strides): (Vec<u64>, Vec<u64>) = runs.into_iter().unzip();
                Self {
                    dtype,
                    shape: Dims::new(&shape),
                    strides: Dims::new(&strides),
                }
            }
            _ => Self::dense(dtype, shape),
        }
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> u64 {
        self.shape.numel()
    }
}
