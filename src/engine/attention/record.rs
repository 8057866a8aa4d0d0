//! Measured points of attention, read from a person's file.

use std::fmt;

use serde::Deserialize;

use super::call::{Algorithm, Call, Pass};
use crate::units::{Bytes, Seconds};

/// One measured attention.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPoint {
    /// What ran.
    pub algorithm: Algorithm,
    /// Queries and keys.
    pub length: u64,
    /// Median time, where measured.
    pub time: Option<Seconds>,
    /// Lowest and highest time, where stated.
    pub time_range: Option<[Seconds; 2]>,
    /// Highest bytes beyond the inputs, where measured.
    pub peak: Option<Bytes>,
    stated: Entry,
}

/// All points of a file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// In the order of the file.
    pub points: Vec<MeasuredPoint>,
    /// Entries that say that their run failed.
    pub failed: usize,
}

/// Why a file is no record: what was found, where, what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError(pub String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

/// An entry as it stands in a file. What it does not state is taken to be as asked about.
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
    dtype: Option<String>,
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

impl Record {
    /// Reads `{"attention": [{"variant": …, "length": …, "ms": …, "peak_extra_bytes": …}, …]}`, or
    /// one such entry a line.
    ///
    /// # Errors
    /// When the text is neither, or an entry lacks what it needs; the message names the entry.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let entries = entries(text)?;
        let mut record = Self::default();
        for (i, entry) in entries.into_iter().enumerate() {
            if entry.error.is_some() {
                record.failed += 1;
                continue;
            }
            let point = MeasuredPoint::of(entry).map_err(|why| RecordError(format!("entry {}: {why}", i + 1)))?;
            record.points.push(point);
        }
        if record.points.is_empty() {
            return Err(RecordError("the record holds no measured attention".into()));
        }
        Ok(record)
    }
}

fn entries(text: &str) -> Result<Vec<Entry>, RecordError> {
    const WANTED: &str = "{\"attention\": [{\"variant\": \"flash\", \"length\": 2048, \"ms\": 0.33, \
                          \"peak_extra_bytes\": 33818624}]}";
    match serde_json::from_str::<File>(text) {
        Ok(file) => return Ok(file.attention),
        Err(e) if text.contains("\"attention\"") => {
            return Err(RecordError(format!(
                "the record is not as it should be: {e}; wanted {WANTED}"
            )));
        }
        Err(_) => {}
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| RecordError(format!("line {}: {e}; wanted {WANTED}", i + 1)))
    };
    lines.enumerate().map(read).collect()
}

impl MeasuredPoint {
    fn of(mut entry: Entry) -> Result<Self, String> {
        let name = entry.variant.clone().ok_or("`variant` is missing")?;
        let algorithm = entry.read_variant(&name)?;
        let length = entry.length.filter(|n| *n > 0).ok_or("`length` is missing or 0")?;
        for (name, ms) in [("ms", entry.ms), ("ms_min", entry.ms_min), ("ms_max", entry.ms_max)] {
            if ms.is_some_and(|ms| !ms.is_finite() || ms <= 0.0) {
                return Err(format!("`{name}` is no time above 0"));
            }
        }
        if entry.ms.is_none() && entry.peak_extra_bytes.is_none() {
            return Err("neither `ms` nor `peak_extra_bytes` is there".into());
        }
        let seconds = |ms: f64| Seconds::new(ms / 1e3);
        let range = [entry.ms_min.or(entry.ms), entry.ms_max.or(entry.ms)];
        Ok(Self {
            algorithm,
            length,
            time: entry.ms.map(seconds),
            time_range: range[0].zip(range[1]).map(|(a, b)| [seconds(a), seconds(b)]),
            peak: entry.peak_extra_bytes.map(Bytes::new),
            stated: entry,
        })
    }

    /// Whether it measured this call: all that it states agrees.
    pub fn is_of(&self, call: &Call) -> bool {
        let is = |stated: Option<u64>, asked: u64| stated.is_none_or(|n| n == asked);
        let e = &self.stated;
        let own = match self.algorithm {
            Algorithm::Sliding => is(e.window, call.window),
            Algorithm::TopK => is(e.topk, call.kept_percent),
            Algorithm::Chunked => is(e.chunk, call.chunk),
            _ => true,
        };
        let dtype = e.dtype.as_deref().is_none_or(|name| is_type(name, call));
        let heads = is(e.heads, call.heads) && is(e.kv_heads.or(e.heads), call.kv_heads);
        let backward = e.backward.is_none_or(|b| b == (call.pass == Pass::Training));
        // Only the fused kernels are measured without saying so in both ways.
        let causal = e.causal.is_none_or(|c| c == call.causal);
        own && dtype && heads && backward && causal && is(e.batch, call.batch) && is(e.head_dim, call.width)
    }
}

