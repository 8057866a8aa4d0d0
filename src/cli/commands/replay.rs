//! `vramscope replay`: replays a recorded trace through the allocator.

use std::io::Read;

use clap::Args;
use vramscope_diagnose::Snapshot;
use vramscope_diagnose::pickle::Pickle;
use vramscope_engine::allocator::{self, Trace};
use vramscope_engine::units::Bytes;

use crate::commands::examples;
use crate::failure::Failure;
use crate::input::source::Source;
use crate::output::{self, Format};

/// Replay a recorded allocator trace through the simulator
///
/// Shows whether the simulated allocator puts every block where PyTorch put it, and reaches the same
/// peaks. A trace is what torch.cuda.memory._record_memory_history records from an empty allocator on,
/// gzipped or not: the snapshot that torch.cuda.memory._dump_snapshot writes, or JSON whose `events` is
/// a list of [action, address, bytes, stream].
#[derive(Debug, Args)]
#[command(after_help = examples(EXAMPLES))]
pub struct Replay {
    /// Trace file, or - for standard input
    #[arg(value_parser = Source::parse)]
    trace: Source,
    /// Number of the device in a snapshot of several
    #[arg(long, value_name = "N")]
    device: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const EXAMPLES: &str = "  vramscope replay gpt2-bf16.trace.json.gz
      whether every block lies where PyTorch put it, and both peaks
  vramscope replay memory_snapshot.pickle
      the same of a snapshot
  gunzip < trace.json.gz | vramscope replay - --format json
      for scripts";

impl Replay {
    /// Replays the trace and writes the result.
    ///
    /// # Errors
    /// If the trace cannot be read or is invalid, or standard output cannot be written.
    pub fn run(self) -> Result<(), Failure> {
        let trace = trace(&read(&self.trace)?, self.device)
            .map_err(|error| Failure::Input(format!("{}: {error}", self.trace)))?;
        let result = trace.replay();
        match self.format {
            Format::Text => output::print(&text(&self.trace, &trace, result)),
            Format::Json => output::print_json(&result),
            Format::Jsonl => output::print_json_line(&result),
        }
    }
}

/// Reads a trace in either format.
fn trace(bytes: &[u8], device: Option<usize>) -> Result<Trace, String> {
    if Pickle::is_one(bytes) {
        let snapshot = Snapshot::from_pickle(bytes).map_err(|error| error.to_string())?;
        return of_device(snapshot, device);
    }
    Trace::from_json(bytes).map_err(|error| error.to_string())
}

/// Trace of the given device, or of the only one with events.
fn of_device(mut snapshot: Snapshot, wanted: Option<usize>) -> Result<Trace, String> {
    let traces = snapshot.devices.iter().enumerate();
    let recorded: Vec<usize> = traces.filter(|(_, t)| !t.events.is_empty()).map(|(n, _)| n).collect();
    match (wanted, recorded.as_slice()) {
        (Some(n), _) if recorded.contains(&n) => Ok(snapshot.devices.swap_remove(n)),
        (None, &[only]) => Ok(snapshot.devices.swap_remove(only)),
        (_, []) => Err("the snapshot has no events; call torch.cuda.memory._record_memory_history first".into()),
        (Some(n), _) => Err(format!("device {n} has no events; devices with events: {recorded:?}")),
        (None, _) => Err(format!("devices {recorded:?} have events; choose one with --device")),
    }
}

/// Reads a source to its end, decompressing gzip.
fn read(source: &Source) -> Result<Vec<u8>, Failure> {
    let (mut input, _) = source.unpacked()?;
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .map_err(|error| source.unreadable(&error))?;
    Ok(bytes)
}

fn text(source: &Source, trace: &Trace, result: allocator::Replay) -> String {
    let addresses = match result.address_mismatches {
        0 => "every block where PyTorch put it".to_owned(),
        n => format!("{n} of them not where PyTorch put them"),
    };
    let peak = |name, simulated: Bytes, recorded: Option<Bytes>| {
        let compared = match recorded {
            Some(recorded) if recorded == simulated => "as recorded".to_owned(),
            Some(recorded) => format!("recorded: {recorded}"),
            None => "not recorded".to_owned(),
        };
        format!("peak {name:<9}  {:>10}  {compared}\n", simulated.to_string())
    };
    let mut text = format!("{source}: {} allocations, {addresses}\n", result.allocs);
    text += &peak("allocated", result.allocated_peak, trace.allocated_peak);
    text += &peak("reserved", result.reserved_peak, trace.reserved_peak);
    text
}
