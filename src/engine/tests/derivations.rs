//! Tests that every number shown by a frontend equals the value of its formula, for any simulation.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, json};
use vramscope_engine::device::Device;
use vramscope_engine::report::derivation::{Formula, Quantity, Subject, Term};
use vramscope_engine::simulate::{Passed, evaluate, generate};
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Room};
use vramscope_engine::{Case, Model, Report, Setup, simulate_on};

/// One small model of each family.
const MODELS: [&str; 22] = [
    "gpt2",
    "qwen2.5-0.5b",
    "Qwen/Qwen3-0.6B",
    "google/gemma-2-2b",
    "google/gemma-3-1b-pt",
    "facebook/opt-125m",
    "microsoft/phi-1_5",
    "microsoft/Phi-4-mini-instruct",
    "llava-1.5-7b",
    "llava-hf/llava-v1.6-vicuna-7b-hf",
    "paligemma-3b",
    "gemma3-4b",
    "qwen2-vl-2b",
    "qwen2.5-vl-3b",
    "qwen3-vl-2b",
    "internvl3-1b",
    "smolvlm-256m",
    "mllama",
    "blip2-2.7b",
    "clip-l",
    "google/siglip-base-patch16-224",
    "videomae-base",
];

fn cases() -> impl Strategy<Value = Case> {
    let sizes = (1..3u64, select(vec![1088u64, 1501, 3000]), 1..3u64);
    let types = (
        select(vec!["fp32", "bf16", "amp-bf16", "amp-fp16"]),
        select(vec![
            "adamw",
            "adamw_fused",
            "sgdm",
            "adafactor",
            "adamw_8bit",
            "paged_adamw",
        ]),
        select(vec!["none", "vision", "all-but-connector", "lora", "qlora"]),
    );
    let rest = (
        select(vec!["none", "full"]),
        select(vec!["sdpa", "eager"]),
        select(vec!["to_none", "to_zero"]),
        any::<[bool; 2]>(),
    );
    (select(&MODELS[..]), sizes, types, rest).prop_map(|(model, sizes, types, rest)| {
        let (batch, seq, accum) = sizes;
        let (precision, optim, freeze) = types;
        let (ckpt, attn, zero_grad, [clip, ema]) = rest;
        let row = json!({
            "model": model, "batch": batch, "seq": seq, "accum": accum, "precision": precision, "optim": optim,
            "freeze": freeze, "ckpt": ckpt, "attn": attn, "zero_grad": zero_grad, "clip": clip, "ema": ema,
        });
        Case::from_json(&row.to_string())
            .expect("it is a case")
            .expect("it names a model")
    })
}

/// Numbers that the page shows of a run, with their exact values.
fn shown(report: &Report, fit: &Fit) -> Vec<(Quantity, u64)> {
    use Quantity as Q;
    let phases = report.timeline.phases().iter().map(|(phase, _)| *phase);
    let phases = phases.map(|phase| (Q::PhasePeak(phase), report.steady.peak_of(phase).get()));
    let mut shown: Vec<_> = phases.collect();
    shown.extend([
        (Q::PeakAllocated, report.peak_allocated.get()),
        (Q::PeakReserved, report.peak_reserved.get()),
        (Q::Reserve, report.fragmentation.get()),
        (Q::OutsideTorch, fit.outside_torch().get()),
        (Q::Needed, fit.needed.get()),
        (Q::Room, fit.room.get()),
        (Q::Params, report.params),
        (Q::Trainable, report.trainable),
    ]);
    shown.push(match fit.needed > fit.room {
        true => (Q::Short, fit.short().get()),
        false => (Q::Spare, fit.spare().get()),
    });
    shown.extend(fit.outside.iter().map(|t| (Q::Outside(t.name), t.bytes.get())));
    let kinds = report.by_kind().into_iter().filter(|(_, bytes)| bytes.get() > 0);
    shown.extend(kinds.map(|(kind, bytes): (Kind, _)| (Q::Kind(kind), bytes.get())));
    let timeline = &report.timeline;
    for instant in [0, timeline.len() / 2, timeline.peak_instant()] {
        shown.push((Q::Live(instant), timeline.total_at(instant).1.get()));
        let largest = timeline.largest_at(instant, 7).into_iter().enumerate();
        shown.extend(largest.map(|(place, tensor)| (Q::Tensor(instant, place), tensor.bytes.get())));
    }
    rows(&report.breakdown, &mut Vec::new(), &mut shown);
    shown
}

