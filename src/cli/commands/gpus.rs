//! `vramscope gpus`: lists the known cards.

use clap::Args;
use serde::Serialize;
use vramscope_engine::device::{Device, DeviceKind, Vendor};
use vramscope_engine::dtype::DType;
use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;

use crate::failure::Failure;
use crate::output::list::{self, Edge};
use crate::output::{self, Format};

/// List the cards known by name
///
/// Names are taken with or without the maker's words, in any case and spacing: "rtx 4090", "4090"
/// and "NVIDIA GeForce RTX 4090" are one card.
#[derive(Debug, Args)]
pub struct Gpus {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    vendor: Vendor,
    kind: DeviceKind,
    /// Bytes available to a process.
    usable: Bytes,
    bandwidth_gb_s: Option<f64>,
    bf16_tflops: Option<f64>,
    source: &'static str,
}

impl Gpus {
    /// Writes the list.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let entries: Vec<Entry> = Device::all().iter().map(Entry::of).collect();
        match self.format {
            Format::Text => output::print(&text(&entries)),
            Format::Json => output::print_json(&entries),
            Format::Jsonl => entries.iter().try_for_each(output::print_json_line),
        }
    }
}

impl Entry {
    fn of(device: &'static Device) -> Self {
        Self {
            name: device.name,
            vendor: device.vendor,
            kind: device.kind,
            usable: device.usable(),
            bandwidth_gb_s: device.bandwidth().map(|b| b.as_gb_per_s()),
            bf16_tflops: device.peak(DType::Bf16).map(|rate| rate.as_teraflops()),
            source: device.source,
        }
    }

    fn cells(&self) -> [String; 4] {
        let whole = |n: Option<f64>| n.map_or_else(String::new, |n| format!("{n:.0}"));
        [
            self.name.into(),
            gib(self.usable),
            whole(self.bandwidth_gb_s),
            whole(self.bf16_tflops),
        ]
    }
}

fn text(entries: &[Entry]) -> String {
    let heads = [
        ("card", Edge::Left),
        ("usable", Edge::Right),
        ("GB/s", Edge::Right),
        ("bf16 TFLOP/s", Edge::Right),
    ];
    let rows: Vec<_> = entries.iter().map(Entry::cells).collect();
    list::render(heads, &rows)
}
