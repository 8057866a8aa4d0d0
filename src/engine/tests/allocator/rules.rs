//! Tests of each rule on the smallest case that shows it, worked out by hand from PyTorch's source.

use vramscope_engine::allocator::{Block, CachingAllocator, Options};
use vramscope_engine::units::Bytes;

const MIB: u64 = 1 << 20;

fn default() -> CachingAllocator {
    CachingAllocator::new(Options::default())
}

fn expandable(options: Options) -> CachingAllocator {
    CachingAllocator::new(Options {
        expandable_segments: true,
        ..options
    })
}

fn alloc(allocator: &mut CachingAllocator, bytes: u64) -> Block {
    allocator.alloc(bytes, 0).unwrap()
}

fn mib(bytes: Bytes) -> f64 {
    bytes.get() as f64 / MIB as f64
}

#[test]
fn small_requests_share_a_segment_of_2_mib() {
    let mut allocator = default();
    let blocks = [1, 513, MIB].map(|bytes| alloc(&mut allocator, bytes));
    let offsets = blocks.map(|block| allocator.address(block) - allocator.address(blocks[0]));
    assert_eq!(offsets, [0, 512, 1536]);
    assert_eq!(mib(allocator.reserved()), 2.0);
}

#[test]
fn requests_below_10_mib_share_a_segment_of_20() {
    let mut allocator = default();
    for _ in 0..2 {
        alloc(&mut allocator, 9 * MIB);
    }
    assert_eq!(mib(allocator.reserved()), 20.0);
    alloc(&mut allocator, 10 * MIB);
    assert_eq!(mib(allocator.reserved()), 30.0);
}

#[test]
fn a_large_block_keeps_a_rest_of_up_to_1_mib() {
    let mut allocator = default();
    let block = alloc(&mut allocator, 19 * MIB);
    allocator.free(block);
    assert_eq!(mib(allocator.reserved()), 20.0);
    let kept = alloc(&mut allocator, 19 * MIB);
    assert_eq!(allocator.block_size(kept), 20 * MIB);
    allocator.free(kept);
    let cut = alloc(&mut allocator, 19 * MIB - 512);
    assert_eq!(allocator.block_size(cut), 19 * MIB - 512);
}

#[test]
fn the_smallest_block_that_fits_serves_a_request_and_of_equals_the_lowest() {
    let mut allocator = default();
    let blocks = [30, 20, 20, 40].map(|mib| alloc(&mut allocator, mib * MIB));
    let lowest = allocator.address(blocks[1]).min(allocator.address(blocks[2]));
    blocks.into_iter().for_each(|block| allocator.free(block));
    let found = alloc(&mut allocator, 20 * MIB);
    assert_eq!(allocator.address(found), lowest);
}

#[test]
fn a_stream_does_not_use_what_another_freed() {
    let mut allocator = default();
    let block = alloc(&mut allocator, 20 * MIB);
    allocator.free(block);
    allocator.alloc(20 * MIB, 1).unwrap();
    assert_eq!(mib(allocator.reserved()), 40.0);
}

#[test]
fn a_block_that_another_stream_uses_is_not_allocated_and_not_yet_cached() {
    let mut allocator = default();
    let block = alloc(&mut allocator, 20 * MIB);
    allocator.request_free(block);
    assert_eq!(allocator.allocated(), Bytes::ZERO);
    alloc(&mut allocator, 20 * MIB);
    assert_eq!(mib(allocator.reserved()), 40.0);
    allocator.complete_free(block);
    alloc(&mut allocator, 20 * MIB);
    assert_eq!(mib(allocator.reserved()), 40.0);
}

#[test]
fn at_the_limit_cached_segments_go_before_the_request_fails() {
    let mut allocator = CachingAllocator::new(Options {
        limit: Some(Bytes::mib(100)),
        ..Options::default()
    });
    let blocks = [30, 30, 30].map(|mib| alloc(&mut allocator, mib * MIB));
    allocator.free(blocks[0]);
    allocator.free(blocks[1]);
    alloc(&mut allocator, 60 * MIB);
    assert_eq!((mib(allocator.reserved()), allocator.num_alloc_retries()), (90.0, 1));
    let error = allocator.alloc(11 * MIB, 0).unwrap_err();
    assert_eq!(
        (
            mib(error.requested),
            mib(error.allocated),
            mib(error.reserved),
            mib(error.limit)
        ),
        (12.0, 90.0, 90.0, 100.0)
    );
}

#[test]
fn a_segment_with_a_live_block_is_never_given_back() {
    let mut allocator = default();
    let (kept, freed) = (alloc(&mut allocator, 5 * MIB), alloc(&mut allocator, 5 * MIB));
    allocator.free(freed);
    allocator.empty_cache();
    assert_eq!(mib(allocator.reserved()), 20.0);
    allocator.free(kept);
    allocator.empty_cache();
    assert_eq!(allocator.reserved(), Bytes::ZERO);
}

#[test]
fn absurd_requests_fail_instead_of_overflowing() {
    for bytes in [u64::MAX, 1 << 60, 1 << 47] {
        for expandable_segments in [false, true] {
            let mut allocator = CachingAllocator::new(Options {
                expandable_segments,
                ..Options::default()
            });
            assert!(allocator.alloc(bytes, 0).is_err(), "{bytes}");
        }
    }
}

