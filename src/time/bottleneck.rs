//! Finds bottlenecks: resources that a step waits for, and its time without each of them.

use serde::{Deserialize, Serialize};

use super::cost::Costs;
use super::resource::Resource;
use super::run::TimedRun;
use vramscope_engine::order::sort_by;

/// A resource and the time it costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The resource.
    pub resource: Resource,
    /// Milliseconds of the step without it.
    pub step_ms_without: f64,
    /// Speedup: the time of the step divided by its time without the resource.
    pub speedup: f64,
}

/// Returns the bottlenecks of a run, the one whose removal saves most first. The step is simulated anew without each
/// resource, and then takes what the other resources make it take.
pub(super) fn bottlenecks(run: &TimedRun<'_>, costs: &Costs<'_>) -> Vec<Bottleneck> {
    let time = run.time(costs);
    let now = time.interval();
    let mut without = vec![(Resource::Host, run.without_host(costs))];
    // `step` is the time without waiting for data.
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
