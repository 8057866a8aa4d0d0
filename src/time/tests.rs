//! Tests of the time of a step.

use std::collections::BTreeMap;

use super::*;
use vramscope_engine::setup::{Checkpointing, Freeze, Precision};
use vramscope_engine::simulate::{record, record_work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::work::{Class, HostOp, Launch, WorkItem};
use vramscope_engine::{Case, Model, Setup};

fn pace(us: &[(&str, f64)]) -> Pace {
    Pace {
        us: us
            .iter()
            .map(|(name, us)| ((*name).to_owned(), *us))
            .collect::<BTreeMap<_, _>>(),
        alone_us: BTreeMap::new(),
        sharded_us: BTreeMap::new(),
        latency_us: 5.0,
    }
}

/// `n` kernels that each move `bytes` bytes.
fn kernels(n: usize, bytes: u64) -> Vec<WorkItem> {
    let launch = Launch {
        name: "add",
        class: Class::Pointwise,
        dtype: vramscope_engine::dtype::DType::F32,
        gradient: false,
        scope: 0,
        read: bytes / 2,
        written: bytes / 2,
        extents: [0; 4],
        shared: 1,
    };
    vec![WorkItem::Launch(launch); n]
}

fn case(json: &str) -> (Model, Setup) {
    let case = Case::from_json(json).expect(json).expect("a case");
    (Model::from_case(&case).expect("it is in the catalogue"), case.setup)
}

fn own() -> Measured {
    Measured::read(H200).expect("it comes with the program")
}

fn total(model: &Model, setup: &Setup, costs: &Costs<'_>) -> f64 {
    let time = estimate(model, setup, Gpu::H200, costs).expect("it trains");
    time.step_seconds(setup)
}

#[test]
fn the_slower_line_decides() {
    let slow_host = pace(&[("pointwise", 50.0)]);
    let costs = Costs::new(Rates::REFERENCE, None, &slow_host);
    let small = span(&kernels(100, 1024), &costs);
    // The last kernel starts 5 µs after it was issued, and so does the event before the first.
    assert!((small.total - (100.0 * 50.0 + 3.8) * 1e-6).abs() < 1e-9, "{small:?}");
    let fast_host = pace(&[("pointwise", 1.0)]);
    let costs = Costs::new(Rates::REFERENCE, None, &fast_host);
    let large = span(&kernels(100, 400_000_000), &costs);
    assert!((large.total - large.busy - 1e-6).abs() < 1e-9, "{large:?}");
}

#[test]
fn the_host_is_at_most_a_queue_ahead() {
    let host = pace(&[("pointwise", 1.0)]);
    let costs = Costs::new(Rates::REFERENCE, None, &host);
    let mut work = kernels(3000, 40_000_000);
    work.extend(kernels(1, 1024));
    let kernel = costs.kernel(match &work[0] {
        WorkItem::Launch(launch) => launch,
        _ => unreachable!("they are kernels"),
    });
    assert!(span(&work, &costs).total > 3000.0 * kernel);
}

#[test]
fn what_is_repeated_takes_as_long_as_each_of_it() {
    let host = pace(&[("pointwise", 9.0), ("view", 3.0)]);
    let costs = Costs::new(Rates::REFERENCE, None, &host);
    for bytes in [1024, 400_000_000] {
        let mut round = kernels(3, bytes);
        round.extend([WorkItem::HostOp(HostOp::View), WorkItem::HostOp(HostOp::Wait)]);
        let twice = |items: &[WorkItem]| [items, items].concat();
        let inner = [kernels(1, 4096), twice(&round), kernels(1, 64)].concat();
        let each: Vec<WorkItem> = (0..700).flat_map(|_| inner.clone()).collect();
        let folded = [
            kernels(1, 4096),
            vec![WorkItem::Repeat(round.into(), 2)],
            kernels(1, 64),
        ]
        .concat();
        let folded = WorkItem::Repeat(folded.into(), 700);
        assert_eq!(folded.launches(&|_| true), 700 * 8);
        assert_eq!(span(&[folded], &costs), span(&each, &costs));
    }
}

#[test]
fn asking_for_time_changes_no_byte() {
    for json in [
        r#"{"model": "gpt2", "batch": 2, "seq": 128, "ckpt": "full", "clip": true}"#,
        r#"{"model": "qwen2.5-vl-3b", "batch": 1, "seq": 512, "grid": [16, 24], "precision": "amp-fp16"}"#,
        r#"{"model": "tinyllava-1.5b", "batch": 1, "seq": 777, "freeze": "lora", "optim": "adafactor"}"#,
    ] {
        let (model, setup) = case(json);
        let plain = record(&model, &setup, Gpu::H200);
        let timed = record_work(&model, &setup, Gpu::H200).expect("it trains");
        assert!(plain.work.forward().is_empty());
        assert!(!timed.work.forward().is_empty() && !timed.work.backward().is_empty());
        assert_eq!(plain.steady.events, timed.steady.events, "{json}");
    }
}

#[test]
fn every_window_of_an_image_has_its_attention() {
    let (model, setup) = case(r#"{"model": "qwen2.5-vl-3b", "batch": 1, "seq": 512, "grid": [16, 24]}"#);
    let recording = record_work(&model, &setup, Gpu::H200).expect("it trains");
    let count = |items: &[WorkItem], backward: bool| {
        let fused = |l: &Launch| matches!(l.class, Class::Attention(fused) if fused.backward == backward);
        items.iter().map(|item| item.launches(&fused)).sum::<u64>()
    };
    // 28 blocks with windows of 8 × 8 patches, 4 with attention over the whole image, 36 of the language model.
    let expected = 28 * 2 * 3 + 4 + 36;
    assert_eq!(count(recording.work.forward(), false), expected);
    assert_eq!(count(recording.work.backward(), true), expected);
}

#[test]
fn more_work_is_never_faster() {
    let own = own();
    let costs = Costs::new(Rates::REFERENCE, Some(&own.kernels), &own.pace);
    for json in [
        r#"{"model": "gpt2", "batch": 4, "seq": 512}"#,
        r#"{"model": "llava-1.5-7b", "batch": 2, "seq": 700}"#,
    ] {
        let (model, setup) = case(json);
        let base = total(&model, &setup, &costs);
        let changed = |change: &dyn Fn(&mut Setup)| {
            let mut other = setup.clone();
            change(&mut other);
            total(&model, &other, &costs)
        };
        assert!(changed(&|s| s.batch *= 2) >= base, "{json}: batch");
        assert!(changed(&|s| s.seq *= 2) >= base, "{json}: length");
        assert!(
            changed(&|s| s.ckpt = Checkpointing::Full) > base,
            "{json}: checkpointing"
        );
        assert!(changed(&|s| s.accum = 2) > base, "{json}: accumulation");
        assert!(changed(&|s| s.precision = Precision::Fp32) > base, "{json}: precision");
        if json.contains("llava") {
            assert!(changed(&|s| s.freeze = Freeze::VISION) <= base, "{json}: freezing");
        }
    }
}

#[test]
fn a_faster_card_is_never_slower() {
    let own = own();
    let (model, setup) = case(r#"{"model": "vit-large", "batch": 16, "seq": 0}"#);
    let slow = Rates::REFERENCE;
    let faster = Rates {
        half: slow.half * 2.0,
        bytes: slow.bytes * 2.0,
        ..slow
    };
    let time = |rates| total(&model, &setup, &Costs::new(rates, None, &own.pace));
    assert!(time(faster) <= time(slow));
}

#[test]
fn a_file_that_is_none_says_what_is_wrong() {
    let refused = |text: &str| Measured::read(text).expect_err("it is none").to_string();
    assert!(refused("{}").contains("card"), "{}", refused("{}"));
    let file = |kernels: &str| {
        format!(
            r#"{{"card": "X", "software": "Y", "host": "Z", "launch_latency_us": 5, "host_us": {{}}, "kernels_us": {kernels}}}"#
        )
    };
    assert!(refused(&file(r#"{"scale fp8": []}"#)).contains("types are bf16"));
    assert!(refused(&file(r#"{"scale bf16": [[1024, 0]]}"#)).contains("more than 0"));
    assert!(Measured::read(&file(r#"{"scale bf16": [[1024, 1.5]]}"#)).is_ok());
}
