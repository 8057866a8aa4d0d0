//! What a step waits for, and what it would take without that.

use serde::{Deserialize, Serialize};

use super::cost::Costs;
use super::run::Run;
use vramscope_engine::order::sort_by;

/// What a step can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Batches that are not there yet.
    Data,
    /// What goes between GPUs.
    Communication,
    /// The host, which issues kernels one after the other.
    Host,
    /// Kernels whose arithmetic takes longer than their memory: products, attention.
    Arithmetic,
    /// Kernels whose memory takes longer: elementwise operations, norms, optimizers.
    Memory,
}

impl Resource {
    /// All that a GPU's kernels wait for.
    const OF_KERNELS: [Self; 2] = [Self::Arithmetic, Self::Memory];
}

/// One of them, and what it holds up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// What it is.
    pub resource: Resource,
    /// The step without it.
    pub step_ms_without: f64,
    /// How much faster that is: the step as it is over the step without.
    pub speedup: f64,
}

/// Each that the run has, the one whose end would shorten the step most first. Each is the difference of two
/// simulations: the others stay as they are and take its place.
pub(super) fn bottlenecks(run: &Run<'_>, costs: &Costs<'_>) -> Vec<Bottleneck> {
    let time = run.time(costs);
    let now = time.interval();
    let mut without = vec![(Resource::Host, run.without_host(costs))];
    if time.flow.is_some() {
        without.push((Resource::Data, time.step));
    }
    if let Some(seconds) = run.without_communication(costs) {
        without.push((Resource::Communication, seconds));
    }
    for resource in Resource::OF_KERNELS {
        without.push((resource, run.time(&costs.without(resource)).interval()));
    }
    let mut out: Vec<Bottleneck> = without
        .into_iter()
        .map(|(resource, seconds)| Bottleneck {
            resource,
            step_ms_without: seconds.min(now) * 1e3,
            speedup: if seconds > 0.0 {
                (now / seconds).max(1.0)
            } else {
                f64::INFINITY
            },
        })
        .collect();
    sort_by(&mut out, |a, b| a.step_ms_without.total_cmp(&b.step_ms_without));
    out
}
