//! Runs kernels that PyTorch alone has, in the Python that the user's training runs in.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use vramscope_benchmark::{Check, Class, Implementation, Kernel, Measured, Measurement, Outcome, Summary, Timer};
use vramscope_engine::attention::Algorithm;

use super::host::{Found, find, module};
use crate::kernels::work::Work;

/// Time for each kernel, its preparation and reference included.
const EACH: Duration = Duration::from_millis(160);
/// Time beyond that in which Python starts and a loaded machine catches up.
const SPARE: Duration = Duration::from_secs(60);

/// Returns true if PyTorch has to run this kernel.
pub fn runs(kernel: &Kernel) -> bool {
    let by_backend = matches!(kernel.algorithm, Some(Algorithm::Flash | Algorithm::Efficient));
    kernel.class.is_of_pytorch() || (kernel.class == Class::Attention && by_backend)
}

/// One line that Python printed.
#[derive(Deserialize)]
struct Line {
    i: usize,
    kernel: Option<String>,
    samples_ns: Option<Vec<u64>>,
    launches: Option<u32>,
    check: Option<Check>,
    unsupported: Option<String>,
    failed: Option<String>,
}

/// Kernels that a Python is running, whose results come one by one.
pub struct Running {
    kernels: Vec<Kernel>,
    version: String,
    child: Child,
    lines: Receiver<String>,
    ends: Instant,
}

impl Running {
    /// Starts kernels; `None` where there is no PyTorch.
    ///
    /// # Errors
    /// If Python does not start.
    pub fn start(named: Option<&Path>, kernels: Vec<Kernel>) -> Result<Self, (String, Vec<Kernel>)> {
        let found = match find(named) {
            Ok(found) => found,
            Err(why) => return Err((why, kernels)),
        };
        match spawn(&found, &kernels) {
            Ok((child, lines)) => Ok(Self {
                version: found.version,
                ends: Instant::now() + EACH * kernels.len() as u32 + SPARE,
                kernels,
                child,
                lines,
            }),
            Err(why) => Err((why, kernels)),
        }
    }

    /// The next result; `None` once there are no more.
    pub fn next(&mut self) -> Option<Measurement> {
        let left = self.ends.saturating_duration_since(Instant::now());
        let line: Line = serde_json::from_str(&self.lines.recv_timeout(left).ok()?).ok()?;
        let kernel = self.kernels.get(line.i)?.clone();
        Some(measurement(kernel, &self.version, line))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself, unless it takes too long or the run is interrupted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(found: &Found, kernels: &[Kernel]) -> Result<(Child, Receiver<String>), String> {
    let mut run = module(found, "vramscope.kernels")?;
    let pipes = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = pipes
        .spawn()
        .map_err(|error| format!("Python does not start: {error}"))?;
    let asked = json!({"seconds": EACH.as_secs_f64() * kernels.len() as f64, "kernels": kernels});
    let given = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(asked.to_string().as_bytes()));
    if !matches!(given, Some(Ok(()))) {
        let _ = child.kill();
        let _ = child.wait();
        return Err("Python does not take the kernels".into());
    }
    let (send, lines) = channel();
    if let Some(pipe) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Nobody listens any more once the run is interrupted.
                if send.send(line).is_err() {
                    return;
                }
            }
        });
    }
    Ok((child, lines))
}

fn measurement(kernel: Kernel, version: &str, line: Line) -> Measurement {
    let implementation = line.kernel.as_ref().map(|name| Implementation {
        backend: "cuda".into(),
        library: "PyTorch".into(),
        version: Some(version.to_owned()),
        kernel: name.clone(),
        accumulator: None,
    });
    Measurement {
        bytes: Some(Work::of(&kernel).bytes),
        flops: kernel.flops(),
        kernel,
        implementation,
        outcome: outcome(line),
    }
}

fn outcome(line: Line) -> Outcome {
    let nothing = || Outcome::Failed {
        reason: "PyTorch gave neither a time nor a reason".into(),
    };
    match (line.unsupported, line.failed, line.check) {
        (Some(reason), _, _) => Outcome::Unsupported { reason },
        (_, Some(reason), _) => Outcome::Failed { reason },
        (_, _, Some(check)) if !check.passed => Outcome::FailedCheck(check),
        (_, _, check) => match line.samples_ns.filter(|samples| !samples.is_empty()) {
            Some(samples_ns) => Outcome::Measured(Measured {
                timer: Timer::Device,
                launches_per_sample: line.launches.unwrap_or(1),
                summary: Summary::of(&samples_ns),
                samples_ns,
                peak_extra_bytes: None,
                check,
            }),
            None => nothing(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Outcome {
        outcome(serde_json::from_str(line).expect("a line"))
    }

    const CHECK: &str =
        r#"{"reference": "fp64", "compared": 10, "max_error": 0.001, "tolerance": 0.01, "passed": true}"#;

    #[test]
    fn a_time_counts_only_with_a_right_result() {
        let times = r#""kernel": "x", "samples_ns": [100, 110, 120], "launches": 4"#;
        let right = of(&format!(r#"{{"i": 0, {times}, "check": {CHECK}}}"#));
        assert!(matches!(right, Outcome::Measured(m) if m.summary.as_ref().is_some_and(|s| s.median_ns == 110)));
        let wrong = of(&format!(
            r#"{{"i": 0, {times}, "check": {}}}"#,
            CHECK.replace("true", "false")
        ));
        assert!(matches!(wrong, Outcome::FailedCheck(_)), "{wrong:?}");
        assert!(matches!(
            of(r#"{"i": 0, "unsupported": "no"}"#),
            Outcome::Unsupported { .. }
        ));
        assert!(matches!(of(r#"{"i": 0}"#), Outcome::Failed { .. }));
    }

    #[test]
    fn kernels_of_the_program_and_its_libraries_are_not_pytorch_s() {
        let attention = |algorithm| Kernel {
            algorithm: Some(algorithm),
            ..Kernel::of(Class::Attention)
        };
        assert!(runs(&attention(Algorithm::Efficient)) && runs(&Kernel::of(Class::Convolution)));
        assert!(!runs(&attention(Algorithm::Cudnn)) && !runs(&Kernel::of(Class::Gemm)));
    }
}
