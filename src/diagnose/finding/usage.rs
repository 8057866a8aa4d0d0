//! Finds causes in the output of `nvidia-smi` (course rows 9.smi, 11.bands).

use super::{Action, Cause, Confidence, Finding, Growth, Holder, growth};
use crate::log::Point;
use crate::smi::{Smi, SmiDevice};
use vramscope_engine::units::Bytes;

/// Fraction of memory in use above which a device is nearly full.
const NEARLY_FULL: f64 = 0.9;
/// Utilization below which a device counts as idle.
const LOW: f64 = 0.7;

/// Findings about devices and their processes.
pub fn findings(smi: &Smi) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for device in &smi.devices {
        found.extend(others(smi, device));
        found.extend(leak(device));
        found.extend(nearly_full(device));
        found.extend(utilization(device));
    }
    found
}

fn most_used(device: &SmiDevice) -> Option<Bytes> {
    device.samples.iter().filter_map(|sample| sample.used).max()
}

fn nearly_full(device: &SmiDevice) -> Option<Finding> {
    let (used, total) = (most_used(device)?, device.total?);
    let is_full = used.get() as f64 > total.get() as f64 * NEARLY_FULL;
    let cause = Cause::NearlyFull {
        device: device.index,
        used,
        total,
    };
    // Much of it may be PyTorch's cache: the device's own figure cannot tell.
    is_full.then(|| {
        Finding::new(
            Confidence::Possible,
            cause,
            &[Action::SmallerBatch, Action::Checkpoint, Action::Record],
        )
    })
}

/// Finds several compute processes on one device.
fn others(smi: &Smi, device: &SmiDevice) -> Option<Finding> {
    let mut processes: Vec<Holder> = smi
        .processes
        .iter()
        .filter(|process| process.device == device.index)
        .map(|process| Holder {
            pid: process.pid,
            name: Some(process.name.clone()),
            bytes: process.holds.unwrap_or_default(),
        })
        .collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.bytes));
    // The largest process is assumed to be the one being diagnosed.
    let largest = (!processes.is_empty()).then(|| processes.remove(0))?;
    let held: Bytes = processes.iter().map(|process| process.bytes).sum();
    let total = device.total?;
    if held.get() < total.get() / 20 {
        return None;
    }
    let confidence = if held.get() >= total.get() / 4 {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let cause = Cause::OtherProcesses {
        total: Some(total),
        held,
        own: Some(largest.bytes),
        processes,
    };
    Some(Finding::new(
        confidence,
        cause,
        &[Action::StopOthers, Action::OtherDevice],
    ))
}

fn utilization(device: &SmiDevice) -> Option<Finding> {
    let readings: Vec<f64> = device.samples.iter().filter_map(|sample| sample.utilization).collect();
    let sum: f64 = readings.iter().sum();
    let mean = sum / readings.len() as f64;
    let cause = Cause::Utilization {
        device: device.index,
        mean,
        readings: readings.len() as u64,
    };
    let (confidence, steps): (_, &[Action]) = match mean {
        // A few readings say little about a run whose load comes and goes.
        mean if mean < LOW && readings.len() > 2 => (
            Confidence::Likely,
            &[Action::FeedFaster, Action::FillTheDevice, Action::Trace],
        ),
        mean if mean < LOW => (Confidence::Possible, &[Action::Trace]),
        mean if mean < 0.85 => (Confidence::Possible, &[Action::FillTheDevice, Action::Trace]),
        _ => (Confidence::Note, &[]),
    };
    (!readings.is_empty()).then(|| Finding::new(confidence, cause, steps))
}

/// Finds growth of a device's used memory. This figure includes PyTorch's cache, which hides small growth; growth that
/// still shows is a leak.
fn leak(device: &SmiDevice) -> Option<Finding> {
    let used = device.samples.iter().filter_map(|sample| sample.used);
    let points: Vec<Point> = (1..)
        .zip(used)
        .map(|(step, bytes)| Point {
            step,
            bytes,
            length: None,
        })
        .collect();
    match growth::of("memory.used", &points, device.total)? {
        growth::GrowthVerdict::Leak(finding) => {
            let Cause::Leak(growth) = finding.cause else {
                return None;
            };
            let cause = Cause::Leak(Growth {
                full_at: None,
                ..growth
            });
            Some(Finding::new(
                Confidence::Possible,
                cause,
                &[Action::Record, Action::DetachLoss, Action::NoLists],
            ))
        }
        growth::GrowthVerdict::Steady(_) => None,
    }
}
