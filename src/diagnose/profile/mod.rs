//! Reads PyTorch's profiler output: `key_averages().table()` and Chrome traces.

mod table;
#[cfg(test)]
mod tests;
mod trace;

use serde::{Deserialize, Serialize};

use super::log::Point;
use vramscope_engine::units::Bytes;

pub(super) use table::find as find_table;
pub(super) use trace::read as read_trace;

/// Time and memory that a profile attributes to operations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// Operations by their share of the device's time, then of the host's, the largest first.
    pub ops: Vec<Op>,
    /// Fraction of the time in which the device was busy, from 0 to 1. For a table, the device's time divided by the
    /// host's.
    pub busy: Option<f64>,
    /// Largest single allocations, by the operation that made them.
    pub hot_spots: Vec<HotSpot>,
    /// Peak memory of each profiled step; without steps, of equal parts of the time.
    pub memory: Vec<Point>,
}

/// An operation of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// Name of the operation.
    pub name: String,
    /// Kind of work.
    pub work: Work,
    /// Share of the host's time, from 0 to 1.
    pub host: Option<f64>,
    /// Share of the device's time, from 0 to 1.
    pub device: Option<f64>,
}

/// An operation that allocates a lot of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpot {
    /// Name of the operation.
    pub name: String,
    /// Bytes allocated minus bytes freed.
    pub bytes: Bytes,
}

/// Kind of work that an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Waiting for the next batch.
    Data,
    /// Communication between devices.
    Communication,
    /// Copies between host and device.
    Copy,
    /// Waiting for the device.
    Wait,
    /// Attention and its softmax.
    Attention,
    /// Matrix products and convolutions.
    Matmul,
    /// Anything else.
    Other,
}

impl Work {
    /// Kind of work, by the name of an operation or kernel.
    pub fn of(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if has(&["dataloader", "data_loading", "data loading", "dataload"]) {
            Self::Data
        } else if has(&[
            "nccl",
            "all_reduce",
            "allreduce",
            "all_gather",
            "allgather",
            "reduce_scatter",
            "reducescatter",
            "c10d::",
            "broadcast_coalesced",
        ]) {
            Self::Communication
        } else if has(&[
            "memcpy htod",
            "memcpy dtoh",
            "memcpy_htod",
            "aten::_to_copy",
            "aten::copy_",
            "pin_memory",
        ]) {
            Self::Copy
        } else if has(&["synchronize", "aten::item", "_local_scalar_dense"]) {
            Self::Wait
        } else if has(&["attention", "softmax", "flash", "fmha"]) {
            Self::Attention
        } else if has(&["mm", "matmul", "linear", "conv", "cutlass", "einsum", "cublas"]) {
            Self::Matmul
        } else {
            Self::Other
        }
    }
}

/// Largest number of operations, and of hot spots, kept.
const KEPT: usize = 20;

impl Profile {
    fn sort(&mut self) {
        let share = |op: &Op| op.device.unwrap_or(0.0).max(op.host.unwrap_or(0.0));
        self.ops.sort_by(|a, b| share(b).total_cmp(&share(a)));
        self.hot_spots.sort_by_key(|spot| std::cmp::Reverse(spot.bytes));
        // Operations that wait or communicate are all kept, however small.
        let mut kept = 0;
        self.ops.retain(|op| {
            kept += 1;
            kept <= KEPT || matches!(op.work, Work::Data | Work::Communication) && kept <= 50 * KEPT
        });
        self.hot_spots.truncate(KEPT);
    }

    /// Share of the host's time in one kind of work, from 0 to 1.
    pub fn host(&self, work: Work) -> f64 {
        let shares = self.ops.iter().filter(|op| op.work == work);
        shares.filter_map(|op| op.host).sum::<f64>().min(1.0)
    }

    /// Share of the device's time in one kind of work, from 0 to 1.
    pub fn device(&self, work: Work) -> f64 {
        let shares = self.ops.iter().filter(|op| op.work == work);
        shares.filter_map(|op| op.device).sum::<f64>().min(1.0)
    }
}
