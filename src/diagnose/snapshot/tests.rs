//! Tests of reading memory snapshots.

use std::io::Read;

use flate2::read::GzDecoder;

use super::*;
use vramscope_engine::allocator::Action;
use vramscope_engine::units::Bytes;

/// A whole snapshot of two training steps of GPT-2, written by PyTorch 2.11.
fn recorded() -> Vec<u8> {
    let gzipped: &[u8] = include_bytes!("../../../tests/data/snapshots/gpt2-bf16.pickle.gz");
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
    // Values from the JSON trace of the same run.
    assert_eq!(replay.allocated_peak, Bytes::new(2_013_018_112));
    assert_eq!(replay.reserved_peak, Bytes::new(2_227_175_424));
}

/// A real file truncated at any point gives an error, never a panic.
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

/// One list of events that occurs for a thousand devices.
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

/// A snapshot of events given as action, address, bytes and the function on the stack.
fn snapshot(events: &[(Action, u64, u64, &str)]) -> Snapshot {
    let text = |text: &str| [&[0x8c, text.len() as u8], text.as_bytes()].concat();
    let number = |value: u64| [&[0x8a, 9][..], &value.to_le_bytes(), &[0]].concat();
    let mut bytes = b"}(".to_vec();
    bytes.extend(text("device_traces"));
    bytes.extend(b"]](");
    for (action, address, size, function) in events {
        let name = format!("{action:?}");
        // `FreeRequested` is `free_requested`.
        let snake: String = name
            .char_indices()
            .flat_map(|(i, c)| {
                let gap = (i > 0 && c.is_ascii_uppercase()).then_some('_');
                gap.into_iter().chain([c.to_ascii_lowercase()])
            })
            .collect();
        bytes.extend(b"}(");
        for (key, value) in [
            ("action", text(&snake)),
            ("addr", number(*address)),
            ("size", number(*size)),
            ("stream", number(0)),
        ] {
            bytes.extend(text(key));
            bytes.extend(value);
        }
        bytes.extend(text("frames"));
        bytes.extend(b"]");
        if !function.is_empty() {
            let (file, name) = function.split_once(':').unwrap_or(("model.py", function));
            bytes.extend(b"}(");
            for (key, value) in [("filename", text(file)), ("name", text(name)), ("line", number(7))] {
                bytes.extend(text(key));
                bytes.extend(value);
            }
            bytes.extend(b"ua");
        }
        bytes.extend(b"u");
    }
    bytes.extend(b"eau.");
    Snapshot::from_pickle(&bytes).unwrap_or_else(|error| panic!("{error}"))
}

const MIB: u64 = 1 << 20;

/// A step with each part: weights are created, forward keeps one activation and drops another, backward creates a
/// gradient and the optimizer a state; then the next step begins.
#[test]
fn categories_follow_from_stacks_and_lifetimes() {
    use Action::{Alloc, FreeCompleted};
    let snapshot = snapshot(&[
        (Alloc, 1 << 32, 10 * MIB, "model.py:__init__"),
        (Alloc, 2 << 32, 20 * MIB, "model.py:forward"),
        (Alloc, 3 << 32, 30 * MIB, "model.py:forward"),
        (FreeCompleted, 3 << 32, 30 * MIB, ""),
        (Alloc, 6 << 32, 2 * MIB, "model.py:forward"),
        (Alloc, 4 << 32, 10 * MIB, ""),
        (Alloc, 7 << 32, 3 * MIB, ""),
        (FreeCompleted, 2 << 32, 20 * MIB, ""),
        (FreeCompleted, 6 << 32, 2 * MIB, ""),
        (Alloc, 5 << 32, 40 * MIB, "/x/torch/optim/adam.py:_init_group"),
        (FreeCompleted, 4 << 32, 10 * MIB, ""),
        (FreeCompleted, 7 << 32, 3 * MIB, ""),
        (Alloc, 8 << 32, 20 * MIB, "model.py:forward"),
    ]);
    let summary = &snapshot.clone().summaries()[0];
    let allocations = Allocations::of(&snapshot, 0);
    let categories: Vec<Category> = allocations.list.iter().map(|a| a.category).collect();
    use Category::{Activation, Gradient, OptimizerState, Temporary, Weight};
    assert_eq!(
        categories,
        [
            Weight,
            Activation,
            Temporary,
            Activation,
            Gradient,
            Gradient,
            OptimizerState,
            Activation
        ]
    );
    assert!(summary.is_from_start && summary.has_stacks);
    assert_eq!((summary.peak, summary.peak_event), (Bytes::mib(70), 12));
    assert_eq!(summary.steps, [Bytes::mib(50)]);
    // A column also includes the memory that is live when its span begins.
    let totals: Vec<u64> = summary
        .columns
        .iter()
        .map(|c| c.iter().map(|b| b.get() / MIB).sum())
        .collect();
    assert_eq!(totals, [10, 30, 60, 60, 32, 42, 45, 45, 25, 63, 63, 53, 70]);
    let few: Vec<u64> = allocations
        .columns(4)
        .iter()
        .map(|c| c.iter().map(|b| b.get() / MIB).sum())
        .collect();
    assert_eq!(few, [60, 45, 63, 70]);
}

