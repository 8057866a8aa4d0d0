//! Reads the output of `nvidia-smi`: its table, and its CSV logs (`--query-gpu=… --format=csv`).

mod csv;
mod table;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use vramscope_engine::units::Bytes;

pub(super) use csv::find as find_csv;
pub(super) use table::find as find_table;

/// Samples of one or more devices over time, and the most recent list of processes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Smi {
    /// Devices in the order of their first appearance.
    pub devices: Vec<SmiDevice>,
    /// Processes, if the table lists them.
    pub processes: Vec<SmiProcess>,
}

/// Samples of one device over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SmiDevice {
    /// Index of the device, or its order of appearance in the log.
    pub index: u32,
    /// Name of the device, possibly truncated by the table.
    pub name: Option<String>,
    /// Memory of the device, in bytes.
    pub total: Option<Bytes>,
    /// Samples in the order of the log.
    pub samples: Vec<Sample>,
}

/// One sample of a device.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes in use by all processes.
    pub used: Option<Bytes>,
    /// Fraction of the time in which a kernel ran, from 0 to 1.
    pub utilization: Option<f64>,
}

/// A process on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmiProcess {
    /// Index of the device.
    pub device: u32,
    /// Process ID.
    pub pid: u64,
    /// Name of the program.
    pub name: String,
    /// Bytes that the process holds; `None` if the driver does not report them.
    pub holds: Option<Bytes>,
}

/// Largest number of samples. A longer log is halved by dropping every second sample, repeatedly.
const MOST_SAMPLES: usize = 200_000;

impl Smi {
    /// The device with an index, added if it is new; `None` if there are more devices than any machine has.
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

    /// Returns true if any sample was read.
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
