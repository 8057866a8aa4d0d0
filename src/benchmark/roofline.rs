//! Measured roofline of a card, and its kernels under it.

use super::{Class, Kernel, Precision, Record};
use vramscope_engine::units::Seconds;

/// Best measured rates of a card.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reach {
    /// Bytes that memory reads and writes per second, from the largest copy within the card, which no cache
    /// accelerates.
    pub memory: Option<f64>,
    /// Bytes per second from the host's pinned memory to the card, from the largest copy.
    pub to_device: Option<f64>,
    /// Bytes per second from the card to the host's pinned memory, from the largest copy.
    pub to_host: Option<f64>,
    /// Operations per second of the fastest matrix product, by type.
    pub products: Vec<(Precision, f64)>,
    /// Operations per second of the fastest forward attention, by type.
    pub attention: Vec<(Precision, f64)>,
    /// Time from one launch of an empty kernel to the next.
    pub launch: Option<Seconds>,
}

/// A kernel under the roofline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Operations per byte that the kernel must move.
    pub intensity: f64,
    /// Operations per second.
    pub rate: f64,
}

impl Reach {
    /// Determines the best rates in a record.
    pub fn of(record: &Record) -> Self {
        let mut reach = Self {
            memory: largest_copy(record, Class::DeviceCopy),
            to_device: largest_copy(record, Class::HostToDevice),
            to_host: largest_copy(record, Class::DeviceToHost),
            ..Self::default()
        };
        for result in &record.results {
            let Kernel {
                class, precision, pass, ..
            } = &result.kernel;
            let forward = pass.is_none_or(|pass| pass == super::Pass::Forward);
            match (class, precision, result.flops_per_s()) {
                (Class::Launch, _, _) => reach.launch = result.time(),
                (Class::Gemm, Some(precision), Some(rate)) => raise(&mut reach.products, *precision, rate),
                (Class::Attention, Some(precision), Some(rate)) if forward => {
                    raise(&mut reach.attention, *precision, rate);
                }
                _ => {}
            }
        }
        reach
    }

    /// Operations per second of the fastest product in this type.
    pub fn product(&self, precision: Precision) -> Option<f64> {
        of(&self.products, precision)
    }

    /// Most operations per second that this card can reach at `intensity` operations per byte.
    pub fn roof(&self, precision: Precision, intensity: f64) -> Option<f64> {
        Some(self.product(precision)?.min(self.memory? * intensity))
    }
}

impl Record {
    /// The kernels in this type that state both operations and bytes.
    pub fn dots(&self, precision: Precision) -> Vec<Dot<'_>> {
        let of_type = self.results.iter().filter(|r| r.kernel.precision == Some(precision));
        of_type
            .filter_map(|result| {
                let bytes = result.bytes.filter(|bytes| *bytes > 0)?;
                Some(Dot {
                    kernel: &result.kernel,
                    intensity: result.kernel.flops()? as f64 / bytes as f64,
                    rate: result.flops_per_s()?,
                })
            })
            .collect()
    }
}

fn largest_copy(record: &Record, class: Class) -> Option<f64> {
    let copies = record.results.iter().filter(|result| {
        let kernel = &result.kernel;
        kernel.class == class && kernel.pinned != Some(false) && result.bytes_per_s().is_some()
    });
    copies.max_by_key(|result| result.kernel.shape.bytes)?.bytes_per_s()
}

fn of(rates: &[(Precision, f64)], precision: Precision) -> Option<f64> {
    rates.iter().find(|(p, _)| *p == precision).map(|(_, rate)| *rate)
}

fn raise(rates: &mut Vec<(Precision, f64)>, precision: Precision, rate: f64) {
    match rates.iter_mut().find(|(p, _)| *p == precision) {
        Some((_, best)) => *best = best.max(rate),
        None => rates.push((precision, rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_h200_reaches_what_its_record_says() {
        let record = Record::read(include_str!("../../tests/data/records/h200.json")).expect("a record");
        let reach = Reach::of(&record);
        let near = |value: Option<f64>, wanted: f64| value.is_some_and(|v| (v / wanted - 1.0).abs() < 0.01);
        // 8 589 934 592 bytes in 2.000 ms, and 268 435 456 in 4.839 ms.
        assert!(
            near(reach.memory, 4.295e12) && near(reach.to_device, 55.5e9),
            "{reach:?}"
        );
        let bf16 = reach.product(Precision::Bf16).expect("products in bf16");
        assert!(reach.products.iter().all(|(_, rate)| *rate <= bf16 * 1.1), "{reach:?}");
        // Left of the ridge memory is the limit, right of it arithmetic.
        assert_eq!(reach.roof(Precision::Bf16, 1.0), reach.memory);
        assert_eq!(reach.roof(Precision::Bf16, 1e6), Some(bf16));
        let dots = record.dots(Precision::Bf16);
        let gelu = dots.iter().find(|d| d.kernel.class == Class::Gelu).expect("gelu");
        assert!((gelu.intensity - 1.25).abs() < 1e-9, "5 operations to 4 bytes");
        assert!(dots.iter().all(|dot| dot.rate.is_finite() && dot.intensity.is_finite()));
    }

    #[test]
    fn what_was_not_measured_is_not_reached() {
        let record = Record::read(include_str!("../../tests/data/records/example.json")).expect("a record");
        let reach = Reach::of(&record);
        assert_eq!((reach.memory, reach.launch), (None, None));
        assert_eq!(reach.roof(Precision::Bf16, 1.0), None);
        assert!(reach.product(Precision::Bf16).is_some());
    }
}
