//! What the time of a run depends on beside its setup.

use clap::Args;
use vramscope_engine::time::Expense;
use vramscope_engine::time::pipeline::{By, Pipeline, Stage};

use super::source::Source;
use crate::failure::Failure;

/// Where times come from, how data comes, and what a run costs.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeFlags {
    /// Kernels measured on the card, from which the time of a step is estimated: a record of `vramscope bench`, or
    /// a file made through PyTorch [default: for an H200 those that come with the program; else the data sheet]
    #[arg(long, visible_alias = "record", value_name = "FILE", value_parser = Source::parse)]
    pub kernels: Option<Source>,
    /// Between GPUs: GB/s of each in one direction over a network [default: what the card's data sheet says of NVLink
    /// or PCI Express, or what was measured]
    #[arg(long, value_name = "GB/S")]
    link: Option<f64>,
    /// How data comes: milliseconds a sample of read, decode, resize, normalise, augment and collate (by workers), copy
    /// (beside the step) and gpu (in the step), with the workers, batches ahead of each, and cores, such as
    /// read=4,decode=9,resize=3,workers=8,ahead=2,cores=16
    #[arg(long, value_name = "STAGES", value_parser = parse_data)]
    data: Option<Data>,
    /// Samples of the whole run, epochs and all
    #[arg(long, value_name = "N")]
    samples: Option<u64>,
    /// Price of one GPU for an hour; needs --samples
    #[arg(long, value_name = "PRICE", requires = "samples")]
    price_per_hour: Option<f64>,
    /// What one card draws at most, for the run's energy; needs --samples
    #[arg(long, value_name = "W", requires = "samples")]
    watts: Option<f64>,
}

/// A pipeline for one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    stages: Vec<Stage>,
    workers: u64,
    ahead: u64,
    cores: u64,
}

/// Stages by name, and who does each.
const STAGES: [(&str, By); 8] = [
    ("read", By::Worker),
    ("decode", By::Worker),
    ("resize", By::Worker),
    ("normalise", By::Worker),
    ("augment", By::Worker),
    ("collate", By::Worker),
    ("copy", By::Copy),
    ("gpu", By::Loop),
];

impl TimeFlags {
    /// Bytes a second between GPUs, where that was given.
    ///
    /// # Errors
    /// When it is no rate.
    pub fn link(&self) -> Result<Option<f64>, Failure> {
        match self.link {
            Some(rate) if !(rate > 0.0 && rate.is_finite()) => Err(Failure::Input(format!(
                "--link is {rate}; it must be more than 0 GB/s, such as 50 for a network of 400 Gbit/s"
            ))),
            rate => Ok(rate.map(|rate| rate * 1e9)),
        }
    }

    /// How micro-batches of so many samples come, where that was said.
    pub fn data(&self, batch: u64) -> Option<Pipeline> {
        let data = self.data.as_ref()?;
        let of_batch = |stage: &Stage| Stage {
            seconds: stage.seconds * batch as f64,
            ..stage.clone()
        };
        Some(Pipeline {
            stages: data.stages.iter().map(of_batch).collect(),
            workers: data.workers,
            prefetch: data.ahead,
            cores: data.cores,
            step: 0.0,
        })
    }

    /// What the whole run is asked.
    ///
    /// # Errors
    /// When a price or power is none.
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

/// More of them than this make no sense.
const MOST: u64 = 1024;

fn parse_data(text: &str) -> Result<Data, String> {
    let mut data = Data {
        stages: Vec::new(),
        workers: 4,
        ahead: 2,
        cores: MOST,
    };
    for entry in text.split(',') {
        let Some((name, value)) = entry.split_once('=') else {
            return Err(format!(
                "`{entry}` is no stage; write it as decode=9, milliseconds a sample"
            ));
        };
        let count = || match value.parse() {
            Ok(n) if n <= MOST => Ok(n),
            _ => Err(format!("`{entry}`: it must be a whole number, at most {MOST}")),
        };
        match name {
            "workers" => data.workers = count()?,
            "ahead" => data.ahead = count()?.max(1),
            "cores" => data.cores = count()?.max(1),
            _ => data.stages.push(stage(entry, name, value)?),
        }
    }
    match data.stages.is_empty() {
        true => Err("it names no stage, such as decode=9".into()),
        false => Ok(data),
    }
}

fn stage(entry: &str, name: &str, value: &str) -> Result<Stage, String> {
    let Some((name, by)) = STAGES.into_iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = STAGES.iter().map(|(known, _)| *known).collect();
        return Err(format!(
            "`{name}` is no stage; they are {}, and beside them workers, ahead and cores",
            known.join(", ")
        ));
    };
    match value.parse::<f64>() {
        Ok(ms) if ms >= 0.0 && ms.is_finite() => Ok(Stage {
            name,
            seconds: ms / 1e3,
            by,
        }),
        _ => Err(format!("`{entry}`: it must be milliseconds, 0 or more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_with_who_does_them() {
        let data = parse_data("read=4,decode=9.5,copy=1,workers=8,ahead=3,cores=16").expect("it is right");
        assert_eq!((data.workers, data.ahead, data.cores), (8, 3, 16));
        let by: Vec<By> = data.stages.iter().map(|stage| stage.by).collect();
        assert_eq!(by, [By::Worker, By::Worker, By::Copy]);
        let flags = TimeFlags {
            data: Some(data),
            ..TimeFlags::default()
        };
        let pipeline = flags.data(2).expect("it was given");
        assert!((pipeline.stages[1].seconds - 0.019).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("decode", "write it as"),
            ("dekode=3", "they are read, decode"),
            ("decode=-1", "0 or more"),
            ("workers=8", "names no stage"),
            ("decode=1,workers=x", "whole number"),
        ] {
            let error = parse_data(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
