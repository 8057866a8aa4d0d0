//! How data comes, as a person writes it: `read=4,decode=9,workers=8`.

use super::pipeline::{By, Pipeline, Stage};

/// A pipeline for one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
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

/// More workers, batches or cores than this make no sense.
const MOST: u64 = 1024;

impl Feed {
    /// Reads stages in milliseconds a sample, with `workers` (4), batches `ahead` of each (2) and `cores` (as many as
    /// workers want), such as `read=4,decode=9,resize=3,workers=8,ahead=2,cores=16`.
    ///
    /// # Errors
    /// When the text is no such list; the message says what is wrong and what is allowed.
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

    /// How micro-batches of so many samples come.
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
