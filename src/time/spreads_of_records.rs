//! Holds the spreads that come with the program against the measurements that they follow from.

use std::collections::BTreeMap;

use crate::carry::Carry;
use crate::kernels::{Kernels, sized};
use crate::kinds::{Location, location_of};
use crate::of_record::{Point, named, points};
use crate::rates::{Rates, flops};
use crate::spread::{KernelSpread, Spreads};
use crate::tally::{LABELS, kind};
use vramscope_benchmark::Record;
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::work::{Class, Launch};

const RECORDS: [&str; 3] = [
    include_str!("../../tests/data/records/h200.json"),
    include_str!("../../tests/data/records/h100.json"),
    include_str!("../../tests/data/time/record_h100.json"),
];

/// Errors by kind of kernel.
#[derive(Default)]
struct Errors(BTreeMap<&'static str, Vec<f64>>);

/// Shortest kernel that counts, in seconds: about what a host takes to issue an operation. Shorter ones hide behind it.
const SHORTEST: f64 = 10e-6;

/// Fewest kernels from which a spread is taken.
const FEWEST: usize = 12;

impl Errors {
    fn push(&mut self, label: &'static str, told: f64, measured: f64) {
        if measured < SHORTEST {
            return;
        }
        let error = off(told, measured);
        self.0.entry(label).or_default().push(error);
        self.0.entry("all").or_default().push(error);
    }

    /// The distance within which 68% of the kernels lie; of all kernels if there are few of this kind.
    fn spread(&self, label: &str) -> f64 {
        let of = self.0.get(label).filter(|errors| errors.len() >= FEWEST);
        let mut errors = of.unwrap_or(&self.0["all"]).clone();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() * 68 / 100]
    }
}

/// Share by which the longer of two times is longer.
fn off(told: f64, measured: f64) -> f64 {
    (told / measured).max(measured / told) - 1.0
}

/// Label of the kernels with this name in files of measured kernels.
fn label(name: &str, dtype: DType, extents: &[u64]) -> Option<&'static str> {
    let class = match location_of(name, dtype, extents) {
        Location::Field { class, .. } => class,
        Location::Curve(name, _) => match name.as_str() {
            "to_host" | "to_device" => return None,
            "cat" | "gather" | "masked_scatter" => Class::Cat,
            "embedding_bw" => Class::EmbeddingBackward,
            "nll" => Class::Nll,
            "foreach" | "fused_adamw" | "foreach_norm" => Class::Foreach,
            _ => Class::Pointwise,
        },
    };
    Some(LABELS[kind(class)])
}

fn records() -> [Record; 3] {
    RECORDS.map(|text| Record::read(text).expect("a record"))
}

/// Errors of each point told from nine tenths of the others.
fn between(points: &[Point]) -> Errors {
    const PARTS: usize = 10;
    let mut errors = Errors::default();
    for part in 0..PARTS {
        let mut others = Kernels::default();
        let (left, kept): (Vec<_>, Vec<_>) = points.iter().enumerate().partition(|(i, _)| i % PARTS == part);
        for (_, (name, dtype, extents, seconds)) in kept {
            others.add(name, *dtype, extents, *seconds);
        }
        for (_, (name, dtype, extents, seconds)) in left {
            let told = others.named(name, *dtype, extents);
            if let (Some(label), Some(told)) = (label(name, *dtype, extents), told) {
                errors.push(label, told, *seconds);
            }
        }
    }
    errors
}

/// Kernels that both records hold: label, a launch of that many operations and bytes, seconds in each.
fn pairs(one: &Record, other: &Record) -> Vec<(&'static str, Launch, [f64; 2])> {
    let of_other: BTreeMap<String, f64> = other
        .results
        .iter()
        .filter_map(|result| Some((format!("{:?}", result.kernel), result.time()?.get())))
        .collect();
    let mut out = Vec::new();
    for result in &one.results {
        let seconds = result.time().map(|time| time.get());
        let both = seconds.zip(of_other.get(&format!("{:?}", result.kernel)).copied());
        let (Some((a, b)), Some((name, dtype, extents))) = (both, named(&result.kernel).into_iter().next()) else {
            continue;
        };
        let Some(label) = label(name, dtype, &extents) else {
            continue;
        };
        let launch = match location_of(name, dtype, &extents) {
            Location::Field { class, extents, shared } => sized(class, dtype, extents, shared),
            Location::Curve(..) => sized(Class::Pointwise, dtype, [0; 4], 1),
        };
        let launch = Launch {
            read: result.bytes.unwrap_or(0),
            written: 0,
            ..launch
        };
        out.push((label, launch, [a, b]));
    }
    out
}

