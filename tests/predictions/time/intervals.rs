//! Holds the intervals of estimated times against measured steps.

use std::fmt::Write;

use vramscope_engine::Setup;
use vramscope_engine::simulate::Recording;
use vramscope_tests::measured::Statistics;
use vramscope_time::{Clock, Milliseconds, TimedRun};

use super::steps::total;

/// A step's estimated time and its interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimated {
    pub ms: Milliseconds,
    /// Ends of the interval, as multiples of the time.
    pub ends: [f64; 2],
    /// Spread of the time.
    pub spread: f64,
    /// Share of the step in which the GPU computes.
    pub busy: f64,
}

impl Estimated {
    pub fn of(recording: Recording, setup: &Setup, clock: &Clock) -> (Self, Recording) {
        let costs = clock.costs();
        let run = TimedRun::of(recording, (setup, None), clock.network());
        let time = run.time(&costs);
        let ends = run.interval(&time, &costs).expect("there is one GPU");
        let estimated = Self {
            ms: time.parallel_time.milliseconds(),
            ends: ends.map(|end| end / time.step),
            busy: 1.0 - run.counted(&time).idle_share(),
            spread: run.spread(&time, &costs).expect("there is one GPU"),
        };
        (estimated, run.into_recording())
    }

    /// Each of several clocks' estimate of a step.
    pub fn all<const N: usize>(mut recording: Recording, setup: &Setup, clocks: &[Clock; N]) -> [Self; N] {
        let mut out = Vec::new();
        for clock in clocks {
            let (estimated, again) = Self::of(recording, setup, clock);
            recording = again;
            out.push(estimated);
        }
        out.try_into().expect("one for each clock")
    }

    pub fn holds(&self, measured_ms: f64) -> bool {
        let ratio = measured_ms / total(self.ms);
        (self.ends[0]..=self.ends[1]).contains(&ratio)
    }

    /// How much longer the step is than estimated, or below 0 the estimate than the step, in units of the spread.
    pub fn score(&self, measured_ms: f64) -> f64 {
        scale(measured_ms / total(self.ms)) / self.spread
    }
}

/// A ratio as the share by which it is above 1, or below 0 by which its inverse is.
pub(super) fn scale(ratio: f64) -> f64 {
    if ratio >= 1.0 { ratio - 1.0 } else { 1.0 - 1.0 / ratio }
}

/// Intervals from one source against measured steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coverage {
    pub inside: usize,
    pub below: usize,
    pub steps: usize,
    /// Half the width, as a share of the time: the median.
    pub half_width: f64,
}

impl Coverage {
    pub fn of(steps: impl Iterator<Item = (Estimated, f64)>) -> Self {
        let steps: Vec<(Estimated, f64)> = steps.collect();
        let widths: Vec<f64> = steps.iter().map(|(e, _)| (e.ends[1] - e.ends[0]) / 2.0).collect();
        let below = |(e, ms): &&(Estimated, f64)| ms / total(e.ms) < e.ends[0];
        Self {
            inside: steps.iter().filter(|(e, ms)| e.holds(*ms)).count(),
            below: steps.iter().filter(below).count(),
            steps: steps.len(),
            half_width: Statistics::of(&widths).expect("there are steps").median,
        }
    }

    pub fn share(&self) -> f64 {
        self.inside as f64 / self.steps as f64
    }

    pub fn line(&self, what: &str) -> String {
        let above = self.steps - self.inside - self.below;
        let (share, half) = (100.0 * self.share(), 100.0 * self.half_width);
        format!("| {what} | {share:.0}% | {} | {above} | ±{half:.1}% |\n", self.below)
    }
}

/// Head of a table of [`Coverage::line`]s.
pub(super) fn head() -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\n| interval from | inside | shorter | longer | median half-width |"
    );
    let _ = writeln!(out, "| --- | --- | --- | --- | --- |");
    out
}

/// The 5th and 95th percentile of scores, as conformal prediction takes them of a sample.
pub(super) fn ends(mut scores: Vec<f64>) -> [f64; 2] {
    scores.sort_by(f64::total_cmp);
    let n = scores.len();
    let rank = (0.95 * (n + 1) as f64).ceil() as usize;
    [scores[n - rank], scores[rank - 1]]
}
