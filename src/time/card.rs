//! Kernel times of one benchmark record, as text small enough for a browser to store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::measured::{Measured, MeasuredError, points_of};
use super::of_record::points;
use vramscope_benchmark::{Host, Record};
use vramscope_engine::dtype::DType;

/// Kernels of a card that a person measured, as far as a training step launches them.
#[derive(Debug, Clone)]
pub struct CardKernels {
    /// ID of the record.
    pub id: String,
    /// Name of the card according to its driver.
    pub device: String,
    /// Date of the measurement.
    pub date: Option<String>,
    /// The measured host.
    pub host: Option<Host>,
    /// Points of kernels by name, `[extents…, µs]`.
    kernels_us: BTreeMap<String, Vec<Vec<f64>>>,
}

#[derive(Serialize, Deserialize)]
struct File {
    id: String,
    device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<Host>,
    kernels_us: BTreeMap<String, Vec<Vec<f64>>>,
}

impl CardKernels {
    /// Text for a record with this ID: `{"id", "device", "date", "host", "kernels_us"}`, with kernels in the format of
    /// [`Measured::read`](super::Measured::read). `None` if the record has no kernel that a step launches.
    pub fn text(id: &str, record: &Record) -> Option<String> {
        let mut kernels_us: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
        for (kind, dtype, extents, seconds) in points(record) {
            let extents = extents.into_iter().map(|n| n as f64);
            // Times are measured in whole nanoseconds.
            let us = (seconds * 1e9).round() / 1e3;
            let point = extents.chain([us]).collect();
            kernels_us
                .entry(format!("{kind} {}", name(dtype)))
                .or_default()
                .push(point);
        }
        let file = File {
            id: id.to_owned(),
            device: record.device.name.clone(),
            date: record.date.clone(),
            host: record.host.clone(),
            kernels_us,
        };
        // Strings and numbers always serialize.
        (!file.kernels_us.is_empty()).then(|| serde_json::to_string(&file).unwrap_or_default())
    }

    /// Reads text that [`Self::text`] wrote.
    ///
    /// # Errors
    /// If the text has another format.
    pub fn read(text: &str) -> Result<Self, MeasuredError> {
        let file: File = serde_json::from_str(text)
            .map_err(|error| MeasuredError(format!("not the kernels of a card ({error}); choose its record again")))?;
        points_of(&file.kernels_us)?;
        Ok(Self {
            id: file.id,
            device: file.device,
            date: file.date,
            host: file.host,
            kernels_us: file.kernels_us,
        })
    }

    /// Converts to a measurement that is compared with `own`, with the host's pace of that one, scaled to the record's host
    /// if it was measured.
    pub fn measured(self, own: &Measured) -> Measured {
        // The points were read before.
        let points = points_of(&self.kernels_us).unwrap_or_default();
        let points = points
            .iter()
            .map(|(kind, dtype, extents, seconds)| (*kind, *dtype, &extents[..], *seconds));
        Measured::of_points(self.device.clone(), points, own).on(self.host.as_ref())
    }
}

/// Name of a dtype in files of measured kernels.
const fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bf16 => "bf16",
        DType::F16 => "f16",
        _ => "f32",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::tape::work::{Class, Launch, Layout};

    const H200: &str = include_str!("../../tests/data/records/h200.json");

    #[test]
    fn a_card_that_was_kept_gives_the_times_of_its_record() {
        let record = Record::read(H200).expect("a record");
        let text = CardKernels::text("abc", &record).expect("kernels");
        assert!(text.len() < 80_000, "{} bytes", text.len());
        let card = CardKernels::read(&text).expect("what was written is read");
        let own = Measured::read(crate::H200).expect("it comes with the program");
        assert_eq!((card.id.as_str(), card.device.as_str()), ("abc", "NVIDIA H200"));
        assert_eq!(card.date, record.date);
        let of_card = card.clone().measured(&own).kernels;
        let of_record = Measured::of_record(&record, &own).kernels;
        for n in [512, 1024, 4096, 5000] {
            let product = Launch {
                name: "",
                class: Class::Matmul(Layout::Tn),
                dtype: DType::Bf16,
                gradient: false,
                scope: 0,
                read: 4 * n * n,
                written: 2 * n * n,
                extents: [n, n, n, 1],
                shared: 1,
            };
            let (kept, first) = (of_card.time(&product), of_record.time(&product));
            let (kept, first) = (kept.expect("measured"), first.expect("measured"));
            assert!((kept / first - 1.0).abs() < 1e-9, "{kept} {first}");
        }
    }

    #[test]
    fn what_is_no_card_says_so() {
        assert!(
            CardKernels::read("{}")
                .expect_err("empty")
                .0
                .contains("choose its record again")
        );
        let nothing = Record::read(include_str!("../../tests/data/records/example.json")).expect("a record");
        let failed = Record {
            results: nothing.results.into_iter().filter(|r| r.time().is_none()).collect(),
            ..Record::read(H200).expect("a record")
        };
        assert_eq!(CardKernels::text("abc", &failed), None);
    }
}