fn is_type(name: &str, call: &Call) -> bool {
    let known = call.dtype.name();
    let short = match known {
        "bfloat16" => "bf16",
        "float16" => "fp16",
        _ => "fp32",
    };
    name == short || name == known
}

impl Entry {
    /// The algorithm of a name such as `flash_causal`, `topk10`, `sliding512` or `chunked64`; what the
    /// name states is noted.
    fn read_variant(&mut self, name: &str) -> Result<Algorithm, String> {
        let (base, causal) = match name.strip_suffix("_causal") {
            Some(base) => (base, true),
            None => (name, false),
        };
        self.causal = self.causal.or(Some(causal));
        let letters = base.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u64> = base[letters.len()..].parse().ok();
        let found = Algorithm::ALL.into_iter().find(|a| a.name() == letters);
        let algorithm = found.ok_or_else(|| {
            let known: Vec<_> = Algorithm::ALL.iter().map(|a| a.name()).collect();
            let given: String = name.chars().take(40).collect();
            format!("no variant is called \"{given}\"; known: {}", known.join(", "))
        })?;
        match algorithm {
            Algorithm::Sliding => self.window = self.window.or(number),
            Algorithm::TopK => self.topk = self.topk.or(number),
            Algorithm::Chunked => self.chunk = self.chunk.or(number),
            _ if number.is_some() => return Err(format!("\"{name}\" has a number, but {letters} takes none")),
            _ => {}
        }
        Ok(algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn call() -> Call {
        Call {
            batch: 1,
            heads: 16,
            kv_heads: 16,
            width: 64,
            dtype: DType::Bf16,
            causal: false,
            window: 512,
            kept_percent: 10,
            chunk: 64,
            pass: Pass::Training,
        }
    }

    #[test]
    fn both_forms_are_read() {
        let object = r#"{"attention":[{"variant":"flash","length":128,"ms":0.3,"peak_extra_bytes":2115584}]}"#;
        let lines = r#"{"impl":"flash","B":1,"H":16,"D":64,"L":128,"dtype":"bf16","backward":true,"ms":0.3,"peak_extra_bytes":2115584}"#;
        for text in [object, lines] {
            let record = Record::read(text).expect("it is a record");
            let point = &record.points[0];
            assert_eq!((point.algorithm, point.length), (Algorithm::Flash, 128));
            assert_eq!(point.peak, Some(Bytes::new(2_115_584)));
            assert!(point.is_of(&call()));
        }
    }

    #[test]
    fn what_a_point_states_must_agree() {
        let point = |name: &str, rest: &str| {
            let text = format!(r#"{{"attention":[{{"variant":"{name}","length":128,"ms":1{rest}}}]}}"#);
            Record::read(&text).expect("it is a record").points.remove(0)
        };
        assert!(point("sliding512", "").is_of(&call()) && !point("sliding256", "").is_of(&call()));
        assert!(!point("flash_causal", "").is_of(&call()) && !point("flash", r#","batch":8"#).is_of(&call()));
        assert!(!point("flash", r#","dtype":"fp16""#).is_of(&call()));
        assert!(!point("flash", r#","backward":false"#).is_of(&call()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| Record::read(text).expect_err("it is no record").0;
        assert!(error("hello").starts_with("line 1:"));
        assert!(error(r#"{"attention":3}"#).contains("invalid type"));
        assert!(error(r#"{"attention":[{"variant":"flush","length":1,"ms":1}]}"#).contains("no variant is called"));
        assert!(error(r#"{"attention":[{"variant":"flash","ms":1}]}"#).contains("entry 1: `length`"));
        assert!(error(r#"{"attention":[{"variant":"flash","length":9}]}"#).contains("neither `ms`"));
        assert!(error(r#"{"attention":[{"variant":"flash","length":9,"ms":-1}]}"#).contains("`ms` is no time"));
        assert!(error(r#"{"attention":[]}"#).contains("no measured attention"));
    }
}
