//! The time of a step as scripts read it.

use serde::Serialize;

use super::step::{Bound, Share, StepTime};
use super::timeline::Phase;
use crate::Setup;

/// Milliseconds of each phase, as CUDA events measure them: of the last micro-batch, and the update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Milliseconds {
    /// From the inputs to the loss.
    pub forward: f64,
    /// From the loss to the gradients.
    pub backward: f64,
    /// Clipping, scaler, optimizer and `zero_grad`.
    pub optimizer: f64,
}

/// Where the time of a step goes.
#[derive(Debug, Clone, Serialize)]
pub struct TimeAnswer<'a> {
    /// The whole step, all micro-batches.
    pub step_ms: f64,
    /// Samples a second.
    pub samples_per_s: f64,
    /// Text positions a second, image tokens included; absent for models without text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Operations of matrix products and attention over the card's highest rate.
    pub flops_utilisation: f64,
    /// Share of the step in which the GPU computes nothing.
    pub gpu_idle_share: f64,
    /// What the step waits for.
    pub bound: Bound,
    /// The step if the host issued everything at once (CUDA graphs come near).
    pub step_ms_without_host: f64,
    /// The step if kernels took no time.
    pub step_ms_without_gpu: f64,
    /// Where kernels' times come from.
    pub kernels_from: &'a str,
    /// Where the host's pace comes from.
    pub host_from: &'a str,
    /// GPU time by kind of kernel, longest first.
    pub by_kernel: Vec<Part>,
    /// GPU time by part of the model, longest first.
    pub by_component: Vec<Part>,
}

/// GPU time of a kind of kernel or a part of the model, of one micro-batch and the update.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// GPU time.
    pub ms: f64,
    /// Kernels.
    pub launches: u64,
}

impl StepTime {
    /// Milliseconds of each phase.
    pub fn milliseconds(&self) -> Milliseconds {
        let ms = |phase| self.phase(phase).total * 1e3;
        Milliseconds {
            forward: ms(Phase::Forward),
            backward: ms(Phase::Backward),
            optimizer: ms(Phase::Optimizer),
        }
    }

    /// Seconds of a whole step of all its micro-batches, where a phase takes what `of` says.
    fn whole(&self, setup: &Setup, of: impl Fn(Phase) -> f64) -> f64 {
        setup.accum.max(1) as f64 * (of(Phase::Forward) + of(Phase::Backward)) + of(Phase::Optimizer)
    }

    /// Seconds of a whole step, all micro-batches.
    pub fn step_seconds(&self, setup: &Setup) -> f64 {
        self.whole(setup, |phase| self.phase(phase).total)
    }

    /// Where the time goes, on a card of this highest rate (operations a second); `sources` are those of
    /// kernels and of the host's pace.
    pub fn answer<'a>(&self, setup: &Setup, peak: f64, sources: [&'a str; 2]) -> TimeAnswer<'a> {
        let seconds = self.step_seconds(setup);
        let micro_batches = setup.accum.max(1);
        let per_second = |n: u64| n as f64 / seconds;
        let tokens = setup.batch * setup.seq * micro_batches;
        TimeAnswer {
            step_ms: seconds * 1e3,
            samples_per_s: per_second(setup.batch * micro_batches),
            tokens_per_s: (tokens > 0).then(|| per_second(tokens)),
            flops_utilisation: micro_batches as f64 * self.all.flops / (seconds * peak),
            gpu_idle_share: self.idle_share(),
            bound: self.bound(),
            step_ms_without_host: self.whole(setup, |phase| self.phase(phase).busy) * 1e3,
            step_ms_without_gpu: self.whole(setup, |phase| self.phase(phase).host) * 1e3,
            kernels_from: sources[0],
            host_from: sources[1],
            by_kernel: parts(self.by_class.iter().map(|(name, share)| (*name, share))),
            by_component: parts(self.by_component.iter().map(|(c, share)| (c.label(), share))),
        }
    }
}

fn parts<'a>(shares: impl Iterator<Item = (&'static str, &'a Share)>) -> Vec<Part> {
    let mut out: Vec<Part> = shares
        .map(|(name, share)| Part {
            name,
            ms: share.seconds * 1e3,
            launches: share.launches,
        })
        .collect();
    out.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    out
}
