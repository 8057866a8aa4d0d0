//! Invariants after any sequence of requests, frees and flushes, under any options.

use proptest::prelude::*;
use proptest::sample::Index;
use vramscope_engine::allocator::{
    Block, BlockState, CachingAllocator, Options, PoolKind, RoundupDivisions, SMALL_SEGMENT, SegmentView, segment_size,
};
use vramscope_engine::units::Bytes;

const MIB: u64 = 1 << 20;

#[derive(Debug, Clone)]
enum Op {
    Alloc { bytes: u64, stream: u32 },
    Free(Index),
    EmptyCache,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![
        4 => 1..2 * MIB,
        3 => (1..40_u64).prop_map(|mib| mib * MIB),
        1 => 10 * MIB..200 * MIB,
    ];
    prop_oneof![
        8 => (bytes, prop_oneof![9 => Just(0), 1 => Just(7)]).prop_map(|(bytes, stream)| Op::Alloc { bytes, stream }),
        6 => any::<Index>().prop_map(Op::Free),
        1 => Just(Op::EmptyCache),
    ]
}

#[derive(Debug, Clone)]
enum SmallOp {
    Alloc { bytes: u64, stream: u32 },
    AllocAndFree { bytes: u64 },
    Free(Index),
    LetGo(Index),
    Complete(Index),
    EmptyCache,
}

/// Requests of few sizes, so that many blocks are equally large; now and then one of the large pool, so that large
/// segments lie between small ones.
fn small_op() -> impl Strategy<Value = SmallOp> {
    let bytes = prop_oneof![
        6 => prop_oneof![Just(1_u64), Just(512), Just(513), Just(2048), Just(4000), Just(160 << 10), Just(1 << 20)],
        3 => 1..MIB,
        1 => MIB..12 * MIB,
    ];
    let stream = prop_oneof![9 => Just(0), 1 => Just(7)];
    prop_oneof![
        16 => (bytes.clone(), stream).prop_map(|(bytes, stream)| SmallOp::Alloc { bytes, stream }),
        2 => bytes.prop_map(|bytes| SmallOp::AllocAndFree { bytes }),
        12 => any::<Index>().prop_map(SmallOp::Free),
        2 => any::<Index>().prop_map(SmallOp::LetGo),
        2 => any::<Index>().prop_map(SmallOp::Complete),
        1 => Just(SmallOp::EmptyCache),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let limit = prop_oneof![Just(None), (100_u64..600).prop_map(|mib| Some(Bytes::mib(mib)))];
    let max_split = prop_oneof![3 => Just(None), 1 => Just(Some(Bytes::mib(32)))];
    let divisions = prop_oneof![2 => Just(0_u64), 1 => Just(4)];
    let threshold = prop_oneof![2 => Just(0.0), 1 => Just(0.6)];
    (any::<bool>(), limit.clone(), limit, max_split, divisions, threshold).prop_map(
        |(expandable_segments, limit, capacity, max_split_size, divisions, garbage_collection_threshold)| Options {
            expandable_segments,
            limit,
            capacity,
            max_split_size,
            roundup_power2_divisions: RoundupDivisions::uniform(divisions),
            garbage_collection_threshold,
            ..Options::default()
        },
    )
}

/// An allocator and the blocks that its user holds.
struct Program {
    allocator: CachingAllocator,
    live: Vec<Block>,
}

impl Program {
    fn new(options: Options) -> Self {
        Self {
            allocator: CachingAllocator::new(options),
            live: Vec::new(),
        }
    }

    fn run(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Alloc { bytes, stream } => match self.allocator.alloc(*bytes, *stream) {
                Ok(block) => {
                    prop_assert!(self.allocator.block_size(block) >= *bytes);
                    self.live.push(block);
                }
                Err(error) => {
                    prop_assert_eq!(error.allocated, self.allocator.allocated());
                    prop_assert_eq!(error.reserved, self.allocator.reserved());
                    // Only segments that hold a live block are still reserved.
                    prop_assert!(
                        self.segments()
                            .iter()
                            .all(|s| s.expandable || s.blocks.len() > 1 || is_live(s))
                    );
                }
            },
            Op::Free(which) if !self.live.is_empty() => {
                let block = self.live.swap_remove(which.index(self.live.len()));
                self.allocator.free(block);
            }
            Op::Free(_) => {}
            Op::EmptyCache => self.allocator.empty_cache(),
        }
        Ok(())
    }

    fn segments(&self) -> Vec<SegmentView> {
        self.allocator.segments().collect()
    }
}

fn is_live(segment: &SegmentView) -> bool {
    segment.blocks.iter().any(|block| block.state == BlockState::Allocated)
}

fn bytes(segments: &[SegmentView], state: BlockState) -> u64 {
    segments
        .iter()
        .flat_map(|s| &s.blocks)
        .filter(|b| b.state == state)
        .map(|b| b.size)
        .sum()
}

