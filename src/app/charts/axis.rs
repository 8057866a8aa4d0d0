//! Axes of a line chart: linear or logarithmic, of bytes, times or counts.

use std::ops::Range;

use vramscope_engine::format::grouped;
use vramscope_engine::units::{Bytes, Seconds};

/// What an axis measures.
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
    /// Floating-point operations a second.
    FlopsPerSecond,
    /// Bytes a second, in powers of 1000.
    BytesPerSecond,
    /// Floating-point operations to a byte.
    Intensity,
    /// Samples a second.
    SamplesPerSecond,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub unit: Unit,
    /// Equal steps multiply.
    pub log: bool,
    /// What stands beside it.
    pub title: String,
    /// First and last value.
    pub range: Range<f64>,
}

const KIB: f64 = 1024.0;

impl Unit {
    /// A value in words.
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

    /// A value in powers of 1000, with at least so many decimals.
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

    /// A value as it stands in a file: whole bytes and counts, milliseconds.
    pub fn exact(self, value: f64) -> String {
        match self {
            Self::Bytes | Self::Count | Self::Flops => (value.max(0.0) as u64).to_string(),
            Self::FlopsPerSecond | Self::BytesPerSecond => format!("{value:.0}"),
            Self::Intensity | Self::SamplesPerSecond => value.to_string(),
            Self::Seconds => format!("{:.6}", value * 1e3),
        }
    }

    /// What a file's column says after the name.
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

    /// A tick's label, without decimals that say nothing.
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

    /// What round values multiply by on a logarithmic axis, and a round value to begin with.
    const fn decade(self) -> (f64, f64) {
        match self {
            Self::Bytes => (4.0, 1.0),
            Self::Seconds => (10.0, 1e-9),
            Self::Count => (2.0, 1.0),
            Self::Intensity | Self::SamplesPerSecond => (10.0, 1e-3),
            Self::Flops | Self::FlopsPerSecond | Self::BytesPerSecond => (10.0, 1.0),
        }
    }

    /// Round steps are one, two, five or ten of these.
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
    /// An axis over values: from zero, or on a logarithmic one from a little below the least.
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

    /// An axis that begins and ends with the first and the last value.
    pub fn tight(mut self, first: f64, last: f64) -> Self {
        let begin = if self.log { first } else { 0.0 };
        self.range = begin..last.max(begin * 1.01).max(begin + 1e-12);
        self
    }

    /// Where a value lies, in the steps of the axis.
    #[allow(clippy::disallowed_methods, reason = "for pixels: no byte depends on it")]
    pub fn place(&self, value: f64) -> f64 {
        if self.log { value.max(1e-30).ln() } else { value }
    }

    /// The value that lies at a place.
    #[allow(clippy::disallowed_methods, reason = "for pixels: no byte depends on it")]
    pub fn value(&self, place: f64) -> f64 {
        if self.log { place.exp() } else { place }
    }

    /// The places of the first and the last value.
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
        // Where tens are few, their halves and fifths too.
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
            // Above 512 the next unit begins.
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
