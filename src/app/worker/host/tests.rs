//! Tests of the host: order of answers, cancellation, chunks.

use super::*;
use crate::state::{Draft, Key};
use crate::worker::{Coded, TimeEntries};
use vramscope_engine::model::LazyGroup;
use vramscope_engine::report::StepBytes;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::setup::{Change, Setting, Setup, Targets};
use vramscope_engine::units::Bytes;
use vramscope_plan::Now;
use vramscope_time::Resource;

fn draft(pairs: &[(Key, &str)]) -> Draft {
    let mut draft = Draft::default();
    draft.set(Key::Model, "gpt2");
    for (key, text) in pairs {
        draft.set(*key, *text);
    }
    draft
}

/// A host with all lazily loaded chunks present.
fn host() -> Host {
    Host {
        chunks: LoadedChunks::all(),
        ..Host::default()
    }
}

fn ask(id: u32, slot: Slot, ask: Ask) -> Order {
    Order::Ask { id, slot, ask }
}

/// Runs the remaining work and returns ids and answers.
fn finish(host: &mut Host) -> Vec<(u32, Option<Answer>)> {
    std::iter::from_fn(|| host.step())
        .map(|reply| match reply {
            Reply::Answered { id, answer, .. } => (id, answer.map(|a| sent(*a))),
            Reply::Fault(what) => panic!("{what}"),
        })
        .collect()
}

/// An answer as it arrives: postcard reads fields by their order alone, so that none may be left out.
fn sent(answer: Answer) -> Answer {
    let bytes = postcard::to_allocvec(&answer).expect("plain data");
    let arrived = postcard::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    assert_eq!(answer, arrived);
    arrived
}

#[test]
fn a_newer_question_of_a_slot_takes_the_place_of_the_older() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
    host.take(ask(2, Slot::Run, Ask::Run(draft(&[(Setting::Batch.into(), "2")]))));
    let answers = finish(&mut host);
    let [(2, Some(Answer::Run(Ok(run))))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(run.id, 2);
    assert!(!host.is_busy());
}

#[test]
fn a_cancelled_question_is_not_answered() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
    host.take(Order::Cancel(Slot::Run));
    assert_eq!(finish(&mut host), []);
}

