//! Replays a step on three timelines: host, GPU, and communication.

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::network::Network;
use super::super::step::StepTime;
use super::super::tally::Tally;
use super::super::timeline::{Lines, Phase, PhaseTime};
use std::collections::HashMap;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::log::Log;
use vramscope_engine::tape::work::{Beside, Class, Launch, Transfer, WorkItem};

/// Communication of a GPU in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Traffic {
    /// Number of collectives.
    pub calls: u64,
    /// Bytes that each GPU sends over a ring.
    pub bytes: f64,
    /// Seconds of all collectives, one after the other.
    pub seconds: f64,
    /// Bytes copied between a GPU and its host, both directions.
    pub host_bytes: f64,
}

/// Direction of a copy between GPU and host; each has its own copy engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    ToDevice,
    ToHost,
}

/// Replays a step.
pub(super) struct Replayer<'a, 'c> {
    pub costs: &'a Costs<'c>,
    log: &'a Log,
    network: &'a Network<'a>,
    world: u64,
    lines: Lines,
    /// Time at which the last collective is done.
    communication: f64,
    /// Times at which the copy engines are done.
    copies: [f64; 2],
    phase: Phase,
    begun: f64,
    time: PhaseTime,
    tally: Tally,
    traffic: Traffic,
    /// Ends of the numbered work beside the computation.
    ends: HashMap<u32, f64>,
}

impl<'a, 'c> Replayer<'a, 'c> {
    pub fn new(log: &'a Log, costs: &'a Costs<'c>, network: &'a Network<'a>, world: u64) -> Self {
        Self {
            costs,
            log,
            network,
            world,
            lines: Lines::default(),
            communication: 0.0,
            copies: [0.0; 2],
            phase: Phase::Forward,
            begun: 0.0,
            time: PhaseTime::default(),
            tally: Tally::default(),
            traffic: Traffic::default(),
            ends: HashMap::new(),
        }
    }

    /// Starts a phase and ends the one before.
    pub fn begin(&mut self, phase: Phase) {
        self.end();
        (self.phase, self.begun) = (phase, self.lines.now(self.costs));
        self.lines.work(self.costs.pace.phase(phase), &mut self.time);
    }

    fn end(&mut self) {
        let mut time = std::mem::take(&mut self.time);
        time.total = self.lines.now(self.costs) - self.begun;
        if time != PhaseTime::default() {
            self.tally.phases.insert(self.phase, time);
        }
    }

    /// Returns the step's time and traffic.
    pub fn done(mut self) -> (StepTime, Traffic) {
        self.end();
        (self.tally.step(), self.traffic)
    }

    /// Runs the next item of the single GPU's step.
    pub fn item(&mut self, item: &WorkItem) {
        self.item_with(item, self.costs);
    }

    /// Runs an item with other costs, for another pace of the host.
    pub fn item_with(&mut self, item: &WorkItem, costs: &Costs<'_>) {
        let (tally, log, phase) = (&mut self.tally, self.log, self.phase);
        self.lines
            .item(item, costs, &mut self.time, &mut |launch, seconds, times| {
                tally.count(log, phase, launch, (seconds, times));
            });
    }

    /// Runs an optimizer's step.
    pub fn update(&mut self, items: &[WorkItem], costs: &Costs<'_>) {
        self.begin(Phase::Optimizer);
        items.iter().for_each(|item| self.item_with(item, costs));
    }

    /// Runs the host operation with this name several times.
    pub fn host(&mut self, name: &str, times: u64) {
        let seconds = self.costs.pace.named(name) * times as f64;
        self.lines.work(seconds, &mut self.time);
    }

    /// Keeps the host busy for some seconds.
    pub fn host_seconds(&mut self, seconds: f64) {
        self.lines.work(seconds, &mut self.time);
    }