fn rates(card: &str) -> Rates {
    Rates::of(Device::by_name(card).expect("it is known")).expect("its data sheet states them")
}

/// Spreads of kernels as the measurements say today.
fn today() -> BTreeMap<String, KernelSpread> {
    let [h200, h100, later] = records();
    let (mut repeated, mut carried, mut published) = (Errors::default(), Errors::default(), Errors::default());
    for (label, _, [a, b]) in pairs(&h100, &later) {
        repeated.push(label, a, b);
    }
    let carry = Carry {
        from: rates("H200"),
        to: rates("H100"),
    };
    for record in [&h100, &later] {
        for (label, launch, [a, b]) in pairs(&h200, record) {
            carried.push(label, carry.kernel(&launch, a), b);
        }
    }
    for (label, launch, [a, _]) in pairs(&h200, &h100) {
        published.push(label, carry.from.time(&launch), a);
    }
    let between = between(&points(&h200));
    let round = |x: f64| (x * 1e3).round() / 1e3;
    let of = |label: &str| KernelSpread {
        between: round(between.spread(label)),
        repeated: round(repeated.spread(label)),
        carried: round(carried.spread(label)),
        published: round(published.spread(label)),
    };
    LABELS
        .iter()
        .copied()
        .chain(["all"])
        .map(|label| (label.to_owned(), of(label)))
        .collect()
}

#[test]
fn spreads_of_kernels_are_those_of_the_records() {
    let today = today();
    let lines: Vec<String> = today
        .iter()
        .map(|(label, s)| {
            format!(
                "\"{label}\": {{\"between\": {}, \"repeated\": {}, \"carried\": {}, \"published\": {}}}",
                s.between, s.repeated, s.carried, s.published
            )
        })
        .collect();
    assert_eq!(
        Spreads::get().kernels,
        today,
        "measured/spreads.json should say\n{}",
        lines.join(",\n")
    );
}

#[test]
fn another_card_s_kernels_are_told_from_both_data_sheets() {
    let [h200, h100, _] = records();
    for (one, other, cards) in [(&h200, &h100, ["H200", "H100"]), (&h100, &h200, ["H100", "H200"])] {
        let carry = Carry {
            from: rates(cards[0]),
            to: rates(cards[1]),
        };
        let (mut products, mut others, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for (_, launch, [a, b]) in pairs(one, other) {
            let error = off(carry.kernel(&launch, a), b);
            if flops(&launch) > 0.0 {
                &mut products
            } else {
                &mut others
            }
            .push(error);
            before.push(off(carry.to.time(&launch), b));
        }
        let [products, others, before] = [products, others, before].map(|mut errors| {
            errors.sort_by(f64::total_cmp);
            errors[errors.len() / 2]
        });
        assert!(
            products < 0.04 && others < 0.06 && before > 0.1,
            "{cards:?}: {products} {others} {before}"
        );
    }
}

#[test]
fn a_kernel_is_carried_to_its_own_card_unchanged_and_to_a_slower_one_never_faster() {
    let [h200, h100, _] = records();
    let (fast, slow) = (rates("H200"), rates("A100 80GB SXM"));
    for (_, launch, [a, _]) in pairs(&h200, &h100) {
        let to = |to| Carry { from: fast, to }.kernel(&launch, a);
        // What a record says of bytes is at least what memory moves at its full rate.
        assert!(
            (to(fast) / a - 1.0).abs() < 1e-9 || flops(&launch) > 0.0,
            "{launch:?} {a}"
        );
        assert!(to(slow) >= a * (1.0 - 1e-9), "{launch:?} {a}");
    }
}
