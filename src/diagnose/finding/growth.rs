//! Finds leaks and outlying steps in memory readings over the steps of a run (course rows 9.leak, 9.4, 9.8).

use super::{Action, Cause, Confidence, Finding, Growth};
use crate::log::{Point, TrainingLog};
use vramscope_engine::units::Bytes;

/// Number of readings that the regression uses, and how many readings ahead it predicts.
const WINDOW: usize = 10;
/// Relative growth over ten readings above which memory leaks.
const LEAK: f64 = 0.05;
/// Smallest number of readings that can show growth.
const FEWEST: usize = 4;
/// Ratio to the median above which a step is reported as an outlier.
const OUTLIER: f64 = 1.15;

/// Findings that a training log supports.
pub fn findings(log: &TrainingLog, capacity: Option<Bytes>) -> Vec<Finding> {
    let Some(series) = log.series.iter().find(|series| series.points.len() >= FEWEST) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    match of(&series.key, &series.points, capacity) {
        Some(GrowthVerdict::Leak(finding)) => found.push(finding),
        Some(GrowthVerdict::Steady(finding)) => {
            found.extend(long_sample(&series.points));
            found.push(finding);
        }
        None => {}
    }
    found
}

/// Verdict on the growth of memory.
pub enum GrowthVerdict {
    /// Memory grows.
    Leak(Finding),
    /// Memory does not grow.
    Steady(Finding),
}

/// Judges readings in the order of their steps; `None` if there are too few.
pub fn of(what: &str, points: &[Point], capacity: Option<Bytes>) -> Option<GrowthVerdict> {
    if points.len() < FEWEST {
        return None;
    }
    let window = &points[points.len().saturating_sub(WINDOW)..];
    let readings: Vec<f64> = window.iter().map(|point| point.bytes.get() as f64).collect();
    let (first, last) = (readings[0], readings[readings.len() - 1]);
    let growth = if first > 0.0 { last / first - 1.0 } else { 0.0 };
    if !(growth > LEAK && goes_on(&readings)) {
        let cause = Cause::NoLeak {
            growth,
            readings: readings.len() as u64,
        };
        return Some(GrowthVerdict::Steady(Finding::new(Confidence::RuledOut, cause, &[])));
    }
    let (slope, intercept) = regression(&readings);
    let predicted = intercept + slope * (readings.len() - 1 + WINDOW) as f64;
    let risk = capacity
        .filter(|total| *total > Bytes::ZERO)
        .map(|total| ((predicted / total.get() as f64 - 0.85) / 0.15).clamp(0.0, 1.0));
    let steps = window[window.len() - 1].step.saturating_sub(window[0].step);
    let spacing = steps as f64 / (readings.len() - 1) as f64;
    let full_at = capacity.filter(|_| slope > 0.0).map(|total| {
        let reading = (total.get() as f64 - intercept) / slope;
        (window[0].step as f64 + reading.max(0.0) * spacing) as u64
    });
    let rises = points.windows(2).map(|pair| pair[1].bytes.difference_to(pair[0].bytes));
    let growth = Growth {
        what: what.to_string(),
        first: window[0].bytes,
        last: window[window.len() - 1].bytes,
        readings: readings.len() as u64,
        steps,
        per_step: (last - first) / steps.max(1) as f64,
        rises: rises.rev().take(50).collect::<Vec<_>>().into_iter().rev().collect(),
        is_accelerating: is_accelerating(&readings),
        predicted: Bytes::new(predicted.max(0.0) as u64),
        total: capacity,
        risk,
        full_at,
    };
    let mut todo = vec![
        Action::DetachLoss,
        Action::NoLists,
        Action::CustomAutograd,
        Action::RemoveHooks,
        Action::Record,
    ];
    match risk {
        // Risk levels of the course: above 0.8 memory runs out very soon; above 0.5 it is time to save a checkpoint.
        Some(risk) if risk > 0.5 => todo.insert(0, Action::SaveNow),
        None => todo.push(Action::NameCard),
        Some(_) => {}
    }
    Some(GrowthVerdict::Leak(Finding::new(
        Confidence::Cause,
        Cause::Leak(growth),
        &todo,
    )))
}

/// Returns true if the growth continues to the last reading. Growth that stops after the first steps is no leak:
/// optimizer states appear and the cache fills.
fn goes_on(readings: &[f64]) -> bool {
    let rises = readings.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let half = readings.len() / 2;
    let (first, last) = (readings[0], readings[readings.len() - 1]);
    rises * 10 >= (readings.len() - 1) * 7 && last - readings[half] >= (last - first) / 4.0
}

/// Returns true if the second half grows clearly faster than the first.
fn is_accelerating(readings: &[f64]) -> bool {
    let middle = readings.len() / 2;
    let rate = |part: &[f64]| (part[part.len() - 1] - part[0]) / (part.len() - 1).max(1) as f64;
    let (before, after) = (rate(&readings[..=middle]), rate(&readings[middle..]));
    after > 0.0 && after > 1.25 * before
}

/// Slope and intercept of a least-squares fit over x = 0, 1, 2, …
fn regression(readings: &[f64]) -> (f64, f64) {
    let n = readings.len() as f64;
    let mean_x = (n - 1.0) / 2.0;
    let mean_y = readings.iter().sum::<f64>() / n;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, y) in readings.iter().enumerate() {
        let x = i as f64 - mean_x;
        xy += x * (y - mean_y);
        xx += x * x;
    }
    let slope = if xx > 0.0 { xy / xx } else { 0.0 };
    (slope, mean_y - slope * mean_x)
}

/// A step that needs far more memory than the median.
fn long_sample(points: &[Point]) -> Option<Finding> {
    let mut sorted: Vec<Bytes> = points.iter().map(|point| point.bytes).collect();
    sorted.sort_unstable();
    let usual = sorted[sorted.len() / 2];
    let highest = points.iter().max_by_key(|point| (point.bytes, point.step))?;
    // The first reading is not comparable: caches and optimizer states are not yet filled.
    let stands_out = highest.bytes.get() as f64 > usual.get() as f64 * OUTLIER;
    if !stands_out || usual == Bytes::ZERO {
        return None;
    }
    let mut lengths: Vec<u64> = points.iter().filter_map(|point| point.length).collect();
    lengths.sort_unstable();
    let is_long = highest
        .length
        .zip(lengths.get(lengths.len() / 2))
        .is_some_and(|(length, usual)| length > *usual);
    let confidence = if is_long {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let cause = Cause::LongSample {
        step: highest.step,
        bytes: highest.bytes,
        usual,
        length: highest.length,
    };
    Some(Finding::new(
        confidence,
        cause,
        &[Action::GroupByLength, Action::Shorter],
    ))
}
