//! Recordings: read and played, those of all sizes at their first point and beyond.

use vramscope_engine::recording::{self, Opened, RecordedRun};

/// Reads and plays an input; whether it was a recording.
pub fn feed(input: &[u8]) -> bool {
    match recording::open(input, None) {
        Ok(Opened::Run(run)) => played(*run),
        Ok(Opened::Sizes(all)) => {
            let first = all.first().to_vec();
            let beyond: Vec<u64> = first.iter().map(|size| size.saturating_mul(1000)).collect();
            let error = all.at(&beyond, None).err();
            assert!(error.is_none_or(|error| !error.to_string().is_empty()));
            all.at(&first, None).is_ok_and(played)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn played(run: RecordedRun) -> bool {
    recording::report(run).is_ok_and(|played| {
        assert_eq!(played.report.breakdown.bytes, played.report.peak_allocated);
        true
    })
}
