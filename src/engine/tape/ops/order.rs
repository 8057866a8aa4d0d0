//! Memory that sorts and top-k searches take from the allocator beside their results, as measured on an H100 with
//! PyTorch 2.11.

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::cub;
use crate::dtype::DType;

/// Maximum elements of a row that one thread block sorts in place (`should_use_small_sort` in
/// `aten/src/ATen/native/cuda/SortUtils.cuh`).
pub(crate) const MOST_IN_PLACE: u64 = 4096;

/// Minimum elements of a row that is sorted by itself, regardless of the others (`do_launch_stable_sort_kernel` in
/// `aten/src/ATen/native/cuda/SortStable.cu`), and minimum rows that are sorted as segments.
const ALONE_FROM: u64 = 1_000_000;
const SEGMENTS_FROM: u64 = 128;

/// Threads of a block that counts digits (`BLOCK_THREADS` in `aten/src/ATen/native/cuda/TensorTopK.cu`), registers of
/// each thread and of a multiprocessor, and minimum and maximum elements of each thread.
const COUNTING_THREADS: u64 = 256;
const COUNTING_REGISTERS: u64 = 40;
const REGISTERS: u64 = 1 << 16;
const COUNTED: [u64; 2] = [4, 64];

/// Maximum blocks for which the storage of CUB's sum by key was measured, and that storage in bytes.
const MOST_SUMMED_BLOCKS: u64 = 1000;
const SUM_BY_KEY: u64 = 1279;

impl Tape {
    /// Allocates memory that a sort keeps until it is dropped.
    fn bytes_of_order(&self, bytes: u64, name: &'static str) -> Tensor {
        self.empty([bytes], DType::U8, name)
    }

    /// Allocates what `torch.sort` of `rows` rows of `n` elements of `width` bytes takes beside its results; returns
    /// false if that was not measured.
    pub(crate) fn in_sort(&self, [rows, n]: [u64; 2], width: u64) -> bool {
        if n <= MOST_IN_PLACE {
            drop(self.bytes_of_order(8 * n, "arange"));
            return true;
        }
        let all = rows * n;
        if rows == 1 || n >= ALONE_FROM {
            let Some(storage) = cub::sort_whole_keys(n, width) else {
                return false;
            };
            let order = self.bytes_of_order(8 * n, "order before sorting");
            (0..rows).for_each(|_| drop(self.bytes_of_order(storage, "sort storage")));
            drop(order);
        } else if rows < SEGMENTS_FROM {
            let Some(storage) = cub::sort_whole_keys(all, width) else {
                return false;
            };
            let [first, second] = [(); 2].map(|()| self.bytes_of_order(8 * all, "rows and places"));
            let keys = self.bytes_of_order(width * all, "sorted keys");
            drop(self.bytes_of_order(storage, "sort storage"));
            drop(keys);
            drop(self.bytes_of_order(cub::sort_keys_once(all), "sort storage"));
            drop((second, first));
        } else {
            let order = self.bytes_of_order(8 * all, "order before sorting");
            drop(self.bytes_of_order(cub::sort_segments(all, width), "sort storage"));
            drop(order);
        }
        true
    }

    /// Allocates what `torch.topk` of `rows` rows of `n` elements of `width` bytes takes beside its results; returns
    /// false if that was not measured.
    pub(crate) fn in_topk(&self, [rows, n]: [u64; 2], width: u64) -> bool {
        if !counts_in_blocks(rows, n) {
            return true;
        }
        let gpu = self.gpu();
        let blocks = gpu.sms * (REGISTERS / (COUNTING_REGISTERS * COUNTING_THREADS));
        let each = (rows * n).div_ceil(blocks * COUNTING_THREADS);
        let each = each.clamp(COUNTED[0], COUNTED[1]) * COUNTING_THREADS;
        let blocks = rows * n.div_ceil(each);
        // For each row: the k-th value; a semaphore and the number of values still to find; digits and their masks.
        // Then the digit counts of each block, their sums for each row, and for each block the numbers of values above
        // and equal to the k-th.
        let digits = 2 * width.max(4) * rows;
        let kept = [
            width * rows,
            8 * rows,
            digits,
            512 * blocks,
            1024 * rows,
            4 * blocks,
            4 * blocks,
        ];
        let kept = kept.map(|bytes| self.bytes_of_order(bytes, "counts of digits"));
        (0..2).for_each(|_| drop(self.bytes_of_order(SUM_BY_KEY, "scan storage")));
        drop(kept);
        blocks <= MOST_SUMMED_BLOCKS
    }
}

/// Returns true if several blocks count the digits of one row (`should_use_multiblock` in
/// `aten/src/ATen/native/cuda/TensorTopK.cu`).
const fn counts_in_blocks(rows: u64, n: u64) -> bool {
    let from = match rows {
        0..=20 => 20_000,
        21..=40 => 10_000,
        41..=80 => 8_000,
        81..=199 => 5_000,
        200..=799 => 3_000,
        800..=4000 => 800,
        _ => 400,
    };
    n >= from
}