/// Blocks of 6 MiB that are freed alternately leave holes that cannot serve a request of 200 MiB; expandable segments
/// can remap their pages.
#[test]
fn expandable_segments_would_have_saved_a_fragmented_run() {
    let at = |i: u64| (i + 1) << 32;
    let mut events: Vec<_> = (0..60)
        .map(|i| (Action::Alloc, at(i), 30 * MIB, "model.py:forward"))
        .collect();
    events.extend((0..60).step_by(2).map(|i| (Action::FreeCompleted, at(i), 30 * MIB, "")));
    events.extend((60..90).map(|i| (Action::Alloc, at(i), 25 * MIB, "model.py:forward")));
    let played = snapshot(&events).summaries()[0].expandable.expect("it can be played");
    assert!(played.expandable <= played.reserved, "{played:?}");
    assert_eq!(played.serves, None);
    // 100 MiB are free on the device: too little for 200 MiB, unless the holes count.
    events.truncate(90);
    events.push((Action::Oom, 100 * MIB, 200 * MIB, ""));
    let mut failed = snapshot(&events);
    failed.segments = (0..60)
        .map(|i| Segment {
            address: at(i),
            size: Bytes::mib(30),
            device: 0,
            stream: 0,
            is_expandable: false,
            blocks: vec![Block {
                address: at(i),
                size: Bytes::mib(30),
                is_live: i % 2 == 1,
                stack: StackId::EMPTY,
            }],
        })
        .collect();
    let summary = &failed.clone().summaries()[0];
    assert_eq!(summary.failure.map(|failure| failure.request), Some(Bytes::mib(200)));
    assert_eq!(summary.expandable.and_then(|played| played.serves), Some(true));
    assert_eq!(
        (summary.holes.live, summary.holes.empty),
        (Bytes::mib(900), Bytes::mib(900))
    );
}

/// A ring buffer that started late: memory that is freed without having been allocated is older than the recording.
#[test]
fn what_is_older_than_the_recording_counts_from_its_start() {
    let snapshot = snapshot(&[
        (Action::Alloc, 1 << 32, 10 * MIB, "model.py:forward"),
        (Action::FreeRequested, 2 << 32, 30 * MIB, ""),
        (Action::FreeCompleted, 2 << 32, 30 * MIB, ""),
    ]);
    let summary = &snapshot.clone().summaries()[0];
    assert!(!summary.is_from_start);
    assert_eq!(summary.peak, Bytes::mib(40));
    assert_eq!(summary.at_peak[0], (Category::Before, Bytes::mib(30)));
}

#[test]
fn sizes_that_no_device_holds_are_refused() {
    let text = |text: &str| [&[0x8c, text.len() as u8], text.as_bytes()].concat();
    let mut bytes = b"}\x8c\x0ddevice_traces]](}(".to_vec();
    for (key, value) in [
        ("action", text("alloc")),
        ("addr", b"K\x01".to_vec()),
        ("stream", b"K\x00".to_vec()),
    ] {
        bytes.extend(text(key));
        bytes.extend(value);
    }
    bytes.extend(text("size"));
    bytes.extend(b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40ueas.");
    assert!(refusal(&bytes).contains("no device holds"), "{}", refusal(&bytes));
}

/// At every zoom the maximum is the same, and so are the first and last values.
#[test]
fn a_recording_shows_the_same_at_every_zoom() {
    let (pieces, recordings) = crate::read_to_look_at(&recorded()).expect("PyTorch wrote it");
    let crate::Evidence::Snapshot(summary) = &pieces[0].evidence else {
        panic!()
    };
    let recording = &recordings[0];
    let total = |column: &[u64]| column.iter().sum::<u64>();
    let highest = |by, most| {
        let columns = recording.columns(by, 0..recording.events(), most);
        columns.iter().map(|column| total(column)).max()
    };
    for most in [3, 11, 200, 6000] {
        assert_eq!(highest(By::Category, most), Some(summary.peak.get()), "{most} columns");
        assert_eq!(highest(By::Frame, most), Some(summary.peak.get()), "{most} columns");
    }
    // At one event per column, each column equals the live memory at its event, wherever the view begins.
    for begin in [0, 255, 256, 3001] {
        let columns = recording.columns(By::Category, begin..begin + 40, 40);
        for (event, column) in (begin..).zip(&columns) {
            let instant = recording.instant(event);
            assert_eq!(total(column), instant.total.get(), "event {event}");
            assert_eq!(column[4], instant.by_category[4].get(), "event {event}");
        }
    }
    let peak = recording.instant(summary.peak_event);
    assert_eq!((peak.total, &peak.largest[0]), (summary.peak, &summary.largest[0]));
    assert!(
        recording
            .frames()
            .iter()
            .any(|frame| frame.contains("modeling_gpt2.py")),
        "{:?}",
        recording.frames()
    );
    let (segments, count) = recording.segments(5);
    assert!(segments.len() <= 5 && count as u64 == summary.holes.segments);
    assert!(
        segments
            .iter()
            .all(|s| s.held.iter().all(|[at, len]| *len > 0 && at + len <= 1000))
    );
}