/// Blocks fill their segments without gap or overlap, and free neighbours are merged.
fn check_layout(segments: &[SegmentView]) -> Result<(), TestCaseError> {
    for pair in segments.windows(2) {
        prop_assert!(pair[0].address + pair[0].size <= pair[1].address);
    }
    for segment in segments {
        let mut end = segment.address;
        for block in &segment.blocks {
            prop_assert_eq!(block.address, end);
            prop_assert!(block.size > 0 && block.size % 512 == 0);
            end += block.size;
        }
        prop_assert_eq!(end, segment.address + segment.size);
        prop_assert!(
            !segment
                .blocks
                .windows(2)
                .any(|pair| pair.iter().all(|b| b.state == BlockState::Free))
        );
        let granule = if segment.expandable {
            segment.pool.granule()
        } else {
            SMALL_SEGMENT
        };
        prop_assert_eq!(segment.size % granule, 0);
        prop_assert!(segment.expandable || segment.pool == PoolKind::Large || segment.size == SMALL_SEGMENT);
    }
    Ok(())
}

/// The counters equal the sums of the layout, and every live block has the address that its owner expects.
fn check_accounts(program: &Program) -> Result<(), TestCaseError> {
    let (allocator, segments) = (&program.allocator, program.segments());
    let (allocated, free) = (
        bytes(&segments, BlockState::Allocated),
        bytes(&segments, BlockState::Free),
    );
    prop_assert_eq!(allocator.allocated().get(), allocated);
    prop_assert_eq!(allocator.reserved().get(), allocated + free);
    let mut held: Vec<_> = program
        .live
        .iter()
        .map(|&b| (allocator.address(b), allocator.block_size(b)))
        .collect();
    held.sort_unstable();
    let shown = segments
        .iter()
        .flat_map(|s| &s.blocks)
        .filter(|b| b.state == BlockState::Allocated);
    prop_assert_eq!(held, shown.map(|b| (b.address, b.size)).collect::<Vec<_>>());
    for limit in [allocator.options().limit, allocator.options().capacity]
        .into_iter()
        .flatten()
    {
        // PyTorch checks the limit before it rounds an expandable segment's growth to granules.
        let slack = if allocator.options().expandable_segments {
            segment_size(2 * MIB)
        } else {
            0
        };
        prop_assert!(allocator.reserved().get() <= limit.get() + slack);
    }
    Ok(())
}

