//! Measures the host: with the PyTorch of the user's Python, or the processor alone where there is none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use vramscope_benchmark::Host;

use crate::recorder::{self, answer};

/// Timeout of the probes. A loaded host takes several times the usual half a minute.
const PROBE_TIMEOUT: Duration = Duration::from_secs(180);
/// Timeout for asking the version of PyTorch, which imports nothing.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);
/// Prints the version of PyTorch without importing it.
const VERSION: &str = "import importlib.metadata as m; print(m.version('torch'))";
/// Windows of equal work that are timed again at a later moment, to see if the host has become slower: about three seconds.
const WINDOWS: u32 = 60;
/// Runs of the processor's probe, of which the shortest counts.
const RUNS: usize = 7;

/// Output of `python -m vramscope.pace`.
#[derive(Deserialize)]
struct Printed {
    processor: Option<String>,
    software: String,
    us: BTreeMap<String, f64>,
    failed: BTreeMap<String, String>,
    windows_us: Vec<f64>,
}

/// Output of `python -m vramscope.pace --windows`.
#[derive(Deserialize)]
struct Windows {
    windows_us: Vec<f64>,
}

/// A Python with PyTorch, as `bench --list` names it.
pub struct Found {
    /// The interpreter.
    pub python: PathBuf,
    /// Version of its PyTorch.
    pub version: String,
}

impl Found {
    /// Describes it in a few words.
    pub fn describe(&self) -> String {
        format!("PyTorch {} of {}", self.version, self.python.display())
    }
}

/// Finds the Python that a user's training runs in, and the version of its PyTorch.
///
/// # Errors
/// The reason for which the processor alone will be timed, and what to do.
pub fn find(named: Option<&Path>) -> Result<Found, String> {
    let python = recorder::find(named).map_err(|failure| failure.to_string())?;
    let mut question = Command::new(&python);
    question.args(["-c", VERSION]);
    match answer(&mut question, VERSION_TIMEOUT) {
        Ok(version) => Ok(Found {
            python,
            version: version.trim().to_owned(),
        }),
        Err(_) => Err(format!(
            "{} has no PyTorch: name the Python that your training runs in with --python PATH",
            python.display()
        )),
    }
}

/// Measures the host. Without PyTorch, or where its probes fail, the processor alone is timed and the reason is kept.
pub fn measure(named: Option<&Path>, quick: bool) -> Host {
    let measured = find(named).and_then(|found| {
        anstream::eprintln!("measuring the host with {}", found.describe());
        probes(&found, quick)
    });
    measured.unwrap_or_else(|reason| {
        anstream::eprintln!("note: the host's processor alone is measured: {reason}");
        Host {
            reason: Some(reason),
            us: BTreeMap::from([(Host::PROCESSOR.to_owned(), processor_us())]),
            ..Host::default()
        }
    })
}

/// Follows the host's pace: adds how it is now, if it was probed through PyTorch at first.
pub fn follow(named: Option<&Path>, host: &mut Host) {
    if host.windows_us.is_empty() {
        return;
    }
    let windows = || -> Result<Windows, String> {
        let mut run = module(&find(named)?, "vramscope.pace")?;
        run.args(["--windows", &WINDOWS.to_string()]);
        let text = answer(&mut run, PROBE_TIMEOUT)?;
        serde_json::from_str(&text).map_err(|error| format!("the windows printed no result: {error}"))
    };
    match windows() {
        Ok(windows) => host.windows_us.push(windows.windows_us),
        Err(why) => anstream::eprintln!("note: the host's pace was not followed: {why}"),
    }
}

/// A module of the sources that this program carries, run by a Python.
pub fn module(found: &Found, name: &str) -> Result<Command, String> {
    let folder = recorder::folder().map_err(|_| "the probes cannot be unpacked".to_owned())?;
    let mut run = Command::new(&found.python);
    run.args(["-m", name]).env("PYTHONPATH", folder);
    Ok(run)
}

/// Runs the probes that this program carries.
fn probes(found: &Found, quick: bool) -> Result<Host, String> {
    let mut run = module(found, "vramscope.pace")?;
    if quick {
        run.arg("--quick");
    }
    let text = answer(&mut run, PROBE_TIMEOUT)?;
    let printed: Printed =
        serde_json::from_str(&text).map_err(|error| format!("the probes printed no result: {error}"))?;
    for (name, why) in &printed.failed {
        anstream::eprintln!("note: the host's probe \"{name}\" did not run: {why}");
    }
    let mut us = printed.us;
    us.insert(Host::PROCESSOR.to_owned(), processor_us());
    Ok(Host {
        processor: printed.processor,
        software: Some(printed.software),
        reason: None,
        us,
        windows_us: vec![printed.windows_us],
    })
}

/// Microseconds of one thread for work like an interpreter's: strings, maps, branches and small allocations.
fn processor_us() -> f64 {
    let run = || {
        let begin = Instant::now();
        let mut total = 0_usize;
        for layer in 0..400_usize {
            let mut made: BTreeMap<String, usize> = BTreeMap::new();
            for key in [
                "hidden_states",
                "attention_mask",
                "position_ids",
                "past_key_values",
                "use_cache",
            ] {
                let mut name = String::new();
                let _ = write!(name, "{key}.{layer}");
                made.insert(name, layer ^ total);
            }
            total = made
                .iter()
                .fold(total, |sum, (name, value)| sum.wrapping_mul(31) ^ name.len() ^ value);
        }
        black_box(total);
        begin.elapsed().as_secs_f64() * 1e6
    };
    (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_without_pytorch_is_named_with_the_way_out() {
        let missing = find(Some(Path::new("/nowhere/python"))).map(|found| found.version);
        assert!(missing.is_err_and(|why| why.contains("--python /nowhere/python")));
    }

    #[test]
    fn the_processor_alone_is_timed() {
        assert!(processor_us() > 1.0);
    }
}
