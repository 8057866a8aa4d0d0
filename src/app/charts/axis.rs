//! Linear and logarithmic axes of charts: units, ranges and ticks.

use std::ops::Range;

use vramscope_engine::format::grouped;
use vramscope_engine::units::{Bytes, Seconds};

/// Unit of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, in powers of 1024.
    Bytes,
    /// Seconds.
    Seconds,
    /// Whole numbers.
    Count,
    /// Floating-point operations.
    Flops,
    /// Floating-point operations per second.
    FlopsPerSecond,
    /// Bytes per second, in powers of 1000.
    BytesPerSecond,
    /// Floating-point operations per byte.
    Intensity,
    /// Samples per second.
    SamplesPerSecond,
}

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Unit of its values.
    pub unit: Unit,
    /// True for a logarithmic axis.
    pub log: bool,
    /// Title beside the axis.
    pub title: String,
    /// First and last value.
    pub range: Range<f64>,
}

const KIB: f64 = 1024.0;

impl Unit {
    /// Formats a value for display.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Bytes => Bytes::new(value.max(0.0) as u64).to_string(),
            Self::Seconds => Seconds::new(value).to_string(),
            Self::Count => grouped(value.max(0.0) as u64),
            Self::Intensity => format!("{value:.2} FLOP/B"),
            Self::SamplesPerSecond => format!("{value:.2}/s"),
            Self::Flops | Self::FlopsPerSecond | Self::BytesPerSecond => self.scaled(value, 1),
        }
    }

    /// Formats a value in powers of 1000 with at least this many decimals.
    fn scaled(self, value: f64, decimals: usize) -> String {
        const POWERS: [(&str, f64); 6] = [("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
        let (power, size) = POWERS
            .into_iter()
            .find(|(_, size)| value >= *size * 0.9999)
            .unwrap_or(("", 1.0));
        let name = match self {
            Self::Flops => "FLOP",
            Self::FlopsPerSecond => "FLOP/s",
            _ => "B/s",
        };
        format!("{:.decimals$} {power}{name}", value / size)
    }

    /// Formats a value for a data file: whole bytes and counts, milliseconds.
    pub fn exact(self, value: f64) -> String {
        match self {
            Self::Bytes | Self::Count | Self::Flops => (value.max(0.0) as u64).to_string(),
            Self::FlopsPerSecond | Self::BytesPerSecond => format!("{value:.0}"),
            Self::Intensity | Self::SamplesPerSecond => value.to_string(),
            Self::Seconds => format!("{:.6}", value * 1e3),
        }
    }

    /// Unit appended to a column's name in a data file.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => " (bytes)",
            Self::Seconds => " (ms)",
            Self::Count => "",
            Self::Flops => " (FLOP)",
            Self::FlopsPerSecond => " (FLOP/s)",
            Self::BytesPerSecond => " (B/s)",
            Self::Intensity => " (FLOP/B)",
            Self::SamplesPerSecond => " (1/s)",
        }
    }

    /// Formats a tick label without superfluous decimals.
    fn tick(self, value: f64) -> String {
        let scaled = |value: f64, units: &[(&str, f64)]| {
            let (name, size) = *units
                .iter()
                .rfind(|(_, size)| value >= *size * 0.9999)
                .unwrap_or(&units[0]);
            let n = value / size;
            let digits = if (n - n.round()).abs() < 1e-6 { 0 } else { 1 };
            format!("{n:.digits$} {name}")
        };
        match self {
            _ if value == 0.0 => "0".into(),
            Self::Bytes => scaled(
                value,
                &[
                    ("B", 1.0),
                    ("KiB", KIB),
                    ("MiB", KIB * KIB),
                    ("GiB", KIB * KIB * KIB),
                    ("TiB", KIB * KIB * KIB * KIB),
                ],
            ),
            Self::Seconds => scaled(value, &[("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)]),
            Self::Count => grouped(value as u64),
            Self::Intensity => value.to_string(),
            Self::SamplesPerSecond => format!("{value:.2}"),
            Self::Flops | Self::FlopsPerSecond | Self::BytesPerSecond => self.scaled(value, 0),
        }
    }

    /// Factor between round values on a logarithmic axis, and a round value to start from.
    const fn decade(self) -> (f64, f64) {
        match self {
            Self::Bytes => (4.0, 1.0),
            Self::Seconds => (10.0, 1e-9),
            Self::Count => (2.0, 1.0),
            Self::Intensity | Self::SamplesPerSecond => (10.0, 1e-3),
            Self::Flops | Self::FlopsPerSecond | Self::BytesPerSecond => (10.0, 1.0),
        }
    }

    /// Base of the round steps, which are multiples of it such as 1, 2, 5 and 10.
    fn step_base(self, rough: f64) -> f64 {
        let mut base = match self {
            Self::Seconds => 1e-9,
            Self::SamplesPerSecond => 1e-3,
            _ => 1.0,
        };
        if self == Self::Bytes {
            while base * KIB <= rough {
                base *= KIB;
            }
        }
        while base * 10.0 <= rough {
            base *= 10.0;
        }
        base
    }
}

impl Axis {
    /// Builds an axis over values: it starts at zero or, if logarithmic, just below the smallest value.
    pub fn over(unit: Unit, log: bool, title: String, values: impl IntoIterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0);
        for value in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            least = f64::min(least, value);
            most = f64::max(most, value);
        }
        if !least.is_finite() {
            (least, most) = (1.0, 10.0);
        }
        let range = if log { least / 1.3..most * 1.4 } else { 0.0..most * 1.08 };
        Self {
            unit,
            log,
            title,
            range,
        }
    }

    /// Makes the axis start and end exactly at the first and last value.
    pub fn tight(mut self, first: f64, last: f64) -> Self {
        let begin = if self.log { first } else { 0.0 };
        self.range = begin..last.max(begin * 1.01).max(begin + 1e-12);
        self
    }

    /// Maps a value to its position along the axis.
    #[allow(clippy::disallowed_methods, reason = "for pixels: no byte depends on it")]
    pub fn place(&self, value: f64) -> f64 {
        if self.log { value.max(1e-30).ln() } else { value }
    }

    /// Maps a position along the axis back to its value.
    #[allow(clippy::disallowed_methods, reason = "for pixels: no byte depends on it")]
    pub fn value(&self, place: f64) -> f64 {
        if self.log { place.exp() } else { place }
    }

    /// Positions of the first and last value.
    pub fn places(&self) -> Range<f64> {
        self.place(self.range.start)..self.place(self.range.end)
    }

    /// Round values with their labels, about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let values = if self.log {
            self.log_ticks(wanted)
        } else {
            self.linear_ticks(wanted)
        };
        values.into_iter().map(|v| (v, self.unit.tick(v))).collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let (factor, mut value) = self.unit.decade();
        let mut all = Vec::new();
        // A short range has few powers of ten, so it also gets ticks at 2 and 5 times each.
        let is_short = factor == 10.0 && self.range.end < 60.0 * self.range.start;
        let between: &[f64] = if is_short { &[1.0, 2.0, 5.0] } else { &[1.0] };
        while value <= self.range.end && all.len() < 200 {
            let ticks = between.iter().map(|part| part * value);
            all.extend(ticks.filter(|tick| *tick >= self.range.start * 0.999 && *tick <= self.range.end));
            value *= factor;
        }
        let every = all.len().div_ceil(wanted.max(1)).max(1);
        all.into_iter().step_by(every).collect()
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let rough = (self.range.end - self.range.start) / wanted.max(1) as f64;
        let base = self.unit.step_base(rough);
        let steps: &[f64] = match self.unit {
            // Values above 512 use the next unit.
            Unit::Bytes => &[1.0, 2.0, 4.0, 8.0, 10.0, 16.0, 20.0, 32.0],
            _ => &[1.0, 2.0, 5.0, 10.0],
        };
        let step = steps.iter().map(|s| s * base).find(|s| *s >= rough).unwrap_or(rough);
        let step = if self.unit == Unit::Count {
            step.max(1.0).round()
        } else {
            step
        };
        let mut all = Vec::new();
        let mut value = (self.range.start / step).ceil() * step;
        while value <= self.range.end && all.len() < 50 {
            all.push(value);
            value += step;
        }
        all
    }
}
