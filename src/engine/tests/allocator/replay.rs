//! Tests of the simulator against PyTorch's recordings: every address and both peaks.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use proptest::prelude::*;
use vramscope_engine::allocator::{Action, CachingAllocator, Event, Options, Trace};

fn traces() -> Vec<(PathBuf, Trace)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/traces");
    let paths: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 6);
    paths.into_iter().map(|path| (path.clone(), trace(&path))).collect()
}

fn trace(path: &Path) -> Trace {
    let mut json = Vec::new();
    GzDecoder::new(File::open(path).unwrap())
        .read_to_end(&mut json)
        .unwrap();
    Trace::from_json(&json).unwrap()
}

#[test]
fn every_recorded_address_and_both_peaks_come_out_exactly() {
    for (path, trace) in traces() {
        let allocs = trace
            .events
            .iter()
            .filter(|event| event.action == Action::Alloc)
            .count();
        let replayed = trace.replay();
        assert_eq!(replayed.address_mismatches, 0, "{path:?}");
        assert_eq!(Some(replayed.allocated_peak), trace.allocated_peak, "{path:?}");
        assert_eq!(Some(replayed.reserved_peak), trace.reserved_peak, "{path:?}");
        assert_eq!(replayed.allocs, allocs as u64, "{path:?}");
    }
}

#[test]
fn both_peaks_come_out_exactly_with_segments_where_the_simulated_driver_puts_them() {
    for (path, trace) in traces() {
        let mut allocator = CachingAllocator::new(Options::default());
        let mut live = HashMap::new();
        for event in trace.events {
            match event.action {
                Action::Alloc => _ = live.insert(event.address, allocator.alloc(event.size, 0).unwrap()),
                Action::FreeCompleted => allocator.free(live.remove(&event.address).unwrap()),
                _ => {}
            }
        }
        assert_eq!(Some(allocator.peak_allocated()), trace.allocated_peak, "{path:?}");
        assert_eq!(Some(allocator.peak_reserved()), trace.reserved_peak, "{path:?}");
    }
}

const MIB: u64 = 1 << 20;

/// Replays events of stream 0, each `[action, address, bytes]` in MiB.
fn replay_mib(events: &[(Action, u64, u64)]) -> (u64, u64, u64) {
    let event = |&(action, address, size)| Event {
        action,
        address: address * MIB,
        size: size * MIB,
        stream: 0,
    };
    let trace = Trace {
        events: events.iter().map(event).collect(),
        ..Trace::default()
    };
    let replayed = trace.replay();
    (
        replayed.allocated_peak.get() / MIB,
        replayed.reserved_peak.get() / MIB,
        replayed.address_mismatches,
    )
}

#[test]
fn an_expandable_segment_is_mapped_and_unmapped_as_recorded() {
    use Action::{Alloc, FreeCompleted, FreeRequested, SegmentMap, SegmentUnmap};
    let events = [
        (SegmentMap, 1000, 40),
        (Alloc, 1000, 30),
        (Alloc, 1030, 10),
        (FreeRequested, 1000, 30),
        (FreeCompleted, 1000, 30),
        (SegmentUnmap, 1000, 20),
        (SegmentMap, 1000, 20),
        (Alloc, 1000, 25),
    ];
    assert_eq!(replay_mib(&events), (40, 40, 0));
    let without_unmap: Vec<_> = events.into_iter().filter(|event| event.0 != SegmentUnmap).collect();
    assert_eq!(replay_mib(&without_unmap).2, 1);
}

#[test]
fn a_segment_that_was_given_back_is_gone() {
    use Action::{Alloc, FreeCompleted, FreeRequested, SegmentAlloc, SegmentFree};
    let events = [
        (SegmentAlloc, 100, 30),
        (Alloc, 100, 30),
        (FreeRequested, 100, 30),
        (FreeCompleted, 100, 30),
        (SegmentFree, 100, 30),
        (SegmentAlloc, 200, 40),
        (Alloc, 200, 40),
    ];
    assert_eq!(replay_mib(&events), (40, 40, 0));
    assert_eq!(replay_mib(&[(SegmentFree, 100, 30)]).2, 1);
}

#[test]
fn a_block_in_use_by_another_stream_is_not_handed_out() {
    use Action::{Alloc, FreeCompleted, FreeRequested, SegmentAlloc};
    let events = [
        (SegmentAlloc, 100, 30),
        (Alloc, 100, 30),
        (FreeRequested, 100, 30),
        (SegmentAlloc, 200, 30),
        (Alloc, 200, 30),
        (FreeCompleted, 100, 30),
        (Alloc, 100, 30),
    ];
    assert_eq!(replay_mib(&events), (60, 60, 0));
}

proptest! {
    #[test]
    fn no_sequence_of_events_is_too_broken_to_replay(
        events in proptest::collection::vec((0..8_usize, address(), address(), 0_u64..3), 1..60),
    ) {
        use Action::{Alloc, FreeCompleted, FreeRequested, Oom, SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap};
        let actions = [Alloc, FreeRequested, FreeCompleted, SegmentAlloc, SegmentFree, SegmentMap, SegmentUnmap, Oom];
        let allocs = events.iter().filter(|event| event.0 == 0).count();
        let event = |(action, address, size, stream)| Event { action: actions[action], address, size, stream };
        let trace = Trace { events: events.into_iter().map(event).collect(), ..Trace::default() };
        prop_assert_eq!(trace.replay().allocs, allocs as u64);
    }
}

/// Addresses few enough to collide, and the ends of the range.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0_u64..4).prop_map(|n| n * 20 * MIB),
        2 => (0_u64..9).prop_map(|n| n * 512),
        1 => prop_oneof![Just(u64::MAX), Just(1 << 62), Just(u64::MAX / 512 * 512)],
    ]
}
