//! Time and cost of a run of many samples.

use serde::Serialize;

/// Inputs for the time and cost of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expense {
    /// Samples of the whole run, over all epochs.
    pub samples: Option<u64>,
    /// Price of one GPU for one hour, in any currency.
    pub price_per_hour: Option<f64>,
    /// Power limit of one card, in watts.
    pub watts: Option<f64>,
}

/// Time and cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bill {
    /// Samples of the run.
    pub samples: u64,
    /// Hours from the first step to the last.
    pub hours: f64,
    /// Price of all GPUs for these hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Energy of all cards if each drew its power limit all the time; they draw less while they wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kwh_at_most: Option<f64>,
}

impl Expense {
    /// Time and cost of a run at this throughput on this many GPUs; `None` if the number of samples was not given.
    pub fn bill(&self, samples_per_s: f64, gpus: u64) -> Option<Bill> {
        let samples = self.samples?;
        let hours = samples as f64 / samples_per_s / 3600.0;
        let gpu_hours = hours * gpus as f64;
        Some(Bill {
            samples,
            hours,
            cost: self.price_per_hour.map(|price| price * gpu_hours),
            kwh_at_most: self.watts.map(|watts| watts / 1e3 * gpu_hours),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_hours_times_gpus_times_price() {
        let expense = Expense {
            samples: Some(3_600_000),
            price_per_hour: Some(2.5),
            watts: Some(700.0),
        };
        let bill = expense.bill(100.0, 8).expect("it is known how many samples");
        assert!((bill.hours - 10.0).abs() < 1e-9);
        assert!((bill.cost.expect("a price was given") - 200.0).abs() < 1e-9);
        assert!((bill.kwh_at_most.expect("a power was given") - 56.0).abs() < 1e-9);
        assert_eq!(Expense::default().bill(100.0, 8), None);
    }
}
