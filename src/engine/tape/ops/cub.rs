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

/// `DeviceSelect::UniqueByKey` over `n` pairs of 8 bytes each: a status word and a count of 16 bytes for each tile of 4480.
pub(super) fn unique_by_key(n: u64) -> u64 {
    aligned(&[16 * (n.div_ceil(4480) + PADDING_TILES), 1])
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
    sort(n, (passes, 4608), [buffer, buffer])
}

/// `DeviceRadixSort` of more pairs than one block sorts, with keys of 2, 4 or 8 bytes, by all of their bits; `None` for
/// other keys, which were not measured.
pub(super) fn sort_whole_keys(n: u64, width: u64) -> Option<u64> {
    let tile = match width {
        2 => 5632,
        4 => 5376,
        8 => 4608,
        _ => return None,
    };
    Some(sort(n, (width, tile), [width * n, 8 * n]))
}

/// `DeviceRadixSort` of `n` 8-byte keys without values, more than one block sorts, by at most 8 of their bits.
pub(super) fn sort_keys_once(n: u64) -> u64 {
    sort(n, (1, 5760), [0, 0])
}

/// `DeviceSegmentedRadixSort` of `n` pairs in total, with keys of `width` bytes and values of 8: a second buffer of
/// each.
pub(super) fn sort_segments(n: u64, width: u64) -> u64 {
    aligned(&[width * n, 8 * n])
}

fn sort(n: u64, (passes, tile): (u64, u64), [keys, values]: [u64; 2]) -> u64 {
    aligned(&[8 * 256 * passes, 4 * 256 * n.div_ceil(tile), keys, values, 4 * passes])
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

    /// Sizes that `torch.sort` took on an H100 with PyTorch 2.11.
    #[test]
    fn sorts_take_what_was_measured() {
        for (n, width, bytes) in [
            (4_097, 4, 59_391),
            (1_000_000, 4, 12_200_191),
            (100_000, 2, 1_023_231),
            (1_000_000, 2, 10_187_007),
            (100_000, 8, 1_639_423),
            (20_000, 4, 252_927),
        ] {
            assert_eq!(sort_whole_keys(n, width), Some(bytes), "{n} keys of {width}");
        }
        let once = [(20_000, 6_655), (409_700, 76_287), (12_700_000, 2_260_479)];
        once.into_iter()
            .for_each(|(n, bytes)| assert_eq!(sort_keys_once(n), bytes));
        let segments = [
            (524_416, 4, 6_293_247),
            (4_097_000, 4, 49_164_543),
            (1_280_000, 2, 12_800_255),
        ];
        segments
            .into_iter()
            .for_each(|(n, width, bytes)| assert_eq!(sort_segments(n, width), bytes));
    }

    /// Sizes that the gradient of an embedding took on an H100 with PyTorch 2.11.
    #[test]
    fn unique_keys_take_what_was_measured() {
        for (n, bytes) in [(71_680, 1279), (71_681, 1535), (215_041, 2047), (358_401, 2559)] {
            assert_eq!(unique_by_key(n), bytes, "{n} keys");
        }
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