fn rows(node: &vramscope_engine::report::BreakdownNode, path: &mut Vec<String>, shown: &mut Vec<(Quantity, u64)>) {
    for child in &node.children {
        path.push(child.name.clone());
        shown.push((Quantity::Row(path.clone()), child.bytes.get()));
        rows(child, path, shown);
        path.pop();
    }
}

/// Follows a formula recursively into the formulas of its numbers.
fn follow(subject: Subject<'_>, of: &Quantity, value: u64, seen: &mut HashSet<Quantity>) -> Result<(), String> {
    let derivation = subject
        .derivation(of)
        .ok_or_else(|| format!("{of:?} has no derivation"))?;
    let result = derivation.formula.value();
    if result != value {
        return Err(format!(
            "{of:?} is {value}, but comes to {result}: {:?}",
            derivation.formula
        ));
    }
    if seen.insert(of.clone()) {
        for (inner, value) in numbers(&derivation.formula) {
            follow(subject, &inner, value, seen)?;
        }
    }
    Ok(())
}

fn numbers(formula: &Formula) -> Vec<(Quantity, u64)> {
    match formula {
        Formula::Number(Term::Of(quantity), n) => vec![(quantity.clone(), *n)],
        Formula::Number(..) => Vec::new(),
        Formula::Sum(parts) | Formula::Product(parts) | Formula::Highest(parts) => {
            parts.iter().flat_map(numbers).collect()
        }
        Formula::Difference(of) => of.iter().flat_map(numbers).collect(),
        Formula::RoundedUp(of, _) => numbers(of),
    }
}

/// Follows the formulas of all numbers of a report, with the run in the given memory.
fn follow_all(
    case: &Case,
    model: &Model,
    report: &Report,
    room: Room<'_>,
    more: &[(Quantity, u64)],
) -> Result<(), String> {
    let fit = Fit::of(report, room);
    let subject = Subject {
        model,
        setup: &case.setup,
        report,
        room: Some((room, &fit)),
    };
    let mut seen = HashSet::new();
    for (quantity, value) in shown(report, &fit).iter().chain(more) {
        follow(subject, quantity, *value, &mut seen)?;
    }
    Ok(())
}

fn check(case: &Case, card: &str) -> Result<bool, String> {
    let model = Model::from_case(case).map_err(|e| e.to_string())?;
    let device = Device::by_name(card).map_err(|e| e.to_string())?;
    // A setup that cannot run shows no numbers.
    let Ok(report) = simulate_on(&model, &case.setup, device.gpu().unwrap_or_default()) else {
        return Ok(false);
    };
    follow_all(case, &model, &report, Room::Card(device), &[])?;
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_number_is_what_its_formula_comes_to(case in cases(), card in select(vec!["H200", "RTX 4060", "MI300X"])) {
        prop_assert_eq!(check(&case, card).err(), None, "{:?}", case);
    }
}

#[test]
fn every_family_shows_numbers_that_add_up() {
    for model in MODELS {
        let learned = Model::from_catalogue(model).expect("it is known").learned_positions();
        let case = Case {
            model: model.into(),
            shape: Map::new(),
            setup: Setup {
                seq: learned.unwrap_or(3000),
                ..Setup::default()
            },
            limit_gib: None,
            parallel: None,
        };
        assert_eq!(check(&case, "RTX 4090"), Ok(true), "{model}");
    }
}

fn of(name: &str, setup: Setup) -> (Model, Case) {
    let case = Case {
        model: name.into(),
        shape: Map::new(),
        setup,
        limit_gib: None,
        parallel: None,
    };
    (Model::from_case(&case).expect("it is in the catalogue"), case)
}

