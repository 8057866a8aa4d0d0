//! What changed between two records, beyond noise.

use vramscope_engine::record::{Measurement, Record, Summary};

use super::show::{time, why};
use crate::kernels::label::label;
use crate::output::list::{self, Edge};

/// A median deviation in units of a normal distribution's standard deviation.
const DEVIATION: f64 = 1.4826;
/// Standard deviations, of both sides together, that a change must exceed.
const BEYOND: f64 = 3.0;
/// And the share of the time.
const LEAST: f64 = 0.02;

/// Kernels whose time changed by more than both spreads explain, those that came, went, or stopped
/// working; and how many stayed.
pub fn text(old: &Record, new: &Record) -> String {
    let mut rows = Vec::new();
    let (mut same, mut came) = (0, 0);
    for result in &new.results {
        let Some(before) = old.result_of(&result.kernel) else {
            came += 1;
            continue;
        };
        match (summary(before), summary(result)) {
            (Some(a), Some(b)) => match change(a, b) {
                Some(ratio) => rows.push([
                    label(&result.kernel),
                    time(a.median_ns),
                    time(b.median_ns),
                    format!("{:+.1}%", 100.0 * (ratio - 1.0)),
                ]),
                None => same += 1,
            },
            (Some(a), None) => rows.push([
                label(&result.kernel),
                time(a.median_ns),
                "-".into(),
                why(&result.outcome),
            ]),
            (None, Some(b)) => rows.push([label(&result.kernel), "-".into(), time(b.median_ns), "runs now".into()]),
            (None, None) => same += 1,
        }
    }
    let gone = old
        .results
        .iter()
        .filter(|r| new.result_of(&r.kernel).is_none())
        .count();
    let mut text = String::from("\n");
    if !rows.is_empty() {
        let heads = [
            ("changed beyond noise", Edge::Left),
            ("before", Edge::Right),
            ("now", Edge::Right),
            ("change", Edge::Right),
        ];
        text += &list::render(heads, &rows);
    }
    text += &format!("{} changed, {same} as before", rows.len());
    if came + gone > 0 {
        text += &format!(", {came} only now, {gone} only before");
    }
    text += ". Noise: three standard deviations of both runs together, and 2%.\n";
    for note in notes(old, new) {
        text += &format!("note: {note}\n");
    }
    text
}

fn summary(result: &Measurement) -> Option<&Summary> {
    result.measured()?.summary.as_ref()
}

/// Time now over time before, where noise does not explain it.
fn change(old: &Summary, new: &Summary) -> Option<f64> {
    let (a, b) = (old.median_ns as f64, new.median_ns as f64);
    let spread = |s: &Summary| s.median_deviation_ns.unwrap_or(0) as f64 * DEVIATION;
    let noise = BEYOND * spread(old).hypot(spread(new));
    let distance = (b - a).abs();
    (distance > noise && distance > LEAST * a).then(|| b / a)
}

/// Differences of the machines themselves.
fn notes(old: &Record, new: &Record) -> Vec<String> {
    let mut notes = Vec::new();
    let (a, b) = (&old.device, &new.device);
    let mut differ = |what: &str, before: &str, now: &str| {
        if before != now {
            notes.push(format!("{what}: {before} before, {now} now"));
        }
    };
    differ("card", &a.name, &b.name);
    let words = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    differ("driver", &words(&a.driver), &words(&b.driver));
    for library in &b.libraries {
        let before = a.libraries.iter().find(|l| l.name == library.name);
        differ(&library.name, before.map_or("none", |l| &l.version), &library.version);
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_within_the_spread_is_none() {
        let of = |samples: &[u64]| Summary::of(samples).expect("samples");
        let old = of(&[1000, 1010, 990, 1005, 995]);
        assert_eq!(change(&old, &of(&[1015, 1025, 1005, 1020, 1010])), None);
        let slower = change(&old, &of(&[1200, 1210, 1190, 1205, 1195])).expect("it is slower");
        assert!((slower - 1.2).abs() < 1e-9);
        // Without any spread, 2% decide.
        assert_eq!(change(&of(&[1000; 5]), &of(&[1019; 5])), None);
        assert!(change(&of(&[1000; 5]), &of(&[1021; 5])).is_some());
    }
}
