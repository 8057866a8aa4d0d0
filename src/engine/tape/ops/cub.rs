//! Sizes of CUB's temporary storage, which PyTorch takes from the allocator.
//!
//! Each algorithm requests its arrays rounded up to 256 bytes, and 255 more to align the first
//! (`cub/util_temporary_storage.cuh`, `AliasTemporaries`). Tile sizes are those of Hopper's tuning policies; they
//! reproduce every size in the recorded allocator traces.

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

/// `DeviceScan` over `n` 4-byte sums: a status word that holds the value, 8 bytes for each tile of 3072.
pub(super) fn scan_i32(n: u64) -> u64 {
    aligned(&[8 * (n.div_ceil(3072) + PADDING_TILES), 1])
}

/// `DeviceReduce` of `n` 4-byte values: only a placeholder if one block of 256 threads with 16 values each suffices,
/// else one sum for each of five waves of such blocks.
pub(super) fn reduce(n: u64, gpu: &Gpu) -> u64 {
    if n <= 256 * 16 {
        return 1;
    }
    aligned(&[4 * 5 * gpu.sms * (gpu.threads_per_sm / 256)])
}

/// `DeviceSelect` over `n` flags: a status word and a count of 8 bytes for each tile of 4224.
pub(super) fn select(n: u64) -> u64 {
    aligned(&[8 * (n.div_ceil(4224) + PADDING_TILES), 1])
}

/// `DeviceRadixSort` of `n` pairs of 8-byte keys and values by the lower `bits` of the keys: only a placeholder if one
/// block of 256 threads with 9 pairs each suffices. Else one pass for each 8 bits, each with 256 sums of 8 bytes and a
/// counter; 256 status words for each tile of 4608; and, if there are several passes, a second buffer of keys and one
/// of values.
pub(super) fn sort_pairs(n: u64, bits: u64) -> u64 {
    if n <= 256 * 9 {
        return 1;
    }
    let passes = bits.div_ceil(8);
    let buffer = if passes > 1 { 8 * n } else { 0 };
    aligned(&[8 * 256 * passes, 4 * 256 * n.div_ceil(4608), buffer, buffer, 4 * passes])
}

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
        assert_eq!(reduce(1_193_472, &Gpu::H200), 21_503);
    }

    /// Sizes in the traces of Qwen2-VL's `get_rope_index` and `get_vision_cu_seqlens`.
    #[test]
    fn a_single_tile_needs_little() {
        assert_eq!(reduce(700, &Gpu::H200), 1);
        assert_eq!((select(700), scan(2), scan_i32(2)), (1023, 1279, 1023));
    }

    /// Sizes in the trace of Qwen3-VL: the gradient of its learned positions, 2304 patches of four.
    #[test]
    fn sorting_pairs_takes_what_the_trace_shows() {
        assert_eq!(sort_pairs(9216, 64), 166_399);
        assert_eq!((scan(9216), scan(2304)), (1279, 1279));
        assert_eq!(sort_pairs(768, 12), 1);
    }
}
