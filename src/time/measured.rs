//! Reads measured kernel times of a card and its host's pace from a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::carry::Carry;
use super::communication::Collective;
use super::compared::Compared;
use super::kernels::Kernels;
use super::network::Collectives;
use super::of_record::points;
use super::pace::Pace;
use super::rates::Rates;
use super::spread::Spreads;
use vramscope_benchmark::{Host, Record};
use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;

/// Measurements of an H200 and its host through PyTorch, kernel by kernel. `tests/data/time/README.md` describes how
/// they were made, and how well they hold on other hosts.
pub const H200: &str = include_str!("measured/h200.json");

/// Measurements of one machine.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Name of the card according to its driver.
    pub card: String,
    /// Software that launched the kernels.
    pub software: String,
    /// Name of the host's processor.
    pub host: String,
    /// Kernel times of the card.
    pub kernels: Kernels,
    /// The host's pace.
    pub pace: Pace,
    /// True if the pace is that of the machine's own host, probed through PyTorch or measured in full.
    pub has_host: bool,
    /// Share by which that host's pace changes from moment to moment.
    pub changes: f64,
    /// Times of collectives between several such cards.
    pub collectives: Collectives,
}

/// Error for a file that is not a measurement; the text says what was found and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MeasuredError(pub String);

#[derive(Deserialize)]
struct File {
    card: String,
    software: String,
    host: String,
    launch_latency_us: f64,
    host_us: BTreeMap<String, f64>,
    #[serde(default)]
    host_alone_us: BTreeMap<String, f64>,
    #[serde(default)]
    host_sharded_us: BTreeMap<String, f64>,
    #[serde(default)]
    collectives_us: BTreeMap<String, Vec<[f64; 2]>>,
    kernels_us: BTreeMap<String, Vec<Vec<f64>>>,
}

impl Measured {
    /// Parses a file of measured kernels: `{"card", "software", "host", "launch_latency_us", "host_us": {operation:
    /// µs}, "kernels_us": {"kind type": [[extents…, µs], …]}}`, and optionally `host_alone_us`, `host_sharded_us` and
    /// `"collectives_us": {"kind GPUs": [[bytes, µs], …]}`.
    ///
    /// # Errors
    /// If the text has another format; the message says what is missing.
    pub fn read(text: &str) -> Result<Self, MeasuredError> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            MeasuredError(format!(
                "not a file of measured kernels ({error}); tests/data/time/README.md says how to make one"
            ))
        })?;
        let mut collectives = Collectives::default();
        for (name, points) in &file.collectives_us {
            let (kind, gpus) = collective(name)?;
            for [bytes, us] in points {
                collectives.add(kind, gpus, *bytes, us / 1e6);
            }
        }
        Ok(Self {
            collectives,
            has_host: true,
            changes: 0.0,
            card: file.card,
            software: file.software,
            host: file.host,
            kernels: kernels_of(&file.kernels_us)?,
            pace: Pace {
                us: file.host_us,
                alone_us: file.host_alone_us,
                sharded_us: file.host_sharded_us,
                latency_us: file.launch_latency_us,
            },
        })
    }
}

impl Measured {
    /// Takes the kernel times from a benchmark record, compared with `own`, PyTorch's on another card. The pace of that
    /// measurement is scaled to the record's host; a record without one keeps it.
    pub fn of_record(record: &Record, own: &Self) -> Self {
        let points = points(record);
        let points = points
            .iter()
            .map(|(kind, dtype, extents, seconds)| (*kind, *dtype, &extents[..], *seconds));
        let of_kernels = Self::of_points(record.device.name.clone(), points, own);
        Self {
            collectives: Collectives::of_record(record),
            ..of_kernels.on(record.host.as_ref())
        }
    }

    /// Scales the pace to a measured host, if there is one.
    pub(super) fn on(self, host: Option<&Host>) -> Self {
        let Some(host) = host else { return self };
        let processor = host.processor.as_deref().unwrap_or("unknown processor");
        let by = host.software.as_deref().unwrap_or("the processor's speed alone");
        Self {
            pace: self.pace.on(host),
            has_host: host.software.is_some(),
            changes: host.drift().map_or(Spreads::get().host.moments, |drift| drift.spread),
            host: format!("{}, scaled to {processor} by {by}", self.host),
            ..self
        }
    }

