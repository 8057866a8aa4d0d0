//! Detects measurements that the named card cannot have made. They are quarantined until a person has reviewed them.

use vramscope_benchmark::{Class, Measurement, Outcome, Record, Summary};
use vramscope_engine::device::Device;
use vramscope_engine::units::Bytes;

/// Factor by which a board may exceed its data sheet. Data sheets state rates at a boost clock that boards exceed
/// (H200: up to 1980 MHz) and round bandwidths (H200: 4.8 TB/s for 3201 MHz × 2 × 6144 bit = 4.92); factory-overclocked
/// boards add several percent. The factor only decides what a person reviews.
const ABOVE_SHEET: f64 = 1.1;

/// Describes the first impossible value in a record; `None` if all are plausible.
pub fn implausible(record: &Record) -> Option<String> {
    let card = Device::by_name(&record.device.name).ok();
    (1..).zip(&record.results).find_map(|(number, result)| {
        let why = of_result(record, result, card)?;
        Some(format!("result {number} ({}): {why}", result.kernel.class.name()))
    })
}

fn of_result(record: &Record, result: &Measurement, card: Option<&Device>) -> Option<String> {
    let Outcome::Measured(measured) = &result.outcome else {
        return None;
    };
    if let Some(summary) = &measured.summary {
        if summary.median_ns == 0 {
            return Some("it took no time".into());
        }
        let samples = Summary::of(&measured.samples_ns);
        let of_samples = samples.is_none_or(|of| {
            (of.median_ns, of.min_ns, of.max_ns) == (summary.median_ns, summary.min_ns, summary.max_ns)
        });
        if !of_samples {
            return Some("its summary is not that of its samples".into());
        }
    }
    if let (Some(stated), Some(counted)) = (result.flops, result.kernel.flops())
        && stated != counted
    {
        return Some(format!(
            "{stated} operations are stated; a kernel of this shape has {counted}"
        ));
    }
    let card = card?;
    too_many_operations(result, card).or_else(|| too_many_bytes(record, result, card))
}

fn too_many_operations(result: &Measurement, card: &Device) -> Option<String> {
    if !matches!(result.kernel.class, Class::Gemm | Class::Attention) {
        return None;
    }
    let precision = result.kernel.precision?;
    let (peak, rate) = (precision.peak(&card.peak_tflops)?, result.flops_per_s()? / 1e12);
    (rate > peak * ABOVE_SHEET).then(|| {
        let (precision, card) = (precision.name(), &card.name);
        format!("{rate:.0} TFLOP/s in {precision}; the peak of {card} is {peak:.0}")
    })
}

fn too_many_bytes(record: &Record, result: &Measurement, card: &Device) -> Option<String> {
    let (bytes, seconds) = (result.bytes? as f64, result.time()?.get());
    // If no data sheet states the cache, use the driver's value in the record.
    let cache = card.l2().map(Bytes::get).or(record.device.l2_bytes);
    // Right after its inputs were written, a kernel finds up to a cache's worth of them in the cache.
    let (what, link, kept) = match result.kernel.class {
        Class::HostToDevice | Class::DeviceToHost => ("host link", card.pcie()?, 0.0),
        Class::Launch | Class::Gemm | Class::Attention | Class::PeerCopy => return None,
        class if class.is_collective() => return None,
        _ => ("memory", card.bandwidth()?, cache? as f64),
    };
    let peak = link.as_gb_per_s();
    let rate = (bytes - kept) / seconds / 1e9;
    (rate > peak * ABOVE_SHEET).then(|| {
        format!(
            "{rate:.0} GB/s beyond its cache; the {what} of {} gives {peak:.0}",
            card.name
        )
    })
}

#[cfg(test)]
mod tests {
    use vramscope_benchmark::{Kernel, Measured, Timer};

    use super::*;
    use crate::kernels::suite;
    use crate::kernels::work::Work;

    const EXAMPLE: &str = include_str!("../../../tests/data/records/example.json");

    fn reason(from: &str, to: &str) -> Option<String> {
        assert!(EXAMPLE.contains(from), "{from}");
        implausible(&Record::read(&EXAMPLE.replace(from, to)).expect("a record"))
    }

    #[test]
    fn a_measured_record_is_plausible_and_an_unknown_card_is_not_judged() {
        assert_eq!(reason("NVIDIA H200", "NVIDIA H200"), None);
        assert_eq!(reason("\"NVIDIA H200\"", "\"Some GPU\""), None);
    }

