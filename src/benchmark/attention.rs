//! Selects the measured attention kernels of a record.

use crate::{Class, Kernel, Precision, ReadError, Record};
use vramscope_engine::attention::{Algorithm, Call, Pass};
use vramscope_engine::dtype::DType;
use vramscope_engine::units::{Bytes, Seconds};

/// One measured attention.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPoint {
    /// Algorithm of the attention.
    pub algorithm: Algorithm,
    /// Number of queries and keys.
    pub length: u64,
    /// Median time, if measured.
    pub time: Option<Seconds>,
    /// Shortest and longest time, if measured.
    pub time_range: Option<[Seconds; 2]>,
    /// Peak of bytes beyond the inputs, if measured.
    pub peak: Option<Bytes>,
    kernel: Kernel,
}

impl MeasuredPoint {
    /// The attention kernels of a record, in its order.
    pub fn all(record: &Record) -> Vec<Self> {
        record.results.iter().filter_map(Self::of).collect()
    }

    /// Reads the attention kernels of a record from its text.
    ///
    /// # Errors
    /// If the text is not a record, or the record has no attention kernel.
    pub fn read(text: &str) -> Result<Vec<Self>, ReadError> {
        let points = Self::all(&Record::read(text)?);
        match points.is_empty() {
            true => Err(ReadError("the record holds no measured attention".into())),
            false => Ok(points),
        }
    }

    fn of(result: &crate::Measurement) -> Option<Self> {
        let kernel = &result.kernel;
        let measured = result.measured().filter(|_| kernel.class == Class::Attention)?;
        let seconds = |ns: u64| Seconds::new(ns as f64 / 1e9);
        let summary = measured.summary.as_ref();
        Some(Self {
            algorithm: kernel.algorithm?,
            length: kernel.shape.length?,
            time: summary.map(|s| seconds(s.median_ns)),
            time_range: summary.map(|s| [seconds(s.min_ns), seconds(s.max_ns)]),
            peak: measured.peak_extra_bytes.map(Bytes::new),
            kernel: kernel.clone(),
        })
    }

    /// Returns true if this point measured the call: everything that the kernel states agrees with it.
    pub fn is_of(&self, call: &Call) -> bool {
        let is = |stated: Option<u64>, asked: u64| stated.is_none_or(|n| n == asked);
        let kernel = &self.kernel;
        let shape = &kernel.shape;
        let own = match self.algorithm {
            Algorithm::Sliding => is(shape.window, call.window),
            Algorithm::TopK => is(shape.kept_percent, call.kept_percent),
            Algorithm::Chunked => is(shape.chunk, call.chunk),
            _ => true,
        };
        let precision = kernel.precision.is_none_or(|p| is_type(p, call.dtype));
        let heads = is(shape.heads, call.heads) && is(shape.kv_heads, call.kv_heads);
        let pass = kernel.pass.is_none_or(|pass| match pass {
            crate::Pass::Forward => call.pass == Pass::Forward,
            crate::Pass::ForwardBackward => call.pass == Pass::Training,
            crate::Pass::Backward => false,
        });
        let causal = kernel.causal.is_none_or(|causal| causal == call.causal);
        own && precision && heads && pass && causal && is(shape.batch, call.batch) && is(shape.head_dim, call.width)
    }
}

fn is_type(precision: Precision, dtype: DType) -> bool {
    match precision {
        Precision::Bf16 => dtype == DType::Bf16,
        Precision::Fp16 => dtype == DType::F16,
        Precision::Fp32 => dtype == DType::F32,
        // The page asks about full fp32.
        Precision::Tf32 => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn points(text: &str) -> Vec<MeasuredPoint> {
        MeasuredPoint::read(text).expect("it is a record")
    }

    #[test]
    fn a_record_without_attention_is_refused() {
        let error = MeasuredPoint::read(r#"{"attention":[]}"#).expect_err("it is empty");
        assert!(error.0.contains("no measured attention"));
    }

    #[test]
    fn both_older_forms_are_read() {
        let object = r#"{"attention":[{"variant":"flash","length":128,"ms":0.3,"peak_extra_bytes":2115584}]}"#;
        let lines = r#"{"impl":"flash","B":1,"H":16,"D":64,"L":128,"dtype":"bf16","backward":true,"ms":0.3,"peak_extra_bytes":2115584}"#;
        for text in [object, lines] {
            let point = &points(text)[0];
            assert_eq!((point.algorithm, point.length), (Algorithm::Flash, 128));
            assert_eq!(point.peak, Some(Bytes::new(2_115_584)));
            assert!(point.is_of(&call()));
        }
    }

    #[test]
    fn what_a_point_states_must_agree() {
        let point = |name: &str, rest: &str| {
            let text = format!(r#"{{"attention":[{{"variant":"{name}","length":128,"ms":1{rest}}}]}}"#);
            points(&text).remove(0)
        };
        assert!(point("sliding512", "").is_of(&call()) && !point("sliding256", "").is_of(&call()));
        assert!(!point("flash_causal", "").is_of(&call()) && !point("flash", r#","batch":8"#).is_of(&call()));
        assert!(!point("flash", r#","dtype":"fp16""#).is_of(&call()));
        assert!(point("flash", r#","dtype":"bfloat16""#).is_of(&call()));
        assert!(!point("flash", r#","backward":false"#).is_of(&call()));
    }
}
