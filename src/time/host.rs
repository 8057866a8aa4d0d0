//! Scales the host's pace that comes with the program to a host that `vramscope bench` measured.
//!
//! What an operation takes in a real model needs models to be timed, minutes of them, with transformers. A benchmark
//! record has probes instead, which take seconds and PyTorch alone. On one host both were measured
//! (`measured/host_probes.json`); the ratio of a record's probes to that host's, kind by kind of work, times the ratio of
//! that host's pace to the one that comes with the program, is the factor by which the latter is scaled.

use std::collections::BTreeMap;

use serde::Deserialize;
use vramscope_benchmark::Host;

use super::pace::Pace;

/// Probes and pace of one host, an hour apart at most.
const REFERENCE: &str = include_str!("measured/host_probes.json");

#[derive(Deserialize)]
struct Reference {
    /// Microseconds of each probe (`vramscope.pace`).
    probes_us: BTreeMap<String, f64>,
    /// Microseconds of each operation in models (`tests/data/time/host_pace.py`).
    pace_us: BTreeMap<String, f64>,
}

/// Kinds of a host's work. Hosts differ by kind: Python's interpreter, PyTorch's dispatcher, autograd's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Issuing an operation in forward.
    Dispatch,
    /// Autograd's nodes and the operations that they issue.
    Gradient,
    /// Modules, hooks and other Python around operations.
    Python,
    /// Updates of optimizers, clipping.
    Update,
    /// Waiting for the device.
    Wait,
}

impl Kind {
    /// Kind of a probe or of an operation of the pace; `None` for memory traffic of an offloaded update, which no probe
    /// measures.
    fn of(name: &str) -> Option<Self> {
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
        Some(match name {
            _ if name.contains("host element") => return None,
            "wait" | "latency" => Self::Wait,
            "python" | "module" | "forward" | "pack" => Self::Python,
            _ if begins(&["fsdp", "ddp", "deepspeed", "shared map", "zero parameter"]) => Self::Python,
            "node" | "freed node" | "accumulate" | "backward" | "unpack" | "copy into a part" => Self::Gradient,
            _ if ends(&[" gradient"]) => Self::Gradient,
            _ if ends(&[" matrix", " vector", " step"]) => Self::Update,
            _ => Self::Dispatch,
        })
    }
}

impl Pace {
    /// The pace of a measured host: this pace, scaled kind by kind. A kind that the host has no probe of keeps its pace.
    #[must_use]
    pub fn on(&self, host: &Host) -> Self {
        // The file comes with the program and is read by a test.
        let Ok(reference) = serde_json::from_str::<Reference>(REFERENCE) else {
            return self.clone();
        };
        let mut here = ratios(&host.us, &reference.probes_us);
        if here.is_empty() {
            here = processor_alone(host, &reference);
        }
        let there = ratios(&reference.pace_us, &self.us);
        // Probes tell the pace of the moments in which they ran, and steps take that of all moments.
        let since = host.drift().map_or(1.0, |drift| drift.since_probes);
        let factor = |name: &str| {
            let kind = Kind::of(name)?;
            Some(here.get(&kind)? * there.get(&kind).unwrap_or(&1.0) * since)
        };
        let scaled = |us: &BTreeMap<String, f64>| {
            let each = us
                .iter()
                .map(|(name, us)| (name.clone(), us * factor(name).unwrap_or(1.0)));
            each.collect()
        };
        Self {
            us: scaled(&self.us),
            alone_us: scaled(&self.alone_us),
            sharded_us: scaled(&self.sharded_us),
            latency_us: self.latency_us * factor("latency").unwrap_or(1.0),
        }
    }
}

/// The ratio of the processors' speeds, for every kind of work: all that is known of a host without PyTorch.
fn processor_alone(host: &Host, reference: &Reference) -> BTreeMap<Kind, f64> {
    let us = |probes: &BTreeMap<String, f64>| probes.get(Host::PROCESSOR).copied().filter(|us| *us > 0.0);
    let ratio = us(&host.us)
        .zip(us(&reference.probes_us))
        .map(|(here, there)| here / there);
    let kinds = reference.pace_us.keys().filter_map(|name| Kind::of(name));
    ratio
        .into_iter()
        .flat_map(|ratio| kinds.clone().map(move |kind| (kind, ratio)))
        .collect()
}