    #[test]
    fn a_full_record_of_a_card_that_was_not_used_before_is_plausible() {
        let record = Record::read(include_str!("../../../tests/data/records/h100.json")).expect("a record");
        assert_eq!(record.results.len(), 1176);
        assert_eq!(implausible(&record), None);
    }

    /// A result at exactly the data sheet's rate, which every board may reach.
    fn at_the_sheets_rate(kernel: &Kernel, card: &Device) -> Measurement {
        let work = Work::of(kernel);
        let peak = kernel.precision.and_then(|precision| precision.peak(&card.peak_tflops));
        let arithmetic = kernel.flops().unwrap_or(0) as f64 / (peak.unwrap_or(1.0) * 1e12);
        let link = match kernel.class {
            Class::HostToDevice | Class::DeviceToHost => card.pcie(),
            _ => card.bandwidth(),
        };
        let moved = work.bytes as f64 / (link.map_or(1.0, |link| link.as_gb_per_s()) * 1e9);
        let ns = (arithmetic.max(moved) * 1e9).ceil().max(1.0) as u64;
        Measurement {
            kernel: kernel.clone(),
            bytes: Some(work.bytes),
            flops: kernel.flops(),
            implementation: None,
            outcome: Outcome::Measured(Measured {
                timer: Timer::Device,
                launches_per_sample: 1,
                samples_ns: vec![ns],
                summary: Summary::of(&[ns]),
                peak_extra_bytes: None,
                check: None,
            }),
        }
    }

    #[test]
    fn every_kernel_of_the_suite_is_plausible_on_every_card_and_with_one_operation_more_on_none() {
        let mut record = Record::read(EXAMPLE).expect("a record");
        for card in Device::all() {
            record.device.name = card.name.to_owned();
            for kernel in suite::kernels(false, 8, Some(card.memory().get())) {
                let result = at_the_sheets_rate(&kernel, card);
                let more = Measurement {
                    flops: result.flops.map(|flops| flops + 1),
                    ..result.clone()
                };
                let (name, label) = (&card.name, kernel.label());
                record.results = vec![result];
                assert_eq!(implausible(&record), None, "{name}: {label}");
                record.results = vec![more];
                let why = implausible(&record).unwrap_or_default();
                assert!(why.contains("operations are stated"), "{name}: {label}: {why}");
            }
        }
    }

    #[test]
    fn more_than_the_card_can_do_is_named() {
        // 2 · 8192³ operations in 1.39 ms are 789 TFLOP/s; an A100 has 312 in bf16.
        let faster = reason("\"NVIDIA H200\"", "\"NVIDIA A100-SXM4-80GB\"").expect("implausible");
        assert!(
            faster.starts_with("result 1 (gemm): 789 TFLOP/s in bf16; the peak of A100"),
            "{faster}"
        );
        let other = reason("\"flops\": 1099511627776", "\"flops\": 109951162777").expect("implausible");
        assert!(other.contains("a kernel of this shape has 1099511627776"), "{other}");
        let summary = reason("\"median_ns\": 1393000", "\"median_ns\": 1392000").expect("implausible");
        assert!(summary.contains("not that of its samples"), "{summary}");
    }

    #[test]
    fn a_copy_cannot_outrun_memory_but_may_find_its_inputs_in_the_cache() {
        let copy = |bytes: u64, ns: u64| {
            let text = format!(
                r#"{{"schema_version": 1, "tool": {{"name": "vramscope", "version": "0.1.0"}},
                "device": {{"name": "NVIDIA H200", "backend": "cuda", "l2_bytes": 62914560}}, "results": [{{
                "kernel": {{"class": "device_copy", "shape": {{"bytes": {bytes}}}}}, "bytes": {bytes},
                "outcome": {{"measured": {{"timer": "device", "launches_per_sample": 1, "samples_ns": [{ns}],
                "summary": {{"median_ns": {ns}, "min_ns": {ns}, "max_ns": {ns}}}}}}}}}]}}"#
            );
            implausible(&Record::read(&text).expect("a record"))
        };
        // 4.8 GB take one millisecond.
        assert_eq!(copy(4_800_000_000, 1_000_000), None);
        assert!(
            copy(4_800_000_000, 800_000)
                .expect("implausible")
                .contains("the memory of H200 gives 4800")
        );
        // 40 MB in 4 µs are 10 TB/s, from the cache.
        assert_eq!(copy(40_000_000, 4_000), None);
        assert!(copy(40_000_000, 0).expect("implausible").contains("no time"));
    }
}