#[test]
fn numbers_of_evaluation_and_generation_come_about_too() {
    let card = Device::by_name("RTX 4090").expect("it is known");
    for name in ["gpt2", "google/gemma-3-1b-pt", "tinyllava-1.5b", "qwen2.5-vl-3b"] {
        let setup = Setup {
            seq: 1000,
            use_cache: Some(true),
            ..Setup::default()
        };
        let (model, case) = of(name, setup);
        let gpu = card.gpu().unwrap_or_default();
        let passes = [
            evaluate(&model, &case.setup, gpu).expect("it runs"),
            generate(&model, &case.setup, 20, gpu).expect("it generates"),
        ];
        for Passed { figures, report } in passes {
            assert_eq!(report.peak_allocated, figures.peak_allocated, "{name}");
            assert_eq!(
                report.timeline.total_at(report.timeline.peak_instant()).1,
                figures.peak_allocated
            );
            assert!(figures.cache.get() > 0, "{name}");
            let own = [
                (Quantity::AfterModel, figures.after_model.get()),
                (Quantity::WithOutputs, figures.with_outputs.get()),
                (Quantity::Cache, figures.cache.get()),
            ];
            // An allocator limit is tested like a card.
            for room in [Room::Card(card), Room::Allocator(Bytes::gib(7))] {
                assert_eq!(follow_all(&case, &model, &report, room, &own), Ok(()), "{name}");
            }
        }
    }
}

#[test]
fn a_change_is_the_difference_of_two_reserved_peaks_each_of_which_opens() {
    let gpu = vramscope_engine::tape::Gpu::default();
    let batch = |batch| Setup {
        batch,
        seq: 256,
        ..Setup::default()
    };
    let (model, case) = of("gpt2", batch(1));
    let [now, then] = [1, 8].map(|n| simulate_on(&model, &batch(n), gpu).expect("it runs"));
    let subject = |report| Subject {
        model: &model,
        setup: &case.setup,
        report,
        room: None,
    };
    let difference = then.peak_reserved.get() - now.peak_reserved.get();
    for [run, changed] in [[&now, &then], [&then, &now]] {
        let derived = |of: &Quantity| {
            subject(run)
                .derivation_beside(subject(changed), of)
                .expect("it is explained")
        };
        let change = derived(&Quantity::Change).formula;
        assert_eq!(change.value(), difference);
        for (of, value) in numbers(&change) {
            assert_eq!(derived(&of).formula.value(), value, "{of:?}");
        }
        // Terms of the changed run refer to the changed run all the way down.
        let peak = derived(&Quantity::Changed(Box::new(Quantity::PeakAllocated)));
        assert_eq!(peak.formula.value(), changed.peak_allocated.get());
        let terms = numbers(&peak.formula);
        assert!(!terms.is_empty() && terms.iter().all(|(of, n)| derived(of).formula.value() == *n));
    }
}

#[test]
fn what_the_model_runs_is_counted() {
    let model = Model::from_catalogue("llava-1.5-7b").expect("it is in the catalogue");
    let mut setup = Setup {
        batch: 2,
        seq: 2048,
        images: 2,
        ..Setup::default()
    };
    let value = |setup: &Setup, quantity: Quantity| {
        let report = simulate_on(&model, setup, vramscope_engine::tape::Gpu::default()).expect("it runs");
        let subject = Subject {
            model: &model,
            setup,
            report: &report,
            room: None,
        };
        subject.derivation(&quantity).map(|d| d.formula.value())
    };
    assert_eq!(value(&setup, Quantity::Positions), Some(2 * 2048));
    // 336 pixels in patches of 14.
    assert_eq!(value(&setup, Quantity::ImageTokens), Some(2 * 24 * 24));
    // 32064 words in bf16.
    assert_eq!(value(&setup, Quantity::Logits), Some(2 * 2048 * 32_064 * 2));
    assert_eq!(value(&setup, Quantity::Needed), None);
    setup.lengths = vec![1500, 1200, 1300];
    assert_eq!(value(&setup, Quantity::Positions), Some(3 * 1500));
}
