//! The measured host: what its processor takes to issue work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the host's processor takes for probes, small programs that are the same on every host.
///
/// An operation takes longer in a real model than in a probe, so a probe counts as a ratio to the same probe on a host
/// whose models were timed too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// As the operating system names the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Software whose operations were timed, such as `PyTorch 2.11.0`; absent where there was none, and the processor
    /// alone was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Reason for which no software was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Microseconds of each probe.
    pub us: BTreeMap<String, f64>,
    /// Microseconds of one mix of operations in windows of a twentieth of a second: first those between the probes,
    /// then those of later moments of the run. Absent where the pace was not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows_us: Vec<Vec<f64>>,
}

/// Changes of a host's pace during a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The pace of the whole run over that of the probes, as times: above 1 where the host was slower later.
    pub since_probes: f64,
    /// Share within which 68% of all windows are longer or shorter than their median.
    pub spread: f64,
}

impl Host {
    /// Name of the probe that this program runs by itself, where there is no PyTorch.
    pub const PROCESSOR: &'static str = "processor";

    /// Changes of the pace, if it was followed: medians of moments count alike, however many windows each has.
    pub fn drift(&self) -> Option<Drift> {
        let moments: Vec<Vec<f64>> = self
            .windows_us
            .iter()
            .filter(|of| !of.is_empty())
            .map(|of| sorted(of.clone()))
            .collect();
        let first = median(moments.first()?);
        let medians = moments.iter().map(|of| median(of));
        let whole = medians.sum::<f64>() / moments.len() as f64;
        // Windows of a moment weigh as much as those of any other.
        let mut off: Vec<(f64, f64)> = Vec::new();
        for of in &moments {
            let weight = 1.0 / of.len() as f64;
            off.extend(of.iter().map(|us| ((us / whole).max(whole / us) - 1.0, weight)));
        }
        off.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut left = WITHIN * moments.len() as f64;
        let within = off.iter().find(|(_, weight)| {
            left -= weight;
            left <= 0.0
        });
        Some(Drift {
            since_probes: whole / first,
            spread: within?.0,
        })
    }
}

/// Share of windows that lie within the spread: one standard deviation of a normal distribution.
const WITHIN: f64 = 0.68;

fn sorted(mut all: Vec<f64>) -> Vec<f64> {
    all.sort_by(f64::total_cmp);
    all
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(windows_us: &[&[f64]]) -> Host {
        Host {
            windows_us: windows_us.iter().map(|of| of.to_vec()).collect(),
            ..Host::default()
        }
    }

    #[test]
    fn a_steady_host_has_no_drift_and_one_that_was_not_followed_says_nothing() {
        let steady = host(&[&[20.0; 5], &[20.0; 3]]).drift().expect("it was followed");
        assert!(
            (steady.since_probes - 1.0).abs() < 1e-12 && steady.spread < 1e-12,
            "{steady:?}"
        );
        assert_eq!(Host::default().drift(), None);
        assert_eq!(host(&[&[]]).drift(), None);
    }

    #[test]
    fn a_host_that_slows_down_after_the_probes_is_slower_as_a_whole_and_less_sure() {
        let slower = host(&[&[20.0; 9], &[30.0; 2], &[30.0; 2]])
            .drift()
            .expect("it was followed");
        assert!((slower.since_probes - 80.0 / 60.0).abs() < 1e-9, "{slower:?}");
        assert!((0.1..0.4).contains(&slower.spread), "{slower:?}");
    }
}
