use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use crate::units::Bytes;

/// A whole snapshot of two training steps of GPT-2, as PyTorch 2.11 wrote it.
fn recorded() -> Vec<u8> {
    let gzipped: &[u8] = include_bytes!("../../../../tests/data/snapshots/gpt2-bf16.pickle.gz");
    let mut bytes = Vec::new();
    GzDecoder::new(gzipped).read_to_end(&mut bytes).expect("gzip");
    bytes
}

#[test]
fn a_recorded_snapshot_replays_exactly() {
    let snapshot = Snapshot::from_pickle(&recorded()).expect("PyTorch wrote it");
    assert_eq!(snapshot.devices.len(), 1);
    let replay = snapshot.devices[0].replay();
    assert_eq!((replay.allocs, replay.address_mismatches), (2376, 0));
    // As the same run's JSON trace has them.
    assert_eq!(replay.allocated_peak, Bytes::new(2_013_018_112));
    assert_eq!(replay.reserved_peak, Bytes::new(2_227_175_424));
}

/// Every cut of a real file ends in a message, never in a panic.
#[test]
fn a_cut_snapshot_is_refused() {
    let whole = recorded();
    for len in (0..whole.len()).step_by(997) {
        assert!(Snapshot::from_pickle(&whole[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_damaged_snapshot_is_read_or_refused() {
    let whole = recorded();
    for at in (0..whole.len()).step_by(4999) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        if let Ok(snapshot) = Snapshot::from_pickle(&damaged) {
            assert!(snapshot.devices.iter().map(|d| d.events.len()).sum::<usize>() <= whole.len());
        }
    }
}

fn refusal(bytes: &[u8]) -> String {
    Snapshot::from_pickle(bytes).expect_err("no snapshot").to_string()
}

#[test]
fn what_is_no_snapshot_is_said() {
    assert!(refusal(b"\x80\x04].").contains("no `device_traces`"));
    assert!(refusal(b"}\x8c\x0ddevice_tracesK\x01s.").contains("no `device_traces`"));
    let with_event = |event: &[u8]| [b"}\x8c\x0ddevice_traces]]", event, b"aas."].concat();
    assert!(refusal(&with_event(b"N")).contains("event 0 is not a dictionary"));
    assert!(refusal(&with_event(b"}")).contains("event 0 has no `action`"));
    assert!(refusal(&with_event(b"}\x8c\x06action\x8c\x05allocs")).contains("has no `addr`"));
    assert!(refusal(&with_event(b"}\x8c\x06action\x8c\x04leaks")).contains("unknown action `leak`"));
}

/// One list of events, listed for a thousand devices.
#[test]
fn one_list_in_many_places_is_refused() {
    let event = b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x00\x8c\x04sizeK\x01\x8c\x06streamK\x00u";
    let mut bytes = b"}\x8c\x0ddevice_traces](](".to_vec();
    (0..100).for_each(|_| bytes.extend(event));
    bytes.extend(b"e\x94");
    (0..1000).for_each(|_| bytes.extend(b"h\x00"));
    bytes.extend(b"es.");
    assert_eq!(refusal(&bytes), SnapshotError::Repeated.to_string());
}
