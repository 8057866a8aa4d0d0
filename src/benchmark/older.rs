//! Reads unversioned records, which only contain attention.

use serde::Deserialize;

use super::class::Class;
use super::kernel::{Kernel, Pass, Precision, Shape};
use super::measurement::{Measured, Measurement, Outcome, Timer};
use super::read::ReadError;
use super::summary::Summary;
use super::{BenchedDevice, Conditions, Record, Run, SCHEMA_VERSION, Tool};
use vramscope_engine::attention::Algorithm;

/// An entry as written in a file.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Entry {
    #[serde(alias = "impl")]
    variant: Option<String>,
    #[serde(alias = "L")]
    length: Option<u64>,
    #[serde(alias = "B")]
    batch: Option<u64>,
    #[serde(alias = "H")]
    heads: Option<u64>,
    kv_heads: Option<u64>,
    #[serde(alias = "D")]
    head_dim: Option<u64>,
    dtype: Option<Precision>,
    backward: Option<bool>,
    causal: Option<bool>,
    window: Option<u64>,
    topk: Option<u64>,
    chunk: Option<u64>,
    ms: Option<f64>,
    ms_min: Option<f64>,
    ms_max: Option<f64>,
    peak_extra_bytes: Option<u64>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct File {
    attention: Vec<Entry>,
}

pub(super) fn read(text: &str) -> Result<Record, ReadError> {
    let mut results = Vec::new();
    for (i, entry) in entries(text)?.into_iter().enumerate() {
        results.push(result(entry).map_err(|why| ReadError(format!("entry {}: {why}", i + 1)))?);
    }
    let unknown = || "unknown".to_owned();
    Ok(Record {
        schema_version: SCHEMA_VERSION,
        tool: Tool {
            name: unknown(),
            version: unknown(),
        },
        date: None,
        run: Run::default(),
        device: BenchedDevice {
            name: unknown(),
            backend: unknown(),
            ..BenchedDevice::default()
        },
        conditions: Conditions::default(),
        host: None,
        results,
    })
}

fn entries(text: &str) -> Result<Vec<Entry>, ReadError> {
    const WANTED: &str = "{\"attention\": [{\"variant\": \"flash\", \"length\": 2048, \"ms\": 0.33, \
                          \"peak_extra_bytes\": 33818624}]}";
    match serde_json::from_str::<File>(text) {
        Ok(file) => return Ok(file.attention),
        Err(e) if text.contains("\"attention\"") => {
            return Err(ReadError(format!(
                "the record is not as it should be: {e}; wanted a record of `vramscope bench`, or {WANTED}"
            )));
        }
        Err(_) => {}
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| {
            ReadError(format!(
                "line {}: {e}; wanted a record of `vramscope bench`, or {WANTED}",
                i + 1
            ))
        })
    };
    lines.enumerate().map(read).collect()
}

fn result(entry: Entry) -> Result<Measurement, String> {
    let name = entry.variant.as_deref().ok_or("`variant` is missing")?;
    let Variant {
        algorithm,
        causal,
        number,
    } = variant(name)?;
    let number_of = |its: Algorithm| number.filter(|_| algorithm == its);
    let length = entry.length.filter(|n| *n > 0).ok_or("`length` is missing or 0")?;
    let kernel = Kernel {
        precision: entry.dtype,
        shape: Shape {
            batch: entry.batch,
            heads: entry.heads,
            kv_heads: entry.kv_heads.or(entry.heads),
            head_dim: entry.head_dim,
            length: Some(length),
            window: entry.window.or(number_of(Algorithm::Sliding)),
            kept_percent: entry.topk.or(number_of(Algorithm::TopK)),
            chunk: entry.chunk.or(number_of(Algorithm::Chunked)),
            ..Shape::default()
        },
        pass: entry.backward.map(|backward| match backward {
            true => Pass::ForwardBackward,
            false => Pass::Forward,
        }),
        algorithm: Some(algorithm),
        // Without a field, the suffix `_causal` of the name decides.
        causal: Some(entry.causal.unwrap_or(causal)),
        ..Kernel::of(Class::Attention)
    };
    let outcome = match &entry.error {
        Some(reason) => Outcome::Failed { reason: reason.clone() },
        None => Outcome::Measured(measured(&entry)?),
    };
    Ok(Measurement {
        kernel,
        bytes: None,
        flops: None,
        implementation: None,
        outcome,
    })
}

fn measured(entry: &Entry) -> Result<Measured, String> {
    for (name, ms) in [("ms", entry.ms), ("ms_min", entry.ms_min), ("ms_max", entry.ms_max)] {
        if ms.is_some_and(|ms| !ms.is_finite() || ms <= 0.0) {
            return Err(format!("`{name}` is no time above 0"));
        }
    }
    if entry.ms.is_none() && entry.peak_extra_bytes.is_none() {
        return Err("neither `ms` nor `peak_extra_bytes` is there".into());
    }
    let ns = |ms: f64| (ms * 1e6) as u64;
    Ok(Measured {
        timer: Timer::Unstated,
        launches_per_sample: 1,
        samples_ns: Vec::new(),
        summary: entry.ms.map(|ms| Summary {
            median_ns: ns(ms),
            min_ns: ns(entry.ms_min.unwrap_or(ms)),
            max_ns: ns(entry.ms_max.unwrap_or(ms)),
            median_deviation_ns: None,
            outliers: None,
        }),
        peak_extra_bytes: entry.peak_extra_bytes,
        check: None,
    })
}

/// Algorithm and options in a name such as `flash_causal`, `topk10`, `sliding512` or `chunked64`.
struct Variant {
    algorithm: Algorithm,
    causal: bool,
    number: Option<u64>,
}

fn variant(name: &str) -> Result<Variant, String> {
    let (base, causal) = match name.strip_suffix("_causal") {
        Some(base) => (base, true),
        None => (name, false),
    };
    let letters = base.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: Option<u64> = base[letters.len()..].parse().ok();
    let found = Algorithm::ALL.into_iter().find(|a| a.name() == letters);
    let algorithm = found.ok_or_else(|| {
        let known: Vec<_> = Algorithm::ALL.iter().map(|a| a.name()).collect();
        let given: String = name.chars().take(40).collect();
        format!("no variant is called \"{given}\"; known: {}", known.join(", "))
    })?;
    let takes_number = matches!(algorithm, Algorithm::Sliding | Algorithm::TopK | Algorithm::Chunked);
    if number.is_some() && !takes_number {
        return Err(format!("\"{name}\" has a number, but {letters} takes none"));
    }
    Ok(Variant {
        algorithm,
        causal,
        number,
    })
}