    /// Compares kernels that `vramscope bench` measured on a card with PyTorch's on another one, whose host's pace stays.
    pub(super) fn of_points<'a>(card: String, points: impl Iterator<Item = Point<'a>> + Clone, own: &Self) -> Self {
        let mut kernels = Kernels::default();
        for (kind, dtype, extents, seconds) in points.clone() {
            kernels.add(kind, dtype, extents, seconds);
        }
        // A card that nobody describes cannot be compared, and its kernels stand for themselves.
        if let Some((from, to)) = rates_of(&own.card).zip(rates_of(&card)) {
            let compared = Compared::of(points, Arc::new(own.kernels.clone()), Carry { from, to });
            kernels = kernels.compared(compared);
        }
        Self {
            card,
            software: BENCH.to_owned(),
            host: own.host.clone(),
            kernels,
            pace: own.pace.clone(),
            has_host: false,
            changes: 0.0,
            collectives: Collectives::default(),
        }
    }
}

/// A point of measured kernels: kind, dtype, extents, seconds.
pub(super) type Point<'a> = (&'a str, DType, &'a [u64], f64);

/// Rates of the card with this name, if someone describes it.
fn rates_of(card: &str) -> Option<Rates> {
    Rates::of(Device::all().iter().find(|device| device.is_called(card))?)
}

/// Software name for the kernels of a benchmark record.
const BENCH: &str = "vramscope bench";

/// Parses kernels by name, each with points of `[extents…, µs]`.
fn kernels_of(kernels_us: &BTreeMap<String, Vec<Vec<f64>>>) -> Result<Kernels, MeasuredError> {
    let mut kernels = Kernels::default();
    for (kind, dtype, extents, seconds) in points_of(kernels_us)? {
        kernels.add(kind, dtype, &extents, seconds);
    }
    Ok(kernels)
}

/// A point of a file: kind, type, extents and seconds.
type FilePoint<'a> = (&'a str, DType, Vec<u64>, f64);

/// Points of kernels by name, each `[extents…, µs]`.
pub(super) fn points_of(kernels_us: &BTreeMap<String, Vec<Vec<f64>>>) -> Result<Vec<FilePoint<'_>>, MeasuredError> {
    let mut out = Vec::new();
    for (name, points) in kernels_us {
        let (kind, dtype) = named(name)?;
        for point in points {
            let Some((us, extents)) = point.split_last().filter(|(us, _)| **us > 0.0) else {
                return Err(MeasuredError(format!(
                    "{name}: a point is [extents…, microseconds], with more than 0 microseconds; found {point:?}"
                )));
            };
            let extents = extents.iter().map(|n| *n as u64).collect();
            out.push((kind, dtype, extents, us / 1e6));
        }
    }
    Ok(out)
}

/// Splits `all_reduce 2` into kind and number of GPUs.
fn collective(name: &str) -> Result<(Collective, u64), MeasuredError> {
    name.split_once(' ')
        .and_then(|(kind, gpus)| Some((Collective::by_name(kind)?, gpus.parse().ok()?)))
        .ok_or_else(|| {
            MeasuredError(format!(
                "{name}: collectives are named by kind and GPUs, such as `all_reduce 2`"
            ))
        })
}

/// Splits `gemm.tn bf16` into kind and dtype.
fn named(name: &str) -> Result<(&str, DType), MeasuredError> {
    let dtype = |text: &str| match text {
        "bf16" => Some(DType::Bf16),
        "f16" => Some(DType::F16),
        "f32" => Some(DType::F32),
        _ => None,
    };
    name.rsplit_once(' ')
        .and_then(|(kind, text)| Some((kind, dtype(text)?)))
        .ok_or_else(|| {
            MeasuredError(format!(
                "{name}: kernels are named by kind and type, such as `gemm.tn bf16`; types are bf16, f16 and f32"
            ))
        })
}
