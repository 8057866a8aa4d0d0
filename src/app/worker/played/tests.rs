//! Tests of recordings in the host: replays, single changes, and the largest batch.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::fs::File;
use std::io::Read;
use std::rc::Rc;

use flate2::read::GzDecoder;
use vramscope_engine::recording::{self, Opened, Overrides, Sizes};
use vramscope_engine::units::Bytes;
use vramscope_plan::{RecordedLimits, largest_recorded};

use super::replay::Recorded;
use crate::state::{Draft, Key};
use crate::worker::batches::{LargestBatch, STEPS};
use crate::worker::protocol::Answer;
use crate::worker::recorded::{Change, Fault, RecordedAnswer, Replay};
use crate::worker::slices::Parts;

const ALL_SIZES: &str = "qwen2-4layers-bf16.sizes.gz";
const ONE: &str = "gpt2-bf16-adamw.vram.gz";

fn lines(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/recordings/");
    let mut lines = Vec::new();
    let file = File::open(format!("{folder}{name}")).expect("it is committed");
    GzDecoder::new(file).read_to_end(&mut lines).expect("gzip");
    lines
}

fn opened(name: &str) -> Rc<Recorded> {
    Rc::new(Recorded::open(Ok(lines(name))))
}

fn sizes() -> Sizes {
    match recording::open(&lines(ALL_SIZES)[..], None).expect("it is one") {
        Opened::Sizes(all) => *all,
        Opened::Run(_) => panic!("one run"),
    }
}

fn draft(pairs: &[(Key, &str)]) -> Draft {
    let mut draft = Draft::default();
    pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
    draft
}