fn progress(reply: Option<Reply>) -> (u32, Progress) {
    match reply {
        Some(Reply::Answered { id, progress, .. }) => (id, progress),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_comes_before_the_rest_of_longer_work_which_says_how_far_it_is() {
    let mut host = host();
    let now = Now {
        reserved: Bytes::ZERO,
        steady: StepBytes::default(),
    };
    let entries = draft(&[(Setting::Seq.into(), "64")]);
    host.take(ask(1, Slot::WhatIf, Ask::WhatIf { entries, now }));
    let (id, first) = progress(host.step());
    assert!(id == 1 && first.done == 1 && first.of > 20, "{first:?}");
    host.take(ask(2, Slot::Run, Ask::Run(draft(&[]))));
    assert_eq!(progress(host.step()), (2, Progress { done: 1, of: 1 }));
    let rest: Vec<_> = std::iter::from_fn(|| host.step()).map(|r| progress(Some(r))).collect();
    let counted = (2..=first.of).map(|done| (1, Progress { done, of: first.of }));
    assert!(rest.into_iter().eq(counted));
}

#[test]
fn setups_side_by_side_come_in_order_and_one_that_cannot_run_says_why() {
    let mut host = host();
    let all = vec![
        draft(&[]),
        draft(&[(Setting::Batch.into(), "0")]),
        draft(&[(Setting::Batch.into(), "2")]),
    ];
    host.take(ask(1, Slot::Setups, Ask::Setups(all)));
    let peaks: Vec<_> = finish(&mut host)
        .into_iter()
        .map(|(_, answer)| match answer {
            Some(Answer::Setup(setup)) => setup.map(|s| s.figures.peak_allocated).map_err(|_| "refused"),
            other => panic!("{other:?}"),
        })
        .collect();
    let [Ok(one), Err("refused"), Ok(two)] = peaks[..] else {
        panic!("{peaks:?}")
    };
    assert!(one < two, "two samples hold more than one");
}

#[test]
fn an_instant_is_of_the_run_that_it_names() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
    host.take(ask(1, Slot::Details, Ask::Details { run: 1 }));
    let Some((_, Some(Answer::Details(details)))) = finish(&mut host).pop() else {
        panic!("gpt2 runs")
    };
    let instant = details.curve.peak;
    host.take(ask(2, Slot::Instant, Ask::Live { run: 1, instant }));
    assert_eq!(finish(&mut host), [(2, Some(Answer::Live(details.at_peak)))]);
    host.take(ask(3, Slot::Run, Ask::Run(draft(&[]))));
    host.take(ask(4, Slot::Instant, Ask::Live { run: 1, instant }));
    assert_eq!(finish(&mut host).pop(), Some((4, None)), "run 1 is no more");
}

#[test]
fn a_number_is_explained_for_the_run_that_it_is_of() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
    let Some((_, Some(Answer::Run(Ok(run))))) = finish(&mut host).pop() else {
        panic!("gpt2 runs")
    };
    let derive = |run| Ask::Derive {
        run,
        changed: None,
        quantity: Coded::of(&Quantity::PeakAllocated),
    };
    host.take(ask(2, Slot::Derivation, derive(1)));
    let Some((2, Some(Answer::Derivation(found)))) = finish(&mut host).pop() else {
        panic!("it is explained")
    };
    let found = found.open().expect("it was written just now");
    assert_eq!(found.formula.value(), run.figures.peak_allocated.get());
    host.take(ask(3, Slot::Derivation, derive(9)));
    assert_eq!(finish(&mut host), [(3, None)]);
}

#[test]
fn the_time_of_a_run_comes_first_without_and_then_with_what_it_waits_for() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[(Key::Gpu, "H200")]))));
    finish(&mut host);
    let mut entered = Draft::default();
    entered.set(Key::Samples, "1000");
    entered.set(Key::Data, "decode=900,workers=1");
    let time = |run| Ask::Time {
        run,
        entries: TimeEntries {
            entered: entered.clone(),
            card: None,
        },
    };
    host.take(ask(2, Slot::Time, time(1)));
    let told: Vec<_> = finish(&mut host)
        .into_iter()
        .filter_map(|(_, answer)| match answer? {
            Answer::Time(timing) => Some(timing.open().expect("it was written just now").expect("it is known")),
            other => panic!("{other:?}"),
        })
        .collect();
    let [first, whole] = &told[..] else { panic!("{told:?}") };
    assert!(first.bottlenecks.is_none() && first.step_ms > 0.0);
    let [low, high] = first.range_ms.expect("its spread is known");
    assert!(low < first.step_ms && first.step_ms < high);
    let waits = whole.bottlenecks.as_ref().expect("it comes with the second");
    assert_eq!(waits[0].resource, Resource::Data);
    assert!((whole.interval_ms - 900.0).abs() < 1.0 && whole.wait_ms() > 0.0);
    assert_eq!(whole.bill.map(|bill| bill.samples), Some(1000));
    let phases: f64 = whole.phases.iter().sum();
    assert!((phases / whole.step_ms - 1.0).abs() < 1e-9);
    host.take(ask(3, Slot::Time, time(7)));
    assert_eq!(finish(&mut host), [(3, None)], "there is no such run");
}

#[test]
fn what_comes_later_is_waited_for_while_other_work_goes_on() {
    let mut host = Host::default();
    host.take(ask(1, Slot::Sweep, Ask::Sweep(draft(&[]))));
    assert!(!host.is_busy() && host.need() == Some(Need::Sweep));
    let decoder = draft(&[(Key::Model, "qwen2.5-0.5b"), (Setting::Seq.into(), "64")]);
    host.take(ask(2, Slot::Run, Ask::Run(decoder)));
    assert_eq!(progress(host.step()).0, 2);
    assert_eq!(host.step(), None);
    host.receive(LoadedChunks::all());
    assert!(host.is_busy() && host.need().is_none());
    assert_eq!(progress(host.step()).0, 1);
}

