//! What the page shows of a step's time: plain data.

use serde::{Deserialize, Serialize};
use vramscope_time::{Bill, Bottleneck, Milliseconds};

/// Where the time of a run's step goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// [`Run::id`](super::view::Run::id).
    pub run: u32,
    /// Each phase of a micro-batch, and the update.
    pub ms: Milliseconds,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// Samples of a step.
    pub samples: u64,
    /// Text positions of a sample; 0 for models without text.
    pub positions: u64,
    /// The whole step, once its data is there.
    pub step_ms: f64,
    /// From one step to the next.
    pub interval_ms: f64,
    /// What GPU and host do: forward and backward of a micro-batch, and the update.
    pub lines: [Line; 3],
    /// Share of the step in which the GPU computes nothing.
    pub idle_share: f64,
    /// Samples a second, with the wait for data.
    pub samples_per_s: f64,
    /// Text positions a second, where there is text.
    pub tokens_per_s: Option<f64>,
    /// Operations of products and attention in a step.
    pub flops: f64,
    /// The card's highest rate (operations a second).
    pub peak: f64,
    /// The operations over what the card could do in that time.
    pub flops_utilisation: f64,
    /// GPU time of a micro-batch and the update by kind of kernel, longest first.
    pub by_kernel: Vec<KernelTime>,
    /// Workers that prepare data, and the fewest that sustain as much.
    pub workers: Option<[u64; 2]>,
    /// What is wrong with the way of the data that was entered, in English.
    pub wrong_data: Option<String>,
    /// The whole run, where its samples were entered.
    pub bill: Option<RunBill>,
    /// Price of a GPU for an hour, as entered.
    pub price_per_hour: Option<f64>,
    /// What a card draws at most, as entered.
    pub watts: Option<f64>,
    /// Where kernels' times come from.
    pub basis: Basis,
    /// The processor on which the host's pace was measured.
    pub host: String,
    /// The person's own card, where it is another and so does not count.
    pub unused: Option<String>,
    /// What the step waits for, the largest first; comes later.
    pub bottlenecks: Option<Vec<Bottleneck>>,
}

/// What GPU and host do in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The GPU computes.
    pub busy_ms: f64,
    /// The host issues.
    pub host_ms: f64,
    /// Kernels.
    pub launches: u64,
}

/// What a run comes to: [`Bill`], which leaves out what is not known and so cannot cross over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunBill {
    /// Samples of the run.
    pub samples: u64,
    /// From the first step to the last.
    pub hours: f64,
    /// In the currency of the price.
    pub cost: Option<f64>,
    /// The energy, if the card drew its limit for that long.
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

/// GPU time of a kind of kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// The engine's name of the kind.
    pub name: String,
    /// Time.
    pub ms: f64,
    /// Kernels.
    pub launches: u64,
}

/// Where kernels' times come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// The record that the person chose.
    MyCard {
        /// As its driver names it.
        card: String,
        /// When it was measured.
        date: Option<String>,
    },
    /// The measurement that comes with the program.
    Measured {
        /// As its driver names it.
        card: String,
        /// What the kernels were launched through.
        software: String,
    },
    /// The data sheet of the card that is planned for.
    DataSheet,
}

/// Too little is known of this card to tell its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoTime(pub String);

impl Timing {
    /// Milliseconds of the whole step of what each phase has: forward and backward of every micro-batch, and the
    /// update.
    pub fn whole(&self, [forward, backward, optimizer]: [f64; 3]) -> [f64; 3] {
        let n = self.micro_batches as f64;
        [n * forward, n * backward, optimizer]
    }

    /// Milliseconds of each phase, all micro-batches.
    pub fn phases(&self) -> [f64; 3] {
        self.whole([self.ms.forward, self.ms.backward, self.ms.optimizer])
    }

    /// Milliseconds in each phase in which the GPU computes, all micro-batches.
    pub fn busy(&self) -> [f64; 3] {
        self.whole(self.lines.map(|line| line.busy_ms))
    }

    /// Milliseconds that the host takes to issue each phase, all micro-batches.
    pub fn host_line(&self) -> [f64; 3] {
        self.whole(self.lines.map(|line| line.host_ms))
    }

    /// Whether the host's line is the longer one.
    pub fn host_decides(&self) -> bool {
        self.host_line().iter().sum::<f64>() > self.busy().iter().sum()
    }

    /// Milliseconds in which the GPU waits for data.
    pub fn wait_ms(&self) -> f64 {
        self.interval_ms - self.step_ms
    }
}
