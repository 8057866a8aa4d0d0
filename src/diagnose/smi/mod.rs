//! What `nvidia-smi` shows: its table, and its CSV logs (`--query-gpu=… --format=csv`).

mod csv;
mod table;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use vramscope_engine::units::Bytes;

pub(super) use csv::find as find_csv;
pub(super) use table::find as find_table;

/// Samples of one or more devices over time, and the processes that were last seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Smi {
    /// Devices in the order of their first appearance.
    pub devices: Vec<SmiDevice>,
    /// Processes, where the table lists them.
    pub processes: Vec<SmiProcess>,
}

/// One device over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SmiDevice {
    /// Its number, or where it came in the log.
    pub index: u32,
    /// Its name, as far as the table shows it.
    pub name: Option<String>,
    /// All its memory.
    pub total: Option<Bytes>,
    /// In the order of the log.
    pub samples: Vec<Sample>,
}

/// A device at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Memory in use, by all processes.
    pub used: Option<Bytes>,
    /// Part of the time in which a kernel ran, from 0 to 1.
    pub utilization: Option<f64>,
}

/// A process on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmiProcess {
    /// The device.
    pub device: u32,
    /// Its number.
    pub pid: u64,
    /// Its program.
    pub name: String,
    /// What it holds; absent where the driver does not tell.
    pub holds: Option<Bytes>,
}

/// A log of more samples is thinned to every second one, again and again.
const MOST_SAMPLES: usize = 200_000;

impl Smi {
    /// The device of a number, made where it is new; `None` when there are more than any machine has.
    fn device(&mut self, index: u32) -> Option<&mut SmiDevice> {
        let known = self.devices.iter().position(|device| device.index == index);
        let at = match known {
            Some(at) => at,
            None if self.devices.len() == 256 => return None,
            None => {
                self.devices.push(SmiDevice {
                    index,
                    ..SmiDevice::default()
                });
                self.devices.len() - 1
            }
        };
        self.devices.get_mut(at)
    }

    /// Whether anything but emptiness was read.
    fn tells_anything(&self) -> bool {
        self.devices.iter().any(|device| !device.samples.is_empty())
    }
}

impl SmiDevice {
    fn push(&mut self, sample: Sample) {
        if self.samples.len() == MOST_SAMPLES {
            let mut i = 0;
            self.samples.retain(|_| {
                i += 1;
                i % 2 == 1
            });
        }
        self.samples.push(sample);
    }
}
