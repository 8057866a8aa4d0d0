//! A setup's run: its steps, what they wait for, and what they cost.

use super::bottleneck::{Bottleneck, bottlenecks};
use super::cost::Costs;
use super::network::Network;
use super::pace::Pace;
use super::pipeline::{Flow, Pipeline};
use super::several::{Together, Way, together, ways};
use super::step::{StepTime, step};
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Parallel, Precision};
use vramscope_engine::simulate::{Recording, SimulateError, parallel_work, record_work};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Model, Setup};

/// What is recorded once and timed in many ways.
pub struct Run<'a> {
    recording: Recording,
    setup: &'a Setup,
    parallel: Option<&'a Parallel>,
    network: Network<'a>,
    data: Option<Pipeline>,
}

/// The time of a run's step.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTime {
    /// On one GPU, whatever joins it to others.
    pub together: Together,
    /// Seconds of a whole step, all micro-batches, without the wait for data.
    pub step: f64,
    /// How micro-batches come, where that was said.
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

    /// Seconds of it in which the GPU waits for data.
    pub fn data_wait(&self) -> f64 {
        self.interval() - self.step
    }
}

impl<'a> Run<'a> {
    /// Records a setup's step, alone or as one of several GPUs over a network.
    ///
    /// # Errors
    /// As [`simulate`](vramscope_engine::simulate()) and [`simulate_parallel`](vramscope_engine::simulate::simulate_parallel).
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

    /// The same of what was recorded before, for the same setup.
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

    /// What was recorded, for whoever asks for its memory:
    /// [`simulate_recorded`](vramscope_engine::simulate::simulate_recorded).
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// Has data come through this pipeline, if one is given; its step is that of the run.
    pub fn feed(&mut self, data: Option<Pipeline>) {
        self.data = data;
    }

    /// Samples of a step, on all GPUs.
    pub fn samples(&self) -> u64 {
        self.setup.batch * self.micro_batches() * self.parallel.map_or(1, Parallel::replicas)
    }

    fn micro_batches(&self) -> u64 {
        self.setup.accum.max(1)
    }

    /// How often a step does what was counted: a pipeline's is recorded with all micro-batches.
    pub(super) fn repeated(&self) -> u64 {
        match self.parallel.is_some_and(|parallel| parallel.strategy.is_pipeline()) {
            true => 1,
            false => self.micro_batches(),
        }
    }

    /// GPUs.
    pub fn gpus(&self) -> u64 {
        self.parallel.map_or(1, |parallel| parallel.world)
    }

    /// Processes that prepare its batches, where that was said.
    pub fn workers(&self) -> Option<u64> {
        self.data.as_ref().map(|data| data.workers)
    }

    /// The type of its products.
    pub fn computed_in(&self) -> DType {
        match self.setup.precision {
            _ if self.parallel.is_some_and(|parallel| parallel.mp) => DType::Bf16,
            Precision::Fp32 => DType::F32,
            Precision::AmpFp16 => DType::F16,
            Precision::Bf16 | Precision::AmpBf16 => DType::Bf16,
        }
    }

    /// What was asked.
    pub fn setup(&self) -> &Setup {
        self.setup
    }

    /// Other ways to train on as many GPUs, where there are several; fastest first.
    pub fn ways(&self, costs: &Costs<'_>) -> Vec<Way> {
        let of = |parallel| ways(&self.recording, self.setup, parallel, (costs, &self.network));
        self.parallel.map(of).unwrap_or_default()
    }

    /// The time of its step.
    pub fn time(&self, costs: &Costs<'_>) -> RunTime {
        self.over(costs, &self.network)
    }

    /// What its step waits for, the largest first: what the step would take without it.
    pub fn bottlenecks(&self, costs: &Costs<'_>) -> Vec<Bottleneck> {
        bottlenecks(self, costs)
    }

    /// The time if the host issued everything at once.
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

    /// The time if what goes between GPUs took none.
    pub(super) fn without_communication(&self, costs: &Costs<'_>) -> Option<f64> {
        self.parallel?;
        Some(self.over(costs, &self.network.instant()).interval())
    }

    fn over(&self, costs: &Costs<'_>, network: &Network<'_>) -> RunTime {
        let together = match self.parallel {
            Some(parallel) => together(&self.recording, self.setup, parallel, (costs, network)),
            None => Together::alone(self.setup, step(&self.recording, costs)),
        };
        let seconds = together.step_seconds(self.setup);
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
            together,
            flow,
        }
    }

    /// The fewest workers, of at most so many, that come within 1% of the shortest interval.
    pub fn best_workers(&self, time: &RunTime, most: u64) -> Option<u64> {
        let data = Pipeline {
            step: time.step / self.micro_batches() as f64,
            ..self.data.clone()?
        };
        Some(data.best_workers(most))
    }

    /// Work of the last micro-batch and the update, over which kernels were counted.
    pub fn counted<'t>(&self, time: &'t RunTime) -> &'t StepTime {
        &time.together.last
    }
}