#[test]
fn a_run_of_a_further_family_waits_for_its_code() {
    let mut host = Host::default();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[]))));
    assert_eq!((host.step(), host.need()), (None, Some(Need::Models(LazyGroup::Text))));
    host.receive(LoadedChunks::all());
    assert_eq!(progress(host.step()).0, 1);
    let mut host = Host::default();
    host.take(ask(2, Slot::Run, Ask::Run(draft(&[(Key::Model, "qwen2.5-0.5b")]))));
    assert_eq!(
        progress(host.step()).0,
        2,
        "the decoders of Llama's line are there from the start"
    );
}

#[test]
fn what_cannot_be_had_is_answered_with_nothing() {
    let mut host = Host::default();
    host.take(ask(1, Slot::Attention, Ask::Attention(draft(&[]))));
    let Some(Reply::Answered {
        id: 1,
        answer: None,
        progress,
        ..
    }) = host.give_up(Need::Attention)
    else {
        panic!("it is given up")
    };
    assert!(progress.is_complete() && host.need().is_none());
}

#[test]
fn a_model_that_does_not_train_takes_less() {
    let mut host = host();
    let mut peak = |phase| {
        host.take(ask(
            1,
            Slot::Run,
            Ask::Run(draft(&[(Key::Model, "qwen2.5-0.5b"), (Key::Phase, phase)])),
        ));
        match finish(&mut host).pop() {
            Some((1, Some(Answer::Run(Ok(run))))) => run.figures.peak_allocated,
            other => panic!("{other:?}"),
        }
    };
    let [train, evaluate, generate] = ["train", "evaluate", "generate"].map(&mut peak);
    assert!(evaluate < train && generate < train);
}

#[test]
fn a_model_that_cannot_be_read_is_refused_in_the_engines_words() {
    let mut host = host();
    host.take(ask(1, Slot::Run, Ask::Run(draft(&[(Key::Model, "gpt9")]))));
    let answers = finish(&mut host);
    let [(1, Some(Answer::Run(Err(Refusal::Model(message)))))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(message.contains("gpt9"), "{message}");
}

#[test]
fn a_run_crosses_over_unchanged() {
    let mut host = host();
    host.take(ask(7, Slot::Run, Ask::Run(draft(&[(Key::Gpu, "RTX 4090")]))));
    host.take(ask(8, Slot::Details, Ask::Details { run: 7 }));
    for reply in std::iter::from_fn(|| host.step()) {
        let bytes = postcard::to_allocvec(&reply).expect("it is plain data");
        assert_eq!(postcard::from_bytes::<Reply>(&bytes).expect("it is read back"), reply);
    }
}

#[test]
fn every_change_crosses_over_unchanged() {
    let named = Targets::parse("q_proj,v_proj").expect("they are names");
    let values = Setting::ALL.iter().flat_map(|setting| setting.every());
    let defaults = Setting::ALL.iter().map(|setting| setting.of(&Setup::default()));
    for change in values.chain(defaults).chain([Change::LoraTargets(named)]) {
        let bytes = postcard::to_allocvec(&change).expect("it is plain data");
        let arrived = postcard::from_bytes::<Change>(&bytes);
        assert_eq!(arrived.as_ref(), Ok(&change), "{change:?}");
    }
}

#[test]
fn orders_cross_over_unchanged() {
    let mut entered = draft(&[]);
    for key in Key::all() {
        entered.set(key, "任意 text");
    }
    for order in [ask(3, Slot::Run, Ask::Run(entered)), Order::Cancel(Slot::Instant)] {
        let bytes = postcard::to_allocvec(&order).expect("it is plain data");
        assert_eq!(postcard::from_bytes::<Order>(&bytes).expect("it is read back"), order);
    }
}
