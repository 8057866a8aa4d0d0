//! Reads the file that `vramscope.watch` writes beside a run: one JSON object a line.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Format that the first line names.
const FORMAT: &str = "vramscope-watch";
/// Newest version that is read.
const VERSION: u64 = 1;

/// A run as far as it was written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watched {
    /// The run, once its first step is done.
    pub header: Option<Header>,
    /// Steps in their order.
    pub steps: Vec<Step>,
    /// True if the run has ended.
    pub is_ended: bool,
}

/// The run as it was seen in its first step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Header {
    format: String,
    version: u64,
    /// Name of the card according to its driver.
    pub gpu: Option<String>,
    /// GPUs of the run.
    #[serde(default = "one")]
    pub gpus: u64,
    /// The model's configuration.
    pub config: Option<Value>,
    /// The setup as a case, without shapes.
    pub case: Map<String, Value>,
    /// What of the setup could not be told.
    #[serde(default)]
    pub notes: Vec<String>,
}

const fn one() -> u64 {
    1
}

/// What one step took.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Step {
    /// Number of the step, from 1.
    pub step: u64,
    /// Milliseconds on the host's clock.
    pub ms: f64,
    /// Highest allocated bytes.
    pub peak: u64,
    /// Highest reserved bytes of the run so far.
    pub reserved: u64,
    /// Allocated bytes at its end.
    pub end: u64,
    /// Shapes of its largest micro-batch.
    #[serde(flatten)]
    pub shape: Shape,
}

/// Shapes of a micro-batch; what a model does not take is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Shape {
    /// Samples.
    pub batch: Option<u64>,
    /// Positions of a sample.
    pub seq: Option<u64>,
    /// Images of a sample.
    pub images: Option<u64>,
    /// Patches of each image, if all have equally many.
    pub grid: Option<[u64; 2]>,
}

impl Watched {
    /// Reads the lines that are complete. A run may be writing the last one, and a run that was killed never ends it.
    ///
    /// # Errors
    /// If a line is none of a run; the message names it.
    pub fn read(text: &str) -> Result<Self, Failure> {
        let mut out = Self::default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (number, line) in (1..).zip(whole.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            out.add(line).map_err(|why| {
                Failure::Input(format!(
                    "line {number} is not of a file that vramscope.Watch or vramscope.watching writes: {why}"
                ))
            })?;
        }
        Ok(out)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let text = |error: serde_json::Error| error.to_string();
        if self.header.is_none() {
            let header: Header = serde_json::from_str(line).map_err(text)?;
            if header.format != FORMAT {
                return Err(format!("its format is `{}`", header.format));
            }
            if header.version > VERSION {
                return Err(format!(
                    "it has version {}; this program reads up to {VERSION}",
                    header.version
                ));
            }
            self.header = Some(header);
        } else if line.contains("\"ended\"") {
            self.is_ended = true;
        } else {
            let step: Step = serde_json::from_str(line).map_err(text)?;
            if !step.ms.is_finite() || step.ms < 0.0 {
                return Err(format!("`ms` is {}", step.ms));
            }
            self.steps.push(step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"format":"vramscope-watch","version":1,"torch":"2.11","gpu":"NVIDIA H100 80GB HBM3","memory":1,"gpus":1,"config":{"model_type":"gpt2"},"case":{"precision":"bf16"},"notes":[]}"#;
    const STEP: &str = r#"{"step":1,"ms":12.5,"peak":100,"reserved":200,"end":50,"batch":2,"seq":64,"images":0}"#;

    #[test]
    fn a_run_is_read_as_far_as_it_is_written() {
        let half = format!("{HEADER}\n{STEP}\n{}", &STEP[..20]);
        let watched = Watched::read(&half).expect("lines of a run");
        assert_eq!((watched.steps.len(), watched.is_ended), (1, false));
        assert_eq!(watched.steps[0].shape.seq, Some(64));
        let ended = format!("{HEADER}\n{STEP}\n{{\"ended\": true}}\n");
        assert!(Watched::read(&ended).expect("lines of a run").is_ended);
        assert_eq!(Watched::read("").expect("nothing yet"), Watched::default());
    }

    #[test]
    fn other_files_are_refused_by_line() {
        for (text, told) in [
            ("step,ms\n", "line 1"),
            (
                "{\"format\":\"other\",\"version\":1,\"case\":{}}\n",
                "its format is `other`",
            ),
            (
                "{\"format\":\"vramscope-watch\",\"version\":9,\"case\":{}}\n",
                "reads up to 1",
            ),
        ] {
            let failure = Watched::read(text).expect_err(text).to_string();
            assert!(failure.contains(told), "{failure}");
        }
        let wrong = format!("{HEADER}\n{{\"step\":1}}\n");
        assert!(
            Watched::read(&wrong)
                .expect_err("no step")
                .to_string()
                .contains("line 2")
        );
    }
}
