//! Composes the interval that a step's time should lie in from the spreads of its kernels and of the host.

use super::cost::Costs;
use super::run::{RunTime, TimedRun};
use super::spread::{Spreads, both};
use super::tally::{KINDS, kind};
use vramscope_engine::tape::work::WorkItem;

impl TimedRun<'_> {
    /// Shortest and longest seconds that a step with this time should take, nine times in ten, without the wait for
    /// data. `None` for several GPUs, since the spread of their collectives is not known.
    pub fn interval(&self, time: &RunTime, costs: &Costs<'_>) -> Option<[f64; 2]> {
        let spread = self.spread(time, costs)?;
        let [shorter, longer] = Spreads::get().ends.map(|end| 1.0 + end * spread);
        Some([time.step / shorter, time.step * longer])
    }

    /// Spread of a step's time from those of its kernels and of the host: a share by which it is longer, or the
    /// estimate longer than it. `None` for several GPUs.
    pub fn spread(&self, time: &RunTime, costs: &Costs<'_>) -> Option<f64> {
        if self.gpus() > 1 {
            return None;
        }
        let longer = |costs: &Costs<'_>| self.time(costs).step / time.step - 1.0;
        let kernels = longer(&costs.with_slower_kernels(1.0 + self.spread_of_kernels(costs)));
        let host = costs.pace.slower(1.0 + costs.spread_of_host());
        Some(both(kernels, longer(&costs.with_pace(&host))))
    }

    /// Spread of the sum of all kernels: those of one kind err alike, kinds independently.
    fn spread_of_kernels(&self, costs: &Costs<'_>) -> f64 {
        let mut sums = Sums::default();
        let work = &self.recording().work;
        sums.add(work.forward(), self.repeated(), costs);
        sums.add(work.backward(), self.repeated(), costs);
        sums.add(work.optimizer(), 1, costs);
        sums.spread()
    }
}

/// Sums over kernels by kind.
#[derive(Default)]
struct Sums {
    seconds: f64,
    /// Seconds × spread of each kind.
    unsure: [f64; KINDS],
}

impl Sums {
    fn add(&mut self, items: &[WorkItem], times: u64, costs: &Costs<'_>) {
        for item in items {
            match item {
                WorkItem::Launch(launch) => {
                    let price = costs.price(launch);
                    let seconds = price.gpu * times as f64;
                    self.seconds += seconds;
                    self.unsure[kind(launch.class)] += seconds * price.spread;
                }
                WorkItem::Repeat(items, inner) => self.add(items, times * inner, costs),
                WorkItem::HostOp(_) => {}
            }
        }
    }

    fn spread(&self) -> f64 {
        if self.seconds <= 0.0 {
            return 0.0;
        }
        let squares: f64 = self.unsure.iter().map(|seconds| seconds * seconds).sum();
        squares.sqrt() / self.seconds
    }
}
