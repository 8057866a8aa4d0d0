//! The part of a tensor that each of several GPUs has.

use crate::tape::dims::Dims;

/// Elements of the largest shard of a tensor: its first dimension is cut (`torch.chunk`).
pub fn shard(shape: &Dims, world: u64) -> u64 {
    if shape.is_empty() {
        return shape.numel();
    }
    let first = shape[0].max(1);
    first.div_ceil(world) * (shape.numel() / first)
}
