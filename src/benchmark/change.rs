//! What changed from one record to another, beyond noise.

use super::{Kernel, Measurement, Outcome, Record, Summary};

/// A median deviation in units of a normal distribution's standard deviation.
const DEVIATION: f64 = 1.4826;

/// What differs between two records.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    /// Kernels of both whose time changed by more than noise, or that stopped or began to have one, in the
    /// order of the newer record.
    pub changes: Vec<Change<'a>>,
    /// How many kernels of both are as before.
    pub same: usize,
    /// How many only the newer record has.
    pub came: usize,
    /// How many only the older record has.
    pub gone: usize,
    /// What differs between the machines themselves.
    pub machine: Vec<Differs<'a>>,
}

/// A kernel that is not as before.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The median before, in nanoseconds; `None` where it had no time.
    pub before_ns: Option<u64>,
    /// The median now.
    pub now_ns: Option<u64>,
    /// What came of it now.
    pub outcome: &'a Outcome,
}

/// Something of the machines that is not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs<'a> {
    /// What.
    pub what: Part<'a>,
    /// As the older record has it; `None` where it does not say.
    pub before: Option<&'a str>,
    /// As the newer record has it.
    pub now: Option<&'a str>,
}

/// A part of a machine that times depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The card itself.
    Card,
    /// Its driver.
    Driver,
    /// A library of this name.
    Library(&'a str),
}

impl Change<'_> {
    /// Time now over time before, where there are both.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.now_ns? as f64 / self.before_ns? as f64)
    }
}

impl<'a> Comparison<'a> {
    /// Standard deviations, of both sides together, that a change must exceed.
    pub const BEYOND: f64 = 3.0;
    /// And the share of the time.
    pub const LEAST: f64 = 0.02;

    /// Compares kernel by kernel. A time has changed where its medians lie further apart than
    /// [`Self::BEYOND`] standard deviations of both, estimated from the spreads of their samples, and than
    /// [`Self::LEAST`] of the older one.
    pub fn of(old: &'a Record, new: &'a Record) -> Self {
        let mut out = Self {
            changes: Vec::new(),
            same: 0,
            came: 0,
            gone: 0,
            machine: differences(old, new),
        };
        for result in &new.results {
            let Some(before) = old.result_of(&result.kernel) else {
                out.came += 1;
                continue;
            };
            let (a, b) = (summary(before), summary(result));
            let as_before = match (a, b) {
                (Some(a), Some(b)) => !has_changed(a, b),
                (None, None) => true,
                _ => false,
            };
            if as_before {
                out.same += 1;
            } else {
                out.changes.push(Change {
                    kernel: &result.kernel,
                    before_ns: a.map(|s| s.median_ns),
                    now_ns: b.map(|s| s.median_ns),
                    outcome: &result.outcome,
                });
            }
        }
        let is_gone = |result: &&Measurement| new.result_of(&result.kernel).is_none();
        out.gone = old.results.iter().filter(is_gone).count();
        out
    }
}

fn summary(result: &Measurement) -> Option<&Summary> {
    result.measured()?.summary.as_ref()
}

fn has_changed(old: &Summary, new: &Summary) -> bool {
    let (a, b) = (old.median_ns as f64, new.median_ns as f64);
    let spread = |s: &Summary| s.median_deviation_ns.unwrap_or(0) as f64 * DEVIATION;
    let (of_old, of_new) = (spread(old), spread(new));
    let noise = Comparison::BEYOND * (of_old * of_old + of_new * of_new).sqrt();
    let distance = (b - a).abs();
    distance > noise && distance > Comparison::LEAST * a
}

/// Card, driver, and the libraries of the newer record, where they are not the same.
fn differences<'a>(old: &'a Record, new: &'a Record) -> Vec<Differs<'a>> {
    let (a, b) = (&old.device, &new.device);
    let mut all = vec![
        (Part::Card, Some(a.name.as_str()), Some(b.name.as_str())),
        (Part::Driver, a.driver.as_deref(), b.driver.as_deref()),
    ];
    all.extend(b.libraries.iter().map(|library| {
        let before = a.libraries.iter().find(|l| l.name == library.name);
        let version = Some(library.version.as_str());
        (
            Part::Library(&library.name),
            before.map(|l| l.version.as_str()),
            version,
        )
    }));
    let differ = all.into_iter().filter(|(_, before, now)| before != now);
    differ
        .map(|(what, before, now)| Differs { what, before, now })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../tests/data/records/example.json");

    fn example() -> Record {
        Record::read(EXAMPLE).expect("a record")
    }

    #[test]
    fn a_change_within_the_spread_is_none() {
        let of = |samples: &[u64]| Summary::of(samples).expect("samples");
        let old = of(&[1000, 1010, 990, 1005, 995]);
        assert!(!has_changed(&old, &of(&[1015, 1025, 1005, 1020, 1010])));
        assert!(has_changed(&old, &of(&[1200, 1210, 1190, 1205, 1195])));
        // Without any spread, 2% decide.
        assert!(!has_changed(&of(&[1000; 5]), &of(&[1019; 5])));
        assert!(has_changed(&of(&[1000; 5]), &of(&[1021; 5])));
    }

    #[test]
    fn a_record_is_as_itself() {
        let record = example();
        let same = Comparison::of(&record, &record);
        assert_eq!((same.same, same.came, same.gone), (record.results.len(), 0, 0));
        assert!(same.changes.is_empty() && same.machine.is_empty());
    }

    #[test]
    fn what_is_slower_stopped_came_and_went_is_told_apart() {
        let old = example();
        let mut new = example();
        let slower = new.results[0]
            .measured()
            .and_then(|m| m.summary.clone())
            .expect("a time");
        if let Outcome::Measured(measured) = &mut new.results[0].outcome {
            measured.summary = Some(Summary {
                median_ns: 2 * slower.median_ns,
                ..slower.clone()
            });
        }
        new.results[1].outcome = Outcome::Failed { reason: "lost".into() };
        let mut other = new.results.remove(2);
        other.kernel.shape.bytes = Some(4096);
        new.results.push(other);
        new.device.driver = Some("999".into());
        new.device.libraries.clear();
        let found = Comparison::of(&old, &new);
        assert_eq!((found.changes.len(), found.came, found.gone), (2, 1, 1));
        assert_eq!(found.same, old.results.len() - 3);
        assert_eq!(found.changes[0].ratio(), Some(2.0));
        assert_eq!(found.changes[1].now_ns, None);
        assert_eq!(found.changes[1].ratio(), None);
        let driver = Differs {
            what: Part::Driver,
            before: old.device.driver.as_deref(),
            now: Some("999"),
        };
        assert_eq!(found.machine, [driver]);
    }
}
