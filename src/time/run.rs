//! A run that was recorded once: the time of its steps, their bottlenecks, and their cost.

use super::bottleneck::{Bottleneck, bottlenecks};
use super::cost::Costs;
use super::network::Network;
use super::pace::Pace;
use super::pipeline::{Flow, Pipeline};
use super::several::{ParallelTime, Way, parallel_time, ways};
use super::step::{StepTime, step};
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::{Recording, SimulateError, parallel_work, record_work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Model, Setup};

/// A recorded step that can be timed with different costs.
pub struct TimedRun<'a> {
    recording: Recording,
    setup: &'a Setup,
    parallel: Option<&'a Parallel>,
    network: Network<'a>,
    data: Option<Pipeline>,
}

/// Time of a run's step.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTime {
    /// The step on one GPU, including communication with others.
    pub parallel_time: ParallelTime,
    /// Seconds of a whole step with all micro-batches, without waiting for data.
    pub step: f64,
    /// Steady state of data loading, if it was described.
    pub flow: Option<Flow>,
    micro_batches: u64,
}

impl RunTime {
    /// Seconds from one step to the next.
    pub fn interval(&self) -> f64 {
        let fed = self
            .flow
            .as_ref()
            .map_or(0.0, |flow| flow.interval * self.micro_batches as f64);
        fed.max(self.step)
    }

    /// Seconds of the interval in which the GPU waits for data.
    pub fn data_wait(&self) -> f64 {
        self.interval() - self.step
    }
}

impl<'a> TimedRun<'a> {
    /// Records a setup's step, on a single GPU or on one of several GPUs over a network.
    ///
    /// # Errors
    /// Those of [`simulate`](vramscope_engine::simulate()) and
    /// [`simulate_parallel`](vramscope_engine::simulate::simulate_parallel).
    pub fn record(
        model: &Model,
        setup: &'a Setup,
        parallel: Option<&'a Parallel>,
        gpu: Gpu,
        network: Network<'a>,
    ) -> Result<Self, SimulateError> {
        let recording = match parallel {
            Some(parallel) => parallel_work(model, setup, parallel, gpu)?,
            None => record_work(model, setup, gpu)?,
        };
        Ok(Self::of(recording, (setup, parallel), network))
    }

    /// Wraps an existing recording of the same setup.
    pub fn of(
        recording: Recording,
        (setup, parallel): (&'a Setup, Option<&'a Parallel>),
        network: Network<'a>,
    ) -> Self {
        Self {
            recording,
            setup,
            parallel,
            network,
            data: None,
        }
    }

    /// Returns the recording, to compute its memory with
    /// [`simulate_recorded`](vramscope_engine::simulate::simulate_recorded).
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// The recorded step.
    pub(super) const fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Sets the pipeline for data loading, if any; its step takes the time of the run's step.
    pub fn feed(&mut self, data: Option<Pipeline>) {
        self.data = data;
    }

    /// Samples per step over all GPUs.
    pub fn samples(&self) -> u64 {
        self.setup.batch * self.micro_batches() * self.parallel.map_or(1, Parallel::replicas)
    }

    fn micro_batches(&self) -> u64 {
        self.setup.accum.max(1)
    }

    /// Number of times that a step repeats the counted work. A pipeline is recorded with all its micro-batches, so 1.
    pub(super) fn repeated(&self) -> u64 {
        match self.parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) {
            true => 1,
            false => self.micro_batches(),
        }
    }

    /// Number of GPUs.
    pub fn gpus(&self) -> u64 {
        self.parallel.map_or(1, |parallel| parallel.world)
    }

    /// Number of workers for data loading, if it was described.
    pub fn workers(&self) -> Option<u64> {
        self.data.as_ref().map(|data| data.workers)
    }

    /// Dtype of the matrix products.
    pub fn computed_in(&self) -> DType {
        match self.parallel {
            Some(parallel) if parallel.mp => DType::Bf16,
            _ => self.setup.precision.products(),
        }
    }

    /// The setup of the run.
    pub fn setup(&self) -> &Setup {
        self.setup
    }

    /// Other strategies for the same number of GPUs, fastest first; empty for one GPU.
    pub fn ways(&self, costs: &Costs<'_>) -> Vec<Way> {
        let of = |parallel| ways(&self.recording, self.setup, parallel, (costs, &self.network));
        self.parallel.map(of).unwrap_or_default()
    }

    /// Time of a step.
    pub fn time(&self, costs: &Costs<'_>) -> RunTime {
        self.over(costs, &self.network)
    }

    /// Bottlenecks of the step, the largest first, with the time of the step without each.
    pub fn bottlenecks(&self, costs: &Costs<'_>) -> Vec<Bottleneck> {
        bottlenecks(self, costs)
    }

    /// Seconds of a step if the host issued everything at once.
    pub(super) fn without_host(&self, costs: &Costs<'_>) -> f64 {
        let none = Pace {
            us: std::collections::BTreeMap::new(),
            latency_us: 0.0,
            ..costs.pace.sharded()
        };
        let none = Pace {
            alone_us: none.us.clone(),
            sharded_us: none.us.clone(),
            ..none
        };
        self.time(&costs.with_pace(&none)).interval()
    }

    /// Seconds of a step if communication between GPUs took no time.
    pub(super) fn without_communication(&self, costs: &Costs<'_>) -> Option<f64> {
        self.parallel?;
        Some(self.over(costs, &self.network.instant()).interval())
    }

    fn over(&self, costs: &Costs<'_>, network: &Network<'_>) -> RunTime {
        let parallel_time = match self.parallel {
            Some(parallel) => parallel_time(&self.recording, self.setup, parallel, (costs, network)),
            None => ParallelTime::alone(self.setup, step(&self.recording, costs)),
        };
        let seconds = parallel_time.step_seconds(self.setup);
        let flow = self.data.as_ref().map(|data| {
            let data = Pipeline {
                step: seconds / self.micro_batches() as f64,
                ..data.clone()
            };
            data.flow()
        });
        RunTime {
            micro_batches: self.micro_batches(),
            step: seconds,
            parallel_time,
            flow,
        }
    }

    /// Smallest number of workers, up to `most`, within 1% of the shortest interval.
    pub fn best_workers(&self, time: &RunTime, most: u64) -> Option<u64> {
        let data = Pipeline {
            step: time.step / self.micro_batches() as f64,
            ..self.data.clone()?
        };
        Some(data.best_workers(most))
    }

    /// Work of the last micro-batch and the update, for which kernels were counted.
    pub fn counted<'t>(&self, time: &'t RunTime) -> &'t StepTime {
        &time.parallel_time.last
    }
}
