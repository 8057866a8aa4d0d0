//! Bins of hundreds of equal small blocks, which are found by an index.

use proptest::prelude::*;
use proptest::sample::Index;
use vramscope_engine::allocator::{Block, CachingAllocator, Options};
use vramscope_engine::units::Bytes;

/// Blocks that are live at first.
const BLOCKS: usize = 900;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_are_those_that_the_general_pools_give(
        sizes in proptest::collection::vec(prop_oneof![6 => Just(512_u64), 1 => Just(1024)], BLOCKS),
        ops in proptest::collection::vec((any::<Index>(), 0..5_u8), 2 * BLOCKS),
    ) {
        // No block is as large as this, so the option changes no decision; but it turns the small pools off.
        let general = Options {
            max_split_size: Some(Bytes::new(1 << 59)),
            ..Options::default()
        };
        let mut allocators = [Options::default(), general].map(CachingAllocator::new);
        let alloc = |allocators: &mut [CachingAllocator; 2], bytes| {
            allocators.each_mut().map(|allocator| allocator.alloc(bytes, 0).expect("there is no limit"))
        };
        let mut live: Vec<[Block; 2]> = sizes.iter().map(|bytes| alloc(&mut allocators, *bytes)).collect();
        for (number, (which, kind)) in ops.iter().enumerate() {
            // Frees prevail in the first half, so that bins grow long; requests in the second, so that they empty.
            let frees = if number < BLOCKS { *kind > 0 } else { *kind == 0 };
            if frees && !live.is_empty() {
                let blocks = live.swap_remove(which.index(live.len()));
                allocators.iter_mut().zip(blocks).for_each(|(allocator, block)| allocator.free(block));
            } else {
                let blocks = alloc(&mut allocators, 512);
                let [one, other] = [0, 1].map(|i| allocators[i].address(blocks[i]));
                prop_assert_eq!(one, other);
                live.push(blocks);
            }
        }
        let [small, general] = allocators.each_ref().map(|allocator| allocator.segments().collect::<Vec<_>>());
        prop_assert_eq!(small, general);
    }
}
