//! Flags that affect the time of a run besides its setup.

use clap::Args;
use vramscope_time::pipeline::Pipeline;
use vramscope_time::{Expense, Feed};

use super::count;
use super::source::Source;
use crate::failure::Failure;

/// Where times come from, how data comes, and what a run costs.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeFlags {
    /// Kernels measured on the card, from which the time of a step is estimated: a record of `vramscope bench`, or
    /// a file made through PyTorch [default: those of an H200 that come with the program, carried to other cards by
    /// the data sheets of both]
    #[arg(long, visible_alias = "record", value_name = "FILE", value_parser = Source::parse)]
    pub kernels: Option<Source>,
    /// Between GPUs: GB/s of each in one direction over a network [default: what the card's data sheet says of NVLink
    /// or PCI Express, or what was measured]
    #[arg(long, value_name = "GB/S")]
    link: Option<f64>,
    /// How data comes; a flag of its own, since that of a dry run may name samples instead.
    #[arg(skip)]
    pub data: Option<Feed>,
    /// Samples of the whole run, epochs and all
    #[arg(long, value_name = "N", value_parser = count::samples)]
    samples: Option<u64>,
    /// Price of one GPU for an hour; needs --samples
    #[arg(long, value_name = "PRICE", requires = "samples")]
    price_per_hour: Option<f64>,
    /// What one card draws at most, for the run's energy; needs --samples
    #[arg(long, value_name = "W", requires = "samples")]
    watts: Option<f64>,
}

impl TimeFlags {
    /// Bytes per second between GPUs, if given.
    ///
    /// # Errors
    /// If the rate is not positive.
    pub fn link(&self) -> Result<Option<f64>, Failure> {
        match self.link {
            Some(rate) if !(rate > 0.0 && rate.is_finite()) => Err(Failure::Input(format!(
                "--link is {rate}; it must be more than 0 GB/s, such as 50 for a network of 400 Gbit/s"
            ))),
            rate => Ok(rate.map(|rate| rate * 1e9)),
        }
    }

    /// Data loading for micro-batches of `batch` samples, if it was described.
    pub fn data(&self, batch: u64) -> Option<Pipeline> {
        Some(self.data.as_ref()?.of_batch(batch))
    }

    /// Samples and prices of the whole run.
    ///
    /// # Errors
    /// If a price or a power is negative or not a number.
    pub fn expense(&self) -> Result<Expense, Failure> {
        for (name, value) in [("--price-per-hour", self.price_per_hour), ("--watts", self.watts)] {
            if value.is_some_and(|value| !(value >= 0.0 && value.is_finite())) {
                return Err(Failure::Input(format!("{name} must be 0 or more")));
            }
        }
        if self.samples == Some(0) {
            return Err(Failure::Input("--samples is 0; a run has at least one".into()));
        }
        Ok(Expense {
            samples: self.samples,
            price_per_hour: self.price_per_hour,
            watts: self.watts,
        })
    }
}
