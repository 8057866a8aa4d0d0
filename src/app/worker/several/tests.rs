//! Tests of runs that several GPUs share.

use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::setup::{Offload, Setting};
use vramscope_engine::simulate::Unshared;
use vramscope_engine::verdict::{Fit, Room};

use super::*;
use crate::worker::Ask;
use crate::worker::host::Host;
use crate::worker::lazy::{LoadedChunks, Need, derive_or_export};
use crate::worker::protocol::{Order, Reply, Slot};
use crate::worker::slices::Kept;

fn entries(pairs: &[(Key, &str)]) -> Draft {
    let mut draft = Draft::default();
    draft.set(Key::Model, "gpt2");
    draft.set(Setting::Seq, "256");
    pairs.iter().for_each(|(key, text)| draft.set(*key, *text));
    draft
}

fn every(entries: &Draft) -> Vec<OnNumber> {
    let mut work = NumbersWork::of(entries);
    std::iter::from_fn(|| work.next())
        .map(|answer| match answer {
            Answer::OnNumber(number) => number.open().expect("it is read back"),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn numbers(entries: &Draft) -> Vec<OnNumber> {
    let mut all = every(entries);
    all.retain(|on| on.other.is_none());
    all
}

fn strategies(entries: &Draft) -> Vec<Offered> {
    match StrategiesWork::of(entries).next() {
        Some(Answer::Strategies(all)) => all.open().expect("they are read back"),
        other => panic!("{other:?}"),
    }
}

/// The host simulates what the engine does for the same strategy, and holds the fit against one of the cards.
#[test]
fn a_run_is_of_one_of_the_gpus() {
    for strategy in [Strategy::Ddp, Strategy::Zero1, Strategy::Fsdp, Strategy::Deepspeed2] {
        let entered = entries(&[
            (Key::World, "4"),
            (Key::Strategy, strategy.name()),
            (Key::Gpu, "RTX 4090"),
        ]);
        let subject = Subject::read(&entered).expect("it is read");
        let ran = subject.run().expect("it runs");
        let parallel = Parallel {
            strategy,
            world: 4,
            ..Parallel::default()
        };
        let setup = &subject.reading.setup;
        let wanted = simulate_parallel(&subject.model, setup, &parallel, subject.gpu()).expect("it runs");
        assert_eq!(ran.report.peak_allocated, wanted.peak_allocated);
        assert_eq!(ran.report.peak_reserved, wanted.peak_reserved);
        let card = subject.card(&ran.report).expect("it is known");
        let device = subject.device.clone().expect("it is known");
        assert_eq!((card.gpus, card.fit), (4, Fit::of_each(&wanted, Room::Card(device), 4)));
    }
}

/// Numbers explain themselves for one of several GPUs too: each derivation comes to the number that is shown.
#[test]
fn numbers_are_derived_for_each_strategy() {
    for strategy in Strategy::ALL {
        let entered = entries(&[
            (Key::Model, "llama3.2-1b"),
            (Key::World, "2"),
            (Key::Strategy, strategy.name()),
            (Setting::Accum.into(), if strategy.is_pipeline() { "2" } else { "1" }),
        ]);
        let subject = Subject::read(&entered).expect("it is read");
        let Ok(ran) = subject.run() else { continue };
        let card = subject.card(&ran.report).expect("it is known");
        let kept = Kept {
            id: 1,
            subject: Some(subject),
            recorded: None,
            ran,
            card: Some(card.clone()),
        };
        let report = &kept.ran.report;
        let value = |quantity: Quantity| {
            let ask = Ask::Derive {
                run: 1,
                changed: None,
                quantity: Coded::of(&quantity),
            };
            match derive_or_export(&kept, &ask) {
                Some(Answer::Derivation(found)) => found.open().map(|found| found.formula.value()),
                other => panic!("{strategy:?}: {quantity:?}: {other:?}"),
            }
        };
        for (quantity, shown) in [
            (Quantity::PeakAllocated, report.peak_allocated.get()),
            (Quantity::PeakReserved, report.peak_reserved.get()),
            (Quantity::OutsideTorch, card.fit.outside_torch().get()),
            (Quantity::Needed, card.fit.needed.get()),
            (Quantity::Params, report.params),
            (Quantity::Trainable, report.trainable),
        ] {
            assert_eq!(value(quantity.clone()), Some(shown), "{strategy:?}: {quantity:?}");
        }
    }
}

#[test]
fn a_setup_is_shown_on_a_few_numbers_of_gpus() {
    let all = numbers(&entries(&[]));
    assert_eq!(all.iter().map(|on| on.gpus).collect::<Vec<_>>(), [1, 2, 4, 8]);
    let needed: Vec<_> = all
        .iter()
        .map(|on| on.found.as_ref().expect("it runs").figures.peak_allocated)
        .collect();
    assert!(
        needed.is_sorted_by(|more, less| more > less),
        "FSDP2 shards: {needed:?}"
    );
    assert_eq!(all[0].entries, entries(&[]));
    assert_eq!(all[3].entries, entries(&[(Key::World, "8")]));
    for on in &all {
        assert_eq!(on.found, crate::worker::summary(&on.entries));
    }
}

/// A setup that FSDP2 does not take is shown with the next strategy that takes it.
#[test]
fn one_gpu_is_shown_with_a_strategy_that_takes_it() {
    let all = numbers(&entries(&[(Setting::Ema.into(), "true")]));
    assert_eq!(all[1].entries.get(Key::Strategy), "zero1");
    assert!(all.iter().all(|on| on.found.is_ok()));
    let none = numbers(&entries(&[(Setting::Compile.into(), "true")]));
    assert!(none[0].found.is_ok() && none[1].found.is_err());
    assert_eq!(numbers(&entries(&[(Key::Phase, "evaluate")])), []);
    assert_eq!(numbers(&entries(&[(Key::Model, "gpt9")])), []);
}

/// On several GPUs every strategy that the setup can take is shown for as many of them.
#[test]
fn other_strategies_are_shown_on_as_many_gpus() {
    assert!(
        every(&entries(&[])).iter().all(|on| on.other.is_none()),
        "one GPU has none"
    );
    let chosen = entries(&[(Key::World, "4"), (Key::Strategy, "zero1")]);
    let subject = Subject::read(&chosen).expect("it is read");
    let parallel = subject.reading.parallel.expect("several");
    let can = |strategy: &Strategy| {
        let parallel = Parallel {
            strategy: *strategy,
            world: 4,
            ..Parallel::default()
        };
        *strategy != parallel_of(&chosen) && can_train(&subject.model, &subject.reading.setup, &parallel).is_ok()
    };
    let others: Vec<OnNumber> = every(&chosen).into_iter().filter(|on| on.other.is_some()).collect();
    let shown: Vec<Strategy> = others.iter().filter_map(|on| on.other).collect();
    assert_eq!(shown, Strategy::ALL.iter().copied().filter(can).collect::<Vec<_>>());
    assert!(shown.len() > 3 && parallel.world == 4, "{shown:?}");
    for on in &others {
        assert_eq!((on.gpus, parallel_of(&on.entries)), (4, on.other.expect("another")));
        assert_eq!(on.found, crate::worker::summary(&on.entries));
    }
}

fn parallel_of(entries: &Draft) -> Strategy {
    let parallel = Subject::read(entries).expect("it is read").reading.parallel;
    parallel.expect("several").strategy
}

#[test]
fn what_was_chosen_stays_on_every_number() {
    let chosen = [
        (Key::World, "16"),
        (Key::Strategy, "deepspeed2"),
        (Key::Offload, "optimizer"),
    ];
    let all = numbers(&entries(&chosen));
    assert_eq!(all.iter().map(|on| on.gpus).collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
    assert_eq!(all[4].entries, entries(&chosen));
    assert_eq!(all[0].entries, entries(&chosen[1..]));
    assert_eq!(numbers(&all[0].entries)[2], all[2], "the way back");
    let shared = Subject::read(&all[2].entries).expect("it is read").reading.parallel;
    let wanted = Parallel {
        strategy: Strategy::Deepspeed2,
        world: 4,
        offload: Offload::Optimizer,
        ..Parallel::default()
    };
    assert_eq!(shared, Some(wanted));
}

/// What is offered runs, and what is not is refused with the same reason.
#[test]
fn strategies_are_offered_as_they_run() {
    let setups: [&[(Key, &str)]; 4] = [
        &[],
        &[(Setting::Clip.into(), "true")],
        &[(Setting::Freeze.into(), "lora"), (Key::Model, "qwen2.5-0.5b")],
        &[(Setting::Accum.into(), "4"), (Key::Model, "llama3.2-1b")],
    ];
    for setup in setups {
        let mut entered = entries(setup);
        entered.set(Key::World, "4");
        let all = strategies(&entered);
        assert_eq!(all.len(), Strategy::ALL.len());
        assert!(all.iter().any(|offered| offered.refusal.is_none()), "{setup:?}");
        for offered in all {
            entered.set(Key::Strategy, offered.strategy.name());
            let ran = Subject::read(&entered).expect("it is read").run();
            let refused = ran.err().map(|why| why.to_string());
            // Of a run that is refused, ways out are tried, and named behind the reason.
            match (offered.refusal, refused) {
                (Some(offered), Some(refused)) => {
                    assert!(refused.starts_with(&offered.to_string()), "{setup:?}: {refused}")
                }
                (offered, refused) => assert!(offered.is_none() && refused.is_none(), "{setup:?}: {refused:?}"),
            }
        }
    }
    assert!(StrategiesWork::of(&entries(&[(Key::Model, "gpt9")])).next().is_none());
}

/// Words for a reason are found by its code, and filled with its values in the order of their names.
#[test]
fn every_reason_has_its_words() {
    let locales = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("locales");
    let phrases = vramscope_phrases::read(&locales).expect("the page's phrases");
    let words: Vec<_> = phrases.iter().filter(|phrase| phrase.subject == "unshared").collect();
    assert_eq!(words.len(), Unshared::ALL.len());
    for (phrase, (code, args)) in words.iter().zip(Unshared::ALL) {
        let mut gaps = args.to_vec();
        gaps.push("message");
        gaps.sort_unstable();
        assert_eq!(
            (phrase.key.as_str(), &phrase.gaps[..]),
            (*code, &gaps.iter().map(|gap| gap.to_string()).collect::<Vec<_>>()[..])
        );
    }
}

/// A first visit waits for no code of several GPUs, and a run that they share does.
#[test]
fn the_chunk_is_fetched_for_several_alone() {
    let mut host = Host::default();
    let mut ask = |slot, ask| host.take(Order::Ask { id: 1, slot, ask });
    let mut chunks = LoadedChunks::all();
    chunks.several = None;
    ask(Slot::Run, Ask::Run(entries(&[])));
    ask(Slot::Setups, Ask::Setups(vec![entries(&[(Key::World, "2")])]));
    host.receive(chunks);
    assert_eq!(host.need(), Some(Need::Several), "of the comparison");
    assert!(matches!(
        host.step(),
        Some(Reply::Answered {
            slot: Slot::Run,
            answer: Some(_),
            ..
        })
    ));
    host.take(Order::Ask {
        id: 2,
        slot: Slot::Run,
        ask: Ask::Run(entries(&[(Key::World, "2")])),
    });
    assert!(host.step().is_none() && !host.is_busy());
    host.receive(LoadedChunks::all());
    assert!(matches!(
        host.step(),
        Some(Reply::Answered {
            id: 2,
            answer: Some(_),
            ..
        })
    ));
}
