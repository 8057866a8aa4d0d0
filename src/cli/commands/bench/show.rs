//! Shows a record as tables, or as CSV.

use anstyle::Style;
use vramscope_benchmark::{BenchedDevice, Class, Host, Measurement, Outcome, Record};
use vramscope_engine::units::Bytes;

use crate::output::list::{self, Edge};
use crate::phrases::phrase;

/// Describes a card in one line.
pub fn card(device: &BenchedDevice) -> String {
    let mut words = vec![device.name.clone()];
    words.extend(device.memory_bytes.map(|n| Bytes::new(n).to_string()));
    words.extend(device.multiprocessors.map(|n| format!("{n} multiprocessors")));
    words.extend(device.sm_clock_max_mhz.map(|mhz| format!("up to {mhz} MHz")));
    words.extend(device.power_limit_w.map(|w| format!("{w:.0} W")));
    words.extend(device.ecc.map(|on| if on { "ECC on" } else { "ECC off" }.to_owned()));
    words.extend(device.driver.as_ref().map(|version| format!("driver {version}")));
    words.extend(device.libraries.iter().map(|l| format!("{} {}", l.name, l.version)));
    words.join(", ")
}

/// Describes a host in one line.
fn host(host: &Host) -> String {
    let processor = host.processor.as_deref().unwrap_or("unknown processor");
    match (&host.software, &host.reason) {
        (Some(software), _) => format!("host: {processor}, {} probes with {software}", host.us.len()),
        (None, Some(reason)) => format!("host: the processor alone was measured: {reason}"),
        (None, None) => format!("host: {processor}"),
    }
}

/// Formats a record as tables.
pub fn text(record: &Record) -> String {
    let mut text = format!("{}\n", card(&record.device));
    text.extend(record.host.iter().map(|measured| format!("{}\n", host(measured))));
    for warning in &record.conditions.warnings {
        text += &format!("warning: {warning}\n");
    }
    if !record.run.complete {
        text += "The run was interrupted: this is what it measured.\n";
    }
    for class in Class::ALL {
        let results: Vec<_> = record.results.iter().filter(|r| r.kernel.class == class).collect();
        if !results.is_empty() {
            text += "\n";
            text += &table(&results);
        }
    }
    text + &counts(record)
}

fn table(results: &[&Measurement]) -> String {
    let heads = [
        ("kernel", Edge::Left),
        ("median", Edge::Right),
        ("spread", Edge::Right),
        ("rate", Edge::Right),
        ("extra", Edge::Right),
        ("ran", Edge::Left),
    ];
    let rows: Vec<_> = results.iter().map(|result| cells(result)).collect();
    list::render(heads, &rows)
}

fn cells(result: &Measurement) -> [String; 6] {
    let summary = result.measured().and_then(|m| m.summary.as_ref());
    let spread = summary.and_then(|s| Some(s.median_deviation_ns? as f64 / s.median_ns.max(1) as f64));
    let extra = result.measured().and_then(|m| m.peak_extra_bytes).filter(|n| *n > 0);
    let ran = match &result.outcome {
        Outcome::Measured(_) => result.implementation.as_ref().map_or_else(String::new, |i| {
            let version = i.version.as_deref().unwrap_or_default();
            format!("{} {version}", i.library)
        }),
        other => why(other),
    };
    [
        result.kernel.label(),
        summary.map_or_else(|| "-".into(), |s| time(s.median_ns)),
        spread.map_or_else(String::new, |s| format!("±{:.1}%", 100.0 * s)),
        rate(result).unwrap_or_default(),
        extra.map_or_else(String::new, |n| Bytes::new(n).to_string()),
        ran.trim_end().to_owned(),
    ]
}

/// Reason why there is no time.
pub fn why(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured(_) => String::new(),
        Outcome::OutOfMemory {
            needed_bytes,
            free_bytes,
        } => phrase!(
            benchmarks.does_not_fit,
            needed = Bytes::new(*needed_bytes),
            free = Bytes::new(*free_bytes)
        ),
        Outcome::Unsupported { reason } => reason.clone(),
        Outcome::FailedCheck(_) => phrase!(benchmarks.wrong_result).into(),
        Outcome::Failed { reason } => format!("failed: {reason}"),
    }
}

/// Operations per second for compute kernels, bytes per second for others; for collectives, bytes over each card's
/// link.
fn rate(result: &Measurement) -> Option<String> {
    match result.kernel.class {
        Class::Gemm | Class::Attention => Some(format!("{:.1} TFLOP/s", result.flops_per_s()? / 1e12)),
        class if class.is_collective() => Some(format!("{:.1} GB/s bus", result.bus_bytes_per_s()? / 1e9)),
        _ => Some(format!("{:.1} GB/s", result.bytes_per_s()? / 1e9)),
    }
}

/// Formats nanoseconds in a suitable unit.
pub fn time(ns: u64) -> String {
    let x = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} us", x / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", x / 1e6),
        _ => format!("{:.3} s", x / 1e9),
    }
}

fn counts(record: &Record) -> String {
    let measured = record.results.iter().filter(|r| r.measured().is_some()).count();
    let compared = record
        .results
        .iter()
        .filter(|r| r.measured().is_some_and(|m| m.check.is_some()))
        .count();
    let bold = Style::new().bold();
    let mut text =
        format!("\n{bold}{measured} measured{bold:#}, {compared} of them compared with a reference on the CPU");
    let without = record.results.len() - measured;
    if without > 0 {
        text += &format!("; {without} without a time, each with its reason");
    }
    text + ".\n"
}

/// Formats a record as CSV: a header, and one line per kernel.
pub fn csv(record: &Record) -> String {
    let mut text = "kernel,class,precision,outcome,median_ns,min_ns,max_ns,median_deviation_ns,samples,flops,bytes,\
                    peak_extra_bytes,max_error,tolerance,library,version,implementation\n"
        .to_owned();
    for result in &record.results {
        let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
        let measured = result.measured();
        let summary = measured.and_then(|m| m.summary.as_ref());
        let check = measured.and_then(|m| m.check.as_ref());
        let ran = result.implementation.as_ref();
        let outcome = match &result.outcome {
            Outcome::Measured(_) => "measured".to_owned(),
            other => why(other),
        };
        let cells = [
            result.kernel.label(),
            result.kernel.class.name().into(),
            result.kernel.precision.map_or("", |p| p.name()).into(),
            outcome,
            number(summary.map(|s| s.median_ns)),
            number(summary.map(|s| s.min_ns)),
            number(summary.map(|s| s.max_ns)),
            number(summary.and_then(|s| s.median_deviation_ns)),
            number(measured.map(|m| m.samples_ns.len() as u64)),
            number(result.kernel.flops()),
            number(result.bytes),
            number(measured.and_then(|m| m.peak_extra_bytes)),
            check
                .and_then(|c| c.max_error)
                .map_or_else(String::new, |e| format!("{e:e}")),
            check.map_or_else(String::new, |c| format!("{:e}", c.tolerance)),
            ran.map_or_else(String::new, |i| i.library.clone()),
            ran.and_then(|i| i.version.clone()).unwrap_or_default(),
            ran.map_or_else(String::new, |i| i.kernel.clone()),
        ];
        text += &cells.map(|cell| quoted(&cell)).join(",");
        text.push('\n');
    }
    text
}

/// Quotes cells that contain a comma, a quote or a line break (RFC 4180).
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}