#[test]
fn oversize_blocks_are_not_split_and_serve_only_requests_near_their_size() {
    let options = Options {
        max_split_size: Some(Bytes::mib(50)),
        ..Options::default()
    };
    let mut allocator = CachingAllocator::new(options);
    let block = alloc(&mut allocator, 100 * MIB);
    allocator.free(block);
    alloc(&mut allocator, 40 * MIB);
    assert_eq!(mib(allocator.reserved()), 140.0);
    let far = alloc(&mut allocator, 80 * MIB);
    assert_eq!(mib(allocator.reserved()), 220.0);
    allocator.free(far);
    let near = alloc(&mut allocator, 70 * MIB);
    assert_eq!(
        (allocator.block_size(near), mib(allocator.reserved())),
        (80 * MIB, 220.0)
    );
}

#[test]
fn oversize_blocks_are_given_back_just_enough_for_a_request() {
    let options = Options {
        max_split_size: Some(Bytes::mib(50)),
        limit: Some(Bytes::mib(300)),
        ..Options::default()
    };
    let mut allocator = CachingAllocator::new(options);
    let blocks = [60, 70, 90].map(|mib| alloc(&mut allocator, mib * MIB));
    blocks.into_iter().for_each(|block| allocator.free(block));
    // 150 MiB more do not fit: the largest two go, the third stays.
    alloc(&mut allocator, 150 * MIB);
    assert_eq!((mib(allocator.reserved()), allocator.num_alloc_retries()), (210.0, 0));
}

#[test]
fn garbage_collection_gives_back_what_was_cached_longest() {
    let options = Options {
        garbage_collection_threshold: 0.5,
        limit: Some(Bytes::mib(200)),
        ..Options::default()
    };
    let mut allocator = CachingAllocator::new(options);
    let old = alloc(&mut allocator, 60 * MIB);
    let young = alloc(&mut allocator, 50 * MIB);
    allocator.free(old);
    for _ in 0..10 {
        let used = alloc(&mut allocator, 60 * MIB);
        allocator.free(used);
    }
    let old_address = allocator.segments().map(|segment| segment.address).max();
    allocator.free(young);
    // 110 MiB are reserved, 10 above the threshold. Both blocks are of about equal age now: wait for one.
    for _ in 0..10 {
        let used = alloc(&mut allocator, 50 * MIB);
        allocator.free(used);
    }
    alloc(&mut allocator, 70 * MIB);
    assert_eq!(mib(allocator.reserved()), 120.0);
    assert!(
        allocator
            .segments()
            .all(|segment| Some(segment.address) != old_address || segment.size != 60 * MIB)
    );
}

#[test]
fn an_expandable_segment_grows_by_granules_and_stays_in_one_piece() {
    let mut allocator = expandable(Options::default());
    let small = alloc(&mut allocator, 100);
    let first = alloc(&mut allocator, 5 * MIB);
    assert_eq!(mib(allocator.reserved()), 22.0);
    // 15 MiB are free behind the first block; 3 more are missing, which a granule of 20 covers.
    let second = alloc(&mut allocator, 18 * MIB);
    assert_eq!(mib(allocator.reserved()), 42.0);
    assert_eq!(allocator.address(second) - allocator.address(first), 5 * MIB);
    assert_eq!(allocator.segments().count(), 2);
    assert_eq!(allocator.block_size(small), 512);
}

#[test]
fn the_end_of_an_expandable_segment_counts_as_large_as_it_can_grow() {
    let mut allocator = expandable(Options::default());
    let blocks = [25, 10, 1].map(|mib| alloc(&mut allocator, mib * MIB + 512));
    allocator.free(blocks[0]);
    // Free: 25 MiB at the start, less than 4 at the end. Requests that fit the end go to the start.
    let found = alloc(&mut allocator, 2 * MIB);
    assert_eq!(allocator.address(found), allocator.address(blocks[0]));
}

#[test]
fn only_whole_granules_are_unmapped_and_the_gap_is_filled_first() {
    let mut allocator = expandable(Options::default());
    let (first, second) = (alloc(&mut allocator, 30 * MIB), alloc(&mut allocator, 10 * MIB));
    let start = allocator.address(first);
    assert_eq!(mib(allocator.reserved()), 40.0);
    allocator.free(first);
    allocator.empty_cache();
    assert_eq!(mib(allocator.reserved()), 20.0);
    // The unmapped 20 MiB, then the free 10.
    let third = alloc(&mut allocator, 25 * MIB);
    assert_eq!((allocator.address(third), mib(allocator.reserved())), (start, 40.0));
    allocator.free(second);
    allocator.free(third);
    allocator.empty_cache();
    assert_eq!(allocator.segments().count(), 0);
}

#[test]
fn an_expandable_segment_remaps_what_fragments_a_plain_allocator() {
    // Freed blocks of 60 MiB cannot serve 90, unless their memory moves.
    let limit = Options {
        capacity: Some(Bytes::mib(240)),
        ..Options::default()
    };
    let attempt = |mut allocator: CachingAllocator| {
        let blocks = [60, 60, 60, 60].map(|mib| alloc(&mut allocator, mib * MIB));
        allocator.free(blocks[1]);
        allocator.free(blocks[3]);
        allocator.alloc(90 * MIB, 0).map(|_| mib(allocator.reserved()))
    };
    assert_eq!(attempt(CachingAllocator::new(limit.clone())), Ok(210.0));
    assert_eq!(attempt(expandable(limit)), Ok(220.0));
}

#[test]
fn driver_memory_that_runs_out_while_a_segment_grows_is_an_error() {
    let mut allocator = expandable(Options {
        capacity: Some(Bytes::mib(30)),
        ..Options::default()
    });
    alloc(&mut allocator, 15 * MIB);
    let error = allocator.alloc(12 * MIB, 0).unwrap_err();
    assert_eq!(
        (mib(error.requested), mib(error.reserved), mib(error.limit)),
        (12.0, 20.0, 30.0)
    );
    assert_eq!(allocator.num_alloc_retries(), 1);
}
