//! Places that show the same figure have the same one: the run itself, a setup that is compared, a point of the sweep, a
//! change that is tried, and both sides of a difference.

use proptest::prelude::*;
use proptest::sample::select;
use vramscope_engine::device::Device;
use vramscope_engine::setup::Setting;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::simulate_on;
use vramscope_engine::verdict::{Fit, Room};

use super::difference::difference;
use super::protocol::{Answer, Tested};
use super::run::Subject;
use super::setups::summary;
use super::slices::Parts;
use super::sweep::SweepWork;
use super::what_if::WhatIfWork;
use crate::state::{Draft, Key};

fn entries() -> impl Strategy<Value = Draft> {
    let words = (
        select(&["gpt2", "qwen2.5-0.5b", "smolvlm-256m"]),
        select(&["RTX 4060", "RTX 4090", "H100 SXM"]),
        select(&["none", "lora", "vision"]),
        select(&["none", "full"]),
        select(&["fp32", "amp-bf16", "bf16"]),
        select(&["", "0.3"]),
        select(&["", "4"]),
        select(&["", "2"]),
    );
    (words, 1_u64..5).prop_map(|((model, card, freeze, ckpt, precision, share, limit, world), batch)| {
        let is_text = model != "smolvlm-256m";
        let mut draft = Draft::default();
        draft.set(Key::Model, model);
        draft.set(Key::Gpu, card);
        draft.set(
            Setting::Freeze,
            if is_text && freeze == "vision" { "none" } else { freeze },
        );
        draft.set(Setting::Ckpt, ckpt);
        draft.set(Setting::Precision, precision);
        draft.set(Key::VllmShare, share);
        draft.set(Key::LimitGib, limit);
        draft.set(Key::World, world);
        draft.set(Setting::Batch, batch.to_string());
        draft.set(Setting::Seq, if is_text { "128" } else { "320" });
        draft
    })
}

fn all(work: &mut dyn Parts) -> Vec<Answer> {
    let mut out = Vec::new();
    while work.left() > 0 {
        out.extend(work.next());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn a_figure_is_the_same_wherever_it_is_shown(draft in entries()) {
        let Ok(subject) = Subject::read(&draft) else {
            return Ok(());
        };
        let Ok(ran) = subject.run() else {
            return Ok(());
        };
        let shown = subject.run_view(1, &ran);
        let card = shown.card.clone().expect("a card is named");
        // What the command line says of the same case.
        let (setup, parallel) = (&subject.reading.setup, subject.reading.parallel.as_ref());
        let report = match parallel {
            None => simulate_on(&subject.model, setup, subject.gpu()),
            Some(parallel) => simulate_parallel(&subject.model, setup, parallel, subject.gpu()),
        };
        let report = report.expect("it runs");
        let device = Device::by_name(draft.get(Key::Gpu)).expect("it is known");
        let share = draft.get(Key::VllmShare).parse().ok();
        let room = Room::limited(device, subject.reading.limit).beside_vllm(share);
        let gpus = parallel.map_or(1, |parallel| parallel.world);
        prop_assert_eq!(&card.fit, &Fit::of_each(&report, room, gpus));
        // A setup that is compared, and one side of a difference.
        let compared = summary(&draft).expect("it runs");
        prop_assert_eq!((&compared.figures, &compared.card), (&shown.figures, &shown.card));
        let both = all(&mut *difference(&[draft.clone(), draft.clone()]));
        for answer in both {
            if let Answer::Difference(both) = answer {
                let both = both.open().expect("it is read");
                for side in both.sides {
                    prop_assert_eq!(side.expect("it runs").card, shown.card.clone());
                }
            }
        }
        // The sweep at the batch that is entered.
        let mut points = 0;
        for answer in all(&mut SweepWork::of(&draft)) {
            if let Answer::Point(point) = answer {
                let point = point.open().expect("it is read");
                if point.value == setup.batch {
                    points += 1;
                    prop_assert_eq!(point.outcome.expect("it runs").needed, card.fit.needed);
                }
            }
        }
        prop_assert_eq!(points, 1);
        // A change that is tried, entered.
        let tried = all(&mut WhatIfWork::of(&draft, shown.figures.now()));
        let runs = tried.into_iter().filter_map(|answer| match answer {
            Answer::Tried(tested) => {
                let Tested { tried, run } = *tested;
                run.map(|run| (tried, run))
            }
            _ => None,
        });
        for (tried, run) in runs.take(3) {
            let mut entered = draft.clone();
            let setting = tried.change.setting();
            let changed = tried.change.apply(setup);
            entered.set(setting, setting.of(&changed).text());
            let then = summary(&entered).expect("it runs");
            prop_assert_eq!(&then.card, &run.card, "{:?}", tried.change);
            let effect = tried.effect.expect("it ran");
            prop_assert_eq!(effect.verdict, then.card.ok().map(|card| card.fit.verdict));
        }
    }
}