proptest! {
    #[test]
    fn blocks_tile_their_segments_and_the_counters_are_their_sums(
        options in options(),
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let mut program = Program::new(options);
        for op in &ops {
            program.run(op)?;
            check_layout(&program.segments())?;
            check_accounts(&program)?;
        }
    }

    #[test]
    fn peaks_never_fall_and_hold_the_present(options in options(), ops in proptest::collection::vec(op(), 1..80)) {
        let mut program = Program::new(options);
        let mut before = (Bytes::ZERO, Bytes::ZERO);
        for op in &ops {
            program.run(op)?;
            let allocator = &program.allocator;
            let peaks = (allocator.peak_allocated(), allocator.peak_reserved());
            prop_assert!(peaks.0 >= before.0 && peaks.1 >= before.1);
            prop_assert!(peaks.0 >= allocator.allocated() && peaks.1 >= allocator.reserved());
            before = peaks;
        }
        program.allocator.reset_peaks();
        prop_assert_eq!(program.allocator.peak_allocated(), program.allocator.allocated());
        prop_assert_eq!(program.allocator.peak_reserved(), program.allocator.reserved());
    }

    #[test]
    fn freeing_everything_merges_back_to_whole_segments_that_can_be_given_back(
        options in options(),
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let mut program = Program::new(options);
        for op in &ops {
            program.run(op)?;
        }
        for block in std::mem::take(&mut program.live) {
            program.allocator.free(block);
        }
        prop_assert_eq!(program.allocator.allocated(), Bytes::ZERO);
        prop_assert!(program.segments().iter().all(|segment| segment.blocks.len() == 1));
        program.allocator.empty_cache();
        prop_assert_eq!(program.allocator.reserved(), Bytes::ZERO);
        prop_assert!(program.segments().is_empty());
    }

    #[test]
    fn small_pools_do_what_the_general_pools_do(
        limit in prop_oneof![Just(None), (4_u64..60).prop_map(|mib| Some(Bytes::mib(mib)))],
        divisions in prop_oneof![2 => Just(0_u64), 1 => Just(4)],
        ops in proptest::collection::vec(small_op(), 1..400),
    ) {
        let options = Options {
            limit,
            roundup_power2_divisions: RoundupDivisions::uniform(divisions),
            ..Options::default()
        };
        // No block is as large as this, so the option changes no decision; but it turns the small pools off.
        let general = Options {
            max_split_size: Some(Bytes::new(1 << 59)),
            ..options.clone()
        };
        let mut allocators = [options, general].map(CachingAllocator::new);
        let (mut live, mut awaiting): (Vec<[Block; 2]>, Vec<[Block; 2]>) = Default::default();
        for op in &ops {
            match op {
                SmallOp::Alloc { bytes, stream } => {
                    let [small, general] = &mut allocators;
                    match (small.alloc(*bytes, *stream), general.alloc(*bytes, *stream)) {
                        (Ok(one), Ok(other)) => {
                            prop_assert_eq!(small.address(one), general.address(other));
                            prop_assert_eq!(small.block_size(one), general.block_size(other));
                            live.push([one, other]);
                        }
                        (one, other) => prop_assert_eq!(one.err(), other.err()),
                    }
                }
                SmallOp::AllocAndFree { bytes } => {
                    let [one, other] = allocators.each_mut().map(|allocator| allocator.alloc_and_free(*bytes, 0));
                    prop_assert_eq!(one, other);
                }
                SmallOp::Free(which) if !live.is_empty() => {
                    let blocks = live.swap_remove(which.index(live.len()));
                    allocators.iter_mut().zip(blocks).for_each(|(allocator, block)| allocator.free(block));
                }
                SmallOp::LetGo(which) if !live.is_empty() => {
                    let blocks = live.swap_remove(which.index(live.len()));
                    allocators.iter_mut().zip(blocks).for_each(|(allocator, block)| allocator.request_free(block));
                    awaiting.push(blocks);
                }
                SmallOp::Complete(which) if !awaiting.is_empty() => {
                    let blocks = awaiting.swap_remove(which.index(awaiting.len()));
                    allocators.iter_mut().zip(blocks).for_each(|(allocator, block)| allocator.complete_free(block));
                }
                SmallOp::EmptyCache => allocators.iter_mut().for_each(CachingAllocator::empty_cache),
                _ => {}
            }
            let [small, general] = allocators.each_ref().map(|allocator| {
                let reserved = [PoolKind::Small, PoolKind::Large].map(|kind| allocator.reserved_of(kind));
                let peaks = [allocator.peak_allocated(), allocator.peak_reserved()];
                (allocator.allocated(), reserved, peaks, allocator.num_alloc_retries(), allocator.fingerprint())
            });
            prop_assert_eq!(small, general);
        }
        let [small, general] = allocators.each_ref().map(|allocator| allocator.segments().collect::<Vec<_>>());
        check_layout(&small)?;
        prop_assert_eq!(small, general);
    }

    #[test]
    fn fingerprints_are_equal_just_where_layouts_are(ops in proptest::collection::vec(op(), 1..60)) {
        let mut program = Program::new(Options::default());
        let mut states = vec![(program.allocator.fingerprint(), program.segments())];
        for op in &ops {
            program.run(op)?;
            let state = (program.allocator.fingerprint(), program.segments());
            for (fingerprint, segments) in &states {
                prop_assert_eq!(*fingerprint == state.0, *segments == state.1);
            }
            states.push(state);
        }
    }

    #[test]
    fn equal_fingerprints_answer_alike(
        options in options(),
        past in proptest::collection::vec(op(), 1..40),
        future in proptest::collection::vec(op(), 1..40),
    ) {
        // Two programs with different histories that end with no live block.
        let mut programs = [Program::new(options.clone()), Program::new(options)];
        for op in &past {
            programs[0].run(op)?;
        }
        for block in std::mem::take(&mut programs[0].live) {
            programs[0].allocator.free(block);
        }
        programs[0].allocator.empty_cache();
        // A failed request may leave behind an expandable segment with addresses but no memory.
        prop_assume!(programs[0].allocator.fingerprint() == programs[1].allocator.fingerprint());
        for op in &future {
            for program in &mut programs {
                program.run(op)?;
            }
            prop_assert_eq!(programs[0].allocator.fingerprint(), programs[1].allocator.fingerprint());
        }
    }

    #[test]
    fn a_step_that_starts_from_the_same_layout_repeats_itself(
        options in options(),
        step in proptest::collection::vec((1..30 * MIB, any::<Index>()), 1..40),
    ) {
        let mut allocator = CachingAllocator::new(options);
        let mut run = || -> Option<(u64, Vec<u64>, u64)> {
            let before = allocator.fingerprint();
            let blocks: Vec<Block> = step.iter().map_while(|&(bytes, _)| allocator.alloc(bytes, 0).ok()).collect();
            let addresses = blocks.iter().map(|&block| allocator.address(block)).collect();
            let complete = blocks.len() == step.len();
            let mut live = blocks;
            for (_, which) in &step {
                if !live.is_empty() {
                    allocator.free(live.swap_remove(which.index(live.len())));
                }
            }
            live.into_iter().for_each(|block| allocator.free(block));
            complete.then(|| (before, addresses, allocator.fingerprint()))
        };
        let steps: Vec<_> = (0..4).map_while(|_| run()).collect();
        for pair in steps.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            prop_assert_eq!(&pair[0], &pair[1]);
        }
    }
}
