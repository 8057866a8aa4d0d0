//! The part of a tensor that each of several GPUs has.

use crate::tape::dims::Dims;

/// Elements of the largest shard of a tensor: its first dimension is cut (`torch.chunk`).
pub fn shard(shape: &Dims, world: u64) -> u64 {
    shape_of_shard(shape, world).numel()
}

/// Shape of the largest shard of a tensor.
pub(super) fn shape_of_shard(shape: &Dims, world: u64) -> Dims {
    let mut part = *shape;
    if let Some(first) = part.first_mut() {
        *first = first.div_ceil(world);
    }
    part
}
