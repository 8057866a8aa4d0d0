//! Parses a description of data loading, such as `read=4,decode=9,workers=8`.

use super::pipeline::{By, Pipeline, Stage};

/// Data loading with times per sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    stages: Vec<Stage>,
    workers: u64,
    ahead: u64,
    cores: u64,
}

/// Stages by name, and the executor of each.
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

/// Largest number of workers, prefetched batches or cores accepted.
const MOST: u64 = 1024;

impl Feed {
    /// Parses stage times in milliseconds per sample, and `workers` (default 4), batches `ahead` per worker (2) and
    /// `cores` (enough for all workers), such as `read=4,decode=9,resize=3,workers=8,ahead=2,cores=16`.
    ///
    /// # Errors
    /// If the text has another format; the message says what is wrong and what is allowed.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut data = Self {
            stages: Vec::new(),
            workers: 4,
            ahead: 2,
            cores: MOST,
        };
        for entry in text.split(',').map(str::trim) {
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

    /// Processes that load data.
    pub const fn workers(&self) -> u64 {
        self.workers
    }

    /// The pipeline for micro-batches of `samples` samples.
    pub fn of_batch(&self, samples: u64) -> Pipeline {
        let of_batch = |stage: &Stage| Stage {
            seconds: stage.seconds * samples as f64,
            ..stage.clone()
        };
        Pipeline {
            stages: self.stages.iter().map(of_batch).collect(),
            workers: self.workers,
            prefetch: self.ahead,
            cores: self.cores,
            step: 0.0,
        }
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
        let data = Feed::read("read=4, decode=9.5,copy=1,workers=8,ahead=3,cores=16").expect("it is right");
        assert_eq!((data.workers, data.ahead, data.cores), (8, 3, 16));
        let by: Vec<By> = data.stages.iter().map(|stage| stage.by).collect();
        assert_eq!(by, [By::Worker, By::Worker, By::Copy]);
        assert!((data.of_batch(2).stages[1].seconds - 0.019).abs() < 1e-12);
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
            let error = Feed::read(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
