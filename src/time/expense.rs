//! What a run of many samples takes and costs.

use serde::Serialize;

/// What is asked of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Expense {
    /// Samples of the whole run, epochs and all.
    pub samples: Option<u64>,
    /// Price of one GPU for an hour, in any currency.
    pub price_per_hour: Option<f64>,
    /// What one card draws at most (W).
    pub watts: Option<f64>,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bill {
    /// Samples of the run.
    pub samples: u64,
    /// Hours from the first step to the last.
    pub hours: f64,
    /// The price of all GPUs for that long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The energy of all cards, as if each drew its limit for that long: they draw less while they wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kwh_at_most: Option<f64>,
}

impl Expense {
    /// What a run comes to at so many samples a second on so many GPUs; nothing where nobody said how many samples.
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
