//! Temporary storage of CUB's device-wide algorithms, which PyTorch takes from the allocator.
//!
//! Each algorithm asks for its arrays rounded up to 256 bytes, and 255 more to align the first
//! (`cub/util_temporary_storage.cuh`, `AliasTemporaries`). Tile sizes are those of Hopper's
//! tuning policies; they reproduce every size in the recorded allocator traces.

use super::super::gpu::Gpu;

/// Padding tiles before the first (`TILE_STATUS_PADDING`, one warp).
const PADDING_TILES: u64 = 32;

fn aligned(arrays: &[u64]) -> u64 {
    arrays.iter().map(|bytes| bytes.next_multiple_of(256)).sum::<u64>() + 255
}

/// `DeviceScan` over `n` 8-byte sums: a status word and a value of 16 bytes for each tile of 896.
pub(super) fn scan(n: u64) -> u64 {
    aligned(&[16 * (n.div_ceil(896) + PADDING_TILES), 1])
}

/// `DeviceReduce`: one 4-byte sum for each of five waves of blocks of 256 threads.
pub(super) fn reduce(gpu: &Gpu) -> u64 {
    aligned(&[4 * 5 * gpu.sms * (gpu.threads_per_sm / 256)])
}

/// `DeviceSelect` over `n` flags: a status word and a count of 8 bytes for each tile of 4224.
pub(super) fn select(n: u64) -> u64 {
    aligned(&[8 * (n.div_ceil(4224) + PADDING_TILES), 1])
}

/// `DeviceRadixSort` of so few pairs that one block sorts them asks for nothing, of which PyTorch
/// still allocates one byte.
pub(super) const SORT_OF_ONE_TILE: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes in the trace of LLaVA-1.5's `masked_scatter`.
    #[test]
    fn storage_is_that_of_the_traces() {
        let scans = [
            (1_193_472, 22_527),
            (1_572_864, 29_183),
            (2_621_440, 47_871),
            (3_145_728, 57_343),
        ];
        scans.into_iter().for_each(|(n, bytes)| assert_eq!(scan(n), bytes));
        let selects = [
            (1_193_472, 3_071),
            (1_572_864, 3_839),
            (2_621_440, 5_887),
            (3_145_728, 6_911),
        ];
        selects.into_iter().for_each(|(n, bytes)| assert_eq!(select(n), bytes));
        assert_eq!(reduce(&Gpu::H200), 21_503);
    }
}
