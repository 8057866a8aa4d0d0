//! Compares two records and reports the differences beyond noise.

use super::{Kernel, Measurement, Outcome, Record, Summary};

/// Factor from a median absolute deviation to a normal distribution's standard deviation.
const DEVIATION: f64 = 1.4826;

/// Differences between two records.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison<'a> {
    /// Kernels of both records whose time changed by more than noise, or that gained or lost a time, in the order of
    /// the newer record.
    pub changes: Vec<Change<'a>>,
    /// Number of kernels of both records without a change.
    pub same: usize,
    /// Number of kernels that only the newer record has.
    pub came: usize,
    /// Number of kernels that only the older record has.
    pub gone: usize,
    /// Differences between the machines.
    pub machine: Vec<Differs<'a>>,
}

/// A kernel that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Older median in nanoseconds; `None` if it had no time.
    pub before_ns: Option<u64>,
    /// Newer median in nanoseconds; `None` if it has no time.
    pub now_ns: Option<u64>,
    /// Outcome in the newer record.
    pub outcome: &'a Outcome,
}

/// A difference between the machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs<'a> {
    /// Part of the machine that differs.
    pub what: Part<'a>,
    /// Value in the older record; `None` if it states none.
    pub before: Option<&'a str>,
    /// Value in the newer record; `None` if it states none.
    pub now: Option<&'a str>,
}

/// A part of a machine that affects times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// The card.
    Card,
    /// The card's driver.
    Driver,
    /// A library, by name.
    Library(&'a str),
}

impl Change<'_> {
    /// Newer time divided by older time, if both exist.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.now_ns? as f64 / self.before_ns? as f64)
    }
}

impl<'a> Comparison<'a> {
    /// Number of standard deviations of both sides together that a change must exceed.
    pub const BEYOND: f64 = 3.0;
    /// Fraction of the older time that a change must exceed.
    pub const LEAST: f64 = 0.02;

    /// Compares two records kernel by kernel. A time has changed if its medians differ by more than [`Self::BEYOND`]
    /// standard deviations of both, estimated from the spread of their samples, and by more than [`Self::LEAST`] of the
    /// older one.
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

/// Differences of card, driver, and the libraries of the newer record.
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
        // Without any spread, the limit of 2% decides.
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
