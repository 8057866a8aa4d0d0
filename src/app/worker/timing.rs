//! Time of a step as the page shows it: plain data.

use serde::{Deserialize, Serialize};
use vramscope_time::{Bill, Bottleneck, Milliseconds};

/// Time breakdown of a run's step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Id of the run ([`RunView::id`](super::view::RunView::id)).
    pub run: u32,
    /// Milliseconds of each phase of a micro-batch, and of the update.
    pub ms: Milliseconds,
    /// Micro-batches per step.
    pub micro_batches: u64,
    /// Samples per step.
    pub samples: u64,
    /// Text positions per sample; 0 for models without text.
    pub positions: u64,
    /// Milliseconds of the whole step, once its data is ready.
    pub step_ms: f64,
    /// Shortest and longest milliseconds of the step, nine times in ten; `None` if its spread is not known.
    pub range_ms: Option<[f64; 2]>,
    /// Milliseconds from the start of one step to the start of the next.
    pub interval_ms: f64,
    /// Milliseconds of forward, backward and update, over all micro-batches.
    pub phases: [f64; 3],
    /// GPU and host time of forward, backward and update, over all micro-batches.
    pub lines: [Line; 3],
    /// Communication with other GPUs; `None` for a single GPU.
    pub communication: Option<Communication>,
    /// Share of the step in which the GPU is idle.
    pub idle_share: f64,
    /// Samples per second, including the wait for data.
    pub samples_per_s: f64,
    /// Text positions per second; `None` without text.
    pub tokens_per_s: Option<f64>,
    /// Floating-point operations of matrix products and attention per step.
    pub flops: f64,
    /// The card's peak rate (operations per second).
    pub peak: f64,
    /// Operations as a share of what the card could do in that time (MFU).
    pub flops_utilisation: f64,
    /// GPU time of a micro-batch and the update by kind of kernel, longest first.
    pub by_kernel: Vec<KernelTime>,
    /// Kernels of a recording that are timed only by the memory that they read and write, with their launches.
    pub untimed: Vec<(String, u64)>,
    /// Data workers in use, and the fewest that would sustain the same rate.
    pub workers: Option<[u64; 2]>,
    /// Error in the entered data pipeline, in English.
    pub wrong_data: Option<String>,
    /// Time and cost of the whole run, if its samples were entered.
    pub bill: Option<RunBill>,
    /// Price of a GPU per hour, as entered.
    pub price_per_hour: Option<f64>,
    /// Maximum power draw of a card in watts, as entered.
    pub watts: Option<f64>,
    /// Source of the kernel times.
    pub basis: Basis,
    /// Processor on which the host's pace was measured.
    pub host: String,
    /// The user's own card if it differs from the planned one, so that its measurement is not used.
    pub other_card: Option<String>,
    /// Bottlenecks of the step, largest first; filled in by a second answer.
    pub bottlenecks: Option<Vec<Bottleneck>>,
}

/// Communication of one of several GPUs in a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Communication {
    /// Number of GPUs.
    pub gpus: u64,
    /// Milliseconds that the step waits for it.
    pub exposed_ms: f64,
    /// Milliseconds of all of it, one after the other.
    pub total_ms: f64,
    /// Bytes that the GPU sends.
    pub bytes_sent: u64,
    /// Milliseconds that a stage of a pipeline waits while the pipeline fills and drains.
    pub filling_ms: f64,
}

/// GPU and host time of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds in which the GPU computes.
    pub busy_ms: f64,
    /// Milliseconds in which the host issues work.
    pub host_ms: f64,
}

/// Totals of a run, from [`Bill`]. That type skips unknown fields when serialized, which the wire format cannot decode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunBill {
    /// Samples of the run.
    pub samples: u64,
    /// Hours from the first step to the last.
    pub hours: f64,
    /// Cost in the currency of the entered price.
    pub cost: Option<f64>,
    /// Upper bound of the energy: the card draws its limit all the time.
    pub kwh_at_most: Option<f64>,
}

impl From<Bill> for RunBill {
    fn from(bill: Bill) -> Self {
        let Bill {
            samples,
            hours,
            cost,
            kwh_at_most,
        } = bill;
        Self {
            samples,
            hours,
            cost,
            kwh_at_most,
        }
    }
}

/// GPU time of one kind of kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// The engine's name for the kind.
    pub name: String,
    /// Milliseconds.
    pub ms: f64,
    /// Kernels launched.
    pub launches: u64,
}

/// Source of the kernel times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// Record selected by the user.
    MyCard {
        /// Name reported by its driver.
        card: String,
        /// Date of the measurement.
        date: Option<String>,
    },
    /// Measurement shipped with the program.
    Measured {
        /// Name reported by its driver.
        card: String,
        /// Software stack that launched the kernels.
        software: String,
    },
    /// Kernels of another card, carried by the data sheets of both.
    DataSheet {
        /// Name of the measured card as its driver reports it.
        from: String,
    },
}

/// Reason why a step has no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoTime {
    /// Too little is known about the card of this name.
    Card(String),
    /// The time of a compiled step is not estimated.
    Compiled,
    /// The step generates.
    Generates,
}

impl Timing {
    /// Milliseconds in which the GPU computes in each phase, over all micro-batches.
    pub fn busy(&self) -> [f64; 3] {
        self.lines.map(|line| line.busy_ms)
    }

    /// Milliseconds that the host takes to issue each phase, over all micro-batches.
    pub fn host_line(&self) -> [f64; 3] {
        self.lines.map(|line| line.host_ms)
    }

    /// Milliseconds that a stage waits while its pipeline fills and drains; 0 without a pipeline.
    pub fn filling_ms(&self) -> f64 {
        self.communication.map_or(0.0, |with| with.filling_ms)
    }

    /// Returns true if the host's time exceeds the GPU's.
    pub fn host_decides(&self) -> bool {
        self.host_line().iter().sum::<f64>() > self.busy().iter().sum()
    }

    /// Milliseconds in which the GPU waits for data.
    pub fn wait_ms(&self) -> f64 {
        self.interval_ms - self.step_ms
    }
}