/// Median ratio of what both have, for each kind. What a whole update takes beside its parameters is the small
/// difference of two large times, and counts for nothing here.
fn ratios(ours: &BTreeMap<String, f64>, theirs: &BTreeMap<String, f64>) -> BTreeMap<Kind, f64> {
    let mut all: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for (name, us) in ours
        .iter()
        .filter(|(name, _)| !name.ends_with(" step") && *name != Host::PROCESSOR)
    {
        let other = theirs.get(name).copied().unwrap_or(0.0);
        if let Some(kind) = Kind::of(name).filter(|_| other > 0.0 && *us > 0.0) {
            all.entry(kind).or_default().push(us / other);
        }
    }
    let median = |mut ratios: Vec<f64>| {
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    all.into_iter().map(|(kind, ratios)| (kind, median(ratios))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{H200, Measured};

    fn own() -> Pace {
        Measured::read(H200).expect("it comes with the program").pace
    }

    fn reference() -> Reference {
        serde_json::from_str(REFERENCE).expect("it comes with the program")
    }

    /// Changes of the one host that a record followed.
    fn followed() -> vramscope_benchmark::Drift {
        let text = include_str!("../../tests/data/time/record_h100_later.json");
        let record = vramscope_benchmark::Record::read(text).expect("a record");
        record.host.and_then(|host| host.drift()).expect("it was followed")
    }

    fn host(factor: impl Fn(&str) -> f64) -> Host {
        let us = reference().probes_us.into_iter();
        Host {
            us: us.map(|(name, us)| (name.clone(), us * factor(&name))).collect(),
            ..Host::default()
        }
    }

    #[test]
    fn a_host_that_is_twice_as_slow_takes_twice_as_long() {
        let (once, twice) = (own().on(&host(|_| 1.0)), own().on(&host(|_| 2.0)));
        for (name, us) in &once.us {
            let factor = if Kind::of(name).is_some() { 2.0 } else { 1.0 };
            assert!((twice.us[name] / us - factor).abs() < 1e-9 || *us == 0.0, "{name}");
        }
        assert!((twice.latency_us / once.latency_us - 2.0).abs() < 1e-9);
    }

    #[test]
    fn kinds_are_scaled_apart() {
        let python = |name: &str| if Kind::of(name) == Some(Kind::Python) { 3.0 } else { 1.0 };
        let (once, slow) = (own().on(&host(|_| 1.0)), own().on(&host(python)));
        assert!((slow.us["module"] / once.us["module"] - 3.0).abs() < 1e-9);
        assert_eq!(slow.us["matmul"], once.us["matmul"]);
        assert_eq!(slow.us["matmul gradient"], once.us["matmul gradient"]);
    }

    #[test]
    fn every_operation_of_the_pace_has_a_kind_with_a_probe() {
        let probes = reference().probes_us;
        for name in own().us.keys() {
            let has_probe = |kind| probes.keys().any(|probe| Kind::of(probe) == Some(kind));
            assert!(Kind::of(name).is_none_or(has_probe), "{name}");
        }
    }

    #[test]
    fn without_pytorch_the_processor_scales_everything() {
        let there = reference().probes_us[Host::PROCESSOR];
        let of = |factor: f64| Host {
            us: BTreeMap::from([(Host::PROCESSOR.to_owned(), there * factor)]),
            ..Host::default()
        };
        let (once, twice) = (own().on(&of(1.0)), own().on(&of(2.0)));
        for name in ["matmul", "module", "matmul gradient", "adamw matrix"] {
            assert!((twice.us[name] / once.us[name] - 2.0).abs() < 1e-9, "{name}");
        }
    }

    /// Spread of operations told from their kind, and of two hosts of one kind: 25 and 36 ms for the same forward
    /// (`tests/data/time/README.md`), and the paces of two hosts that are known. Of tiny models that were held back the
    /// error is 5% in the median forward (the same file); 0.6745 of a normal spread lie within the median.
    #[test]
    fn spreads_of_the_host_are_those_of_the_measurements() {
        let (there, own) = (reference().pace_us, own().us);
        let kinds = ratios(&there, &own);
        let off = |one: f64, other: f64| (one / other).max(other / one) - 1.0;
        let sorted = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all
        };
        let mut operations = Vec::new();
        let mut all = Vec::new();
        for (name, us) in there.iter().filter(|(name, _)| !name.ends_with(" step")) {
            let Some(kind) = Kind::of(name).filter(|_| own.get(name).is_some_and(|us| *us > 0.0)) else {
                continue;
            };
            operations.push(off(us / own[name], kinds[&kind]));
            all.push(us / own[name]);
        }
        let (operations, all) = (sorted(operations), sorted(all));
        let hosts = f64::midpoint(off(36.0, 25.0), off(all[all.len() / 2], 1.0)) / 1.128;
        let round = |x: f64| (x * 1e3).round() / 1e3;
        let today = crate::spread::HostSpread {
            held_back: round(0.05 / 0.6745),
            operations: round(operations[operations.len() * 68 / 100]),
            hosts: round(hosts),
            moments: round(followed().spread),
        };
        assert_eq!(crate::spread::Spreads::get().host, today);
    }

    #[test]
    fn a_host_that_slowed_down_after_its_probes_is_slower_for_every_step() {
        let steady = host(|_| 1.0);
        let slower = Host {
            windows_us: vec![vec![20.0; 9], vec![40.0; 9]],
            ..steady.clone()
        };
        let (once, later) = (own().on(&steady), own().on(&slower));
        for name in ["matmul", "module", "matmul gradient", "adamw matrix", "wait"] {
            assert!((later.us[name] / once.us[name] - 1.5).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn a_host_without_probes_keeps_the_pace() {
        assert_eq!(own().on(&Host::default()), own());
    }
}