    /// Runs a copy kernel whose launch by the host is counted elsewhere.
    pub fn copy(&mut self, name: &'static str, dtype: DType, bytes: [u64; 2]) {
        let launch = copy(name, dtype, bytes);
        let seconds = self.lines.launch(&launch, self.costs, &mut self.time);
        self.tally.count(self.log, self.phase, &launch, (seconds, 1));
    }

    /// Seconds of a copy kernel on another stream than the computation's.
    pub fn copy_beside(&self, name: &'static str, dtype: DType, bytes: [u64; 2]) -> f64 {
        if bytes == [0, 0] {
            return 0.0;
        }
        self.costs.kernel(&copy(name, dtype, bytes))
    }

    /// Time at which the GPU has finished everything issued so far.
    pub fn computed(&self) -> f64 {
        self.lines.gpu.max(self.issued())
    }

    /// Earliest start of work that the host issues now.
    pub fn issued(&self) -> f64 {
        self.lines.host + self.costs.pace.latency()
    }

    /// Runs a collective over a buffer of `bytes` from `ready` on, in parallel with the host, and returns its end.
    pub fn collective(&mut self, kind: Collective, bytes: f64, ready: f64) -> f64 {
        let seconds = self.network.seconds(kind, bytes, self.world);
        self.communication = self.communication.max(ready).max(self.issued()) + seconds;
        self.traffic.calls += 1;
        self.traffic.bytes += kind.sent(bytes, self.world);
        self.traffic.seconds += seconds;
        self.communication
    }

    /// Copies pieces of memory between host and GPU from `ready` on, and returns the end.
    pub fn transfer(&mut self, way: Way, pieces: impl Iterator<Item = u64>, ready: f64) -> f64 {
        let issued = self.issued();
        let engine = &mut self.copies[usize::from(way == Way::ToHost)];
        *engine = engine.max(ready).max(issued);
        for bytes in pieces {
            *engine += self.costs.transfer(way == Way::ToHost, bytes);
            self.traffic.host_bytes += bytes as f64;
        }
        *engine
    }

    /// Runs recorded work beside the computation.
    pub fn beside(&mut self, transfer: &Transfer) {
        let issued = if transfer.follows {
            self.computed()
        } else {
            self.issued()
        };
        let ready = issued.max(self.end_of(transfer.after));
        let bytes = transfer.bytes;
        let done = match transfer.work {
            Beside::AllReduce => self.collective(Collective::AllReduce, bytes as f64, ready),
            Beside::AllGather => self.collective(Collective::AllGather, bytes as f64, ready),
            Beside::ReduceScatter => self.collective(Collective::ReduceScatter, bytes as f64, ready),
            Beside::ToDevice => self.transfer(Way::ToDevice, std::iter::once(bytes), ready),
            Beside::ToHost => self.transfer(Way::ToHost, std::iter::once(bytes), ready),
            Beside::Copy => {
                let halves = [bytes - bytes / 2, bytes / 2];
                let seconds = self.copy_beside("copy beside the computation", DType::Bf16, halves);
                self.communication = self.communication.max(ready) + seconds;
                self.communication
            }
        };
        self.ends.insert(transfer.number, done);
    }

    /// Notes the time at which everything issued so far is computed.
    pub fn event(&mut self, number: u32) {
        self.ends.insert(number, self.computed());
    }

    /// End of numbered work; 0 of work in an earlier phase that was not played.
    pub fn end_of(&self, number: u32) -> f64 {
        self.ends.get(&number).copied().unwrap_or(0.0)
    }

    /// Makes the GPU wait until `done`.
    pub fn join(&mut self, done: f64) {
        self.lines.gpu = self.lines.gpu.max(done);
    }

    /// Makes the host wait until `done`.
    pub fn host_join(&mut self, done: f64) {
        self.lines.host = self.lines.host.max(done);
    }
}

fn copy(name: &'static str, dtype: DType, [read, written]: [u64; 2]) -> Launch {
    Launch {
        name,
        class: Class::Pointwise,
        dtype,
        gradient: false,
        scope: 0,
        read,
        written,
        extents: [0; 4],
        shared: 1,
    }
}