fn play(recording: &Recorded, entries: &Draft) -> RecordedAnswer {
    match recording.play(1, entries, false).0 {
        Answer::Recorded(answer) => answer.open().expect("it was written just now"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sizes_between_recorded_ones_give_what_the_engine_says() {
    let (recording, all) = (opened(ALL_SIZES), sizes());
    for (text, point) in [("", [2, 256]), ("batch=4,seq=600", [4, 600]), ("seq=300", [2, 300])] {
        let answer = play(&recording, &draft(&[(Key::Sizes, text)]));
        let run = answer.run.expect("it is in the range");
        let expected = recording::report(all.at(&point, None).expect("it is in the range")).expect("it runs");
        assert_eq!(run.figures.steady, expected.report.steady, "{text}");
        assert_eq!(run.figures.peak_reserved, expected.report.peak_reserved, "{text}");
        let facts = answer.facts.expect("it was read");
        let names: Vec<_> = facts
            .sizes
            .iter()
            .map(|size| (&*size.name, size.first, size.between))
            .collect();
        assert_eq!(names, [("batch", 2, true), ("seq", 256, true)]);
        assert_eq!(facts.sizes[0].recorded, [2, 3, 4]);
    }
}

#[test]
fn sizes_outside_are_refused_with_the_ranges_and_the_command() {
    let recording = opened(ALL_SIZES);
    let answer = play(&recording, &draft(&[(Key::Sizes, "batch=9")]));
    assert!(
        answer.facts.is_some_and(|facts| facts.sizes.len() == 2),
        "the controls stay"
    );
    let Err(Fault::OutOfRange {
        asked,
        valid,
        between,
        command,
    }) = answer.run
    else {
        panic!("{:?}", answer.run)
    };
    assert_eq!(asked, [("batch".to_owned(), 9), ("seq".to_owned(), 256)]);
    assert_eq!(valid, [[("batch".to_owned(), [2, 4]), ("seq".to_owned(), [256, 640])]]);
    assert!(!between && command.contains("--vary batch:2,3,4,9"), "{command}");
    let unknown = play(&recording, &draft(&[(Key::Sizes, "images=2")]));
    assert_eq!(
        unknown.run,
        Err(Fault::UnknownSize("images".into(), "batch, seq".into()))
    );
}

/// The second replay for a card takes what the first read; each is what a fresh reading gives.
#[test]
fn a_recording_that_is_kept_gives_the_same_again() {
    let kept = opened(ONE);
    for (gpu, segments) in [
        ("H200", ""),
        ("H200", "true"),
        ("H100 PCIe", ""),
        ("H200", ""),
        ("H200", "true"),
    ] {
        let entries = draft(&[(Key::Gpu, gpu), (Key::ExpandableSegments, segments)]);
        let [again, fresh] = [play(&kept, &entries), play(&opened(ONE), &entries)];
        assert!(fresh.run.is_ok());
        assert_eq!(again, fresh, "{gpu} {segments}");
    }
    let other = play(&kept, &draft(&[(Key::Gpu, "RTX 4090")]));
    assert!(matches!(other.run, Err(Fault::OtherCard(..))), "{:?}", other.run);
}

fn changes(recording: &Rc<Recorded>, entries: &Draft) -> Vec<(Change, i64)> {
    let now = play(recording, entries).run.expect("it runs").figures.now();
    let mut parts = recording.clone().changes(entries, now);
    let mut all = Vec::new();
    while parts.left() > 0 {
        let Some(Answer::RecordedChange(changed)) = parts.next() else {
            panic!("one for each")
        };
        let changed = changed.open().expect("it was written just now");
        let effect = changed.effect.expect("it needs no other recording");
        assert!(effect.verdict.is_some() && changed.fit.is_some());
        all.push((changed.change, effect.difference));
    }
    all
}

/// Each difference is that of two replays.
#[test]
fn changes_are_the_differences_of_two_replays() {
    for (name, entries) in [
        (ONE, draft(&[(Key::Gpu, "H200")])),
        (
            ALL_SIZES,
            draft(&[(Key::Sizes, "batch=3,seq=640"), (Key::ExpandableSegments, "true")]),
        ),
    ] {
        let recording = opened(name);
        let reserved = |entries: &Draft| play(&recording, entries).run.expect("it runs").figures.peak_reserved;
        let before = reserved(&entries);
        let all = changes(&recording, &entries);
        for (change, difference) in &all {
            let mut after = entries.clone();
            change.apply(&mut after);
            assert_eq!(reserved(&after).difference_to(before), *difference, "{change:?}");
        }
        let has = |change: Change| all.iter().any(|(found, _)| *found == change);
        assert!(has(Change::Card("H100 NVL".into())) && !has(Change::Card("RTX 4090".into())));
        assert!(has(Change::ExpandableSegments(name == ONE)));
        let sizes: Vec<_> = all
            .iter()
            .filter(|(change, _)| matches!(change, Change::Size(..)))
            .collect();
        match name {
            ONE => assert!(sizes.is_empty()),
            _ => {
                let values =
                    [("batch", 2), ("batch", 4), ("seq", 320)].map(|(name, value)| Change::Size(name.into(), value));
                assert!(values.iter().eq(sizes.iter().map(|(change, _)| change)), "{sizes:?}");
            }
        }
    }
}

#[test]
fn the_largest_batch_is_what_the_engine_finds() {
    let (recording, all) = (opened(ALL_SIZES), sizes());
    for gib in ["4", "6.3", "40"] {
        let entries = draft(&[(Key::Sizes, "batch=3,seq=512"), (Key::LimitGib, gib)]);
        play(&recording, &entries).run.expect("it runs");
        let mut parts = recording.clone().batches(&entries);
        let mut last = None;
        while parts.left() > 0 {
            let Some(Answer::Batches(news)) = parts.next() else {
                panic!("news are told")
            };
            last = news.open();
        }
        let Some(LargestBatch::Found(found)) = last else {
            panic!("{last:?}")
        };
        let limit = Bytes::new((gib.parse::<f64>().expect("a number") * f64::from(1 << 30)) as u64);
        let limits = RecordedLimits {
            gpu: None,
            overrides: Overrides::default(),
            limit,
            steps: STEPS,
        };
        let wanted = largest_recorded(&all, (0, &[3, 512]), limits).expect("it is valid");
        assert_eq!((found.batch, found.limit), (wanted.value.unwrap_or_default(), limit));
        assert_eq!(found.stop.is_some(), found.batch < 4, "{found:?}");
        let recorded = found.recorded.expect("it is of a recording");
        assert_eq!((recorded.range, recorded.command), (wanted.range, wanted.beyond));
    }
}
