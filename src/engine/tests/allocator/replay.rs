//! The simulator against what PyTorch recorded: every address and both peaks.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use vramscope_engine::allocator::{Action, CachingAllocator, Options, Trace};

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
