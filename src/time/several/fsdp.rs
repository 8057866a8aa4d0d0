//! Simulates FSDP2: each block's parameters are gathered for its forward and again for its backward, and its gradients
//! are reduce-scattered as they become ready.

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::timeline::Phase;
use super::replayer::{Replayer, Way};
use super::zero::part;
use vramscope_engine::Setup;
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Optimizer, Parallel, Strategy};
use vramscope_engine::simulate::{ROOT, Recording, Unit, Units, shard};
use vramscope_engine::tape::work::{Launch, WorkItem};

/// Simulates a step: forward, backward, and the update of the shards at the host's pace for `DTensor`s.
pub(super) fn step(
    replayer: &mut Replayer<'_, '_>,
    recording: &Recording,
    (setup, parallel): (&Setup, &Parallel),
    sharded: &Costs<'_>,
) {
    let mut pass = Pass::new(recording, setup, parallel);
    replayer.begin(Phase::Forward);
    pass.forward(replayer, recording.work.forward());
    replayer.begin(Phase::Backward);
    pass.backward(replayer, recording.work.backward());
    replayer.begin(Phase::Optimizer);
    if parallel.offload.is_any() {
        let elements = pass.units.iter().map(Group::trained_shards).sum::<u64>();
        replayer.host_seconds(elements as f64 * host_update(setup.optim, pass.own, sharded));
        return;
    }
    for item in recording.work.optimizer() {
        match item {
            WorkItem::Launch(launch) => replayer.item_with(&WorkItem::Launch(pass.of_shards(launch)), sharded),
            _ => replayer.item_with(item, sharded),
        }
    }
}

/// Seconds for the host to update one element with a single thread, `torchrun`'s default.
fn host_update(optimizer: Optimizer, dtype: DType, costs: &Costs<'_>) -> f64 {
    let dtype = if dtype == DType::F32 { "f32" } else { "bf16" };
    let fused = matches!(optimizer, Optimizer::AdamwFused);
    let name = if fused { "adamw_fused" } else { "adamw" };
    costs.pace.named(&format!("{name} host element {dtype}"))
}

/// Parameters that are sharded and gathered together.
#[derive(Default)]
struct Group {
    /// Number of elements of each shard, and true if it is trained.
    shards: Vec<(u64, bool)>,
    gathered: bool,
    /// Time at which the prefetched buffer is available.
    ahead: Option<f64>,
    /// True once its gradients have been reduced.
    reduced: bool,
}

impl Group {
    fn shards(&self) -> u64 {
        self.shards.iter().map(|(n, _)| n).sum()
    }

    fn trained_shards(&self) -> u64 {
        self.shards.iter().filter(|(_, trained)| *trained).map(|(n, _)| n).sum()
    }
}

struct Pass<'a> {
    modules: Units,
    units: Vec<Group>,
    parallel: &'a Parallel,
    /// Dtype of the shards.
    own: DType,
    /// Dtype in which parameters are gathered and used.
    computed: DType,
    /// Dtype in which gradients are reduced.
    summed: DType,
    /// Units in the order in which their forward passes ended.
    order: Vec<Unit>,
    /// Times at which the copies out of the last two gather buffers are done, the older one first.
    copied: [f64; 2],
    /// Time at which the last gradients are reduced.
    reduced: f64,
    /// Time at which they are in the host's memory.
    offloaded: f64,
}

impl<'a> Pass<'a> {
    fn new(recording: &Recording, setup: &Setup, parallel: &'a Parallel) -> Self {
        let modules = Units::of(&recording.log);
        let mut units: Vec<Group> = (0..modules.count).map(|_| Group::default()).collect();
        for &(id, trained) in &recording.parameters {
            let allocation = &recording.log.allocations[id as usize];
            let elements = shard(&allocation.shape, parallel.world);
            units[modules.unit(allocation.scope)].shards.push((elements, trained));
        }
        let own = setup.precision.weights();
        Self {
            modules,
            units,
            parallel,
            own,
            computed: if parallel.mp { DType::Bf16 } else { own },
            summed: if parallel.mp { DType::F32 } else { own },
            order: Vec::new(),
            copied: [0.0; 2],
            reduced: 0.0,
            offloaded: 0.0,
        }
    }

    fn reshards(&self) -> bool {
        self.parallel.strategy == Strategy::Fsdp
    }

    /// The unit whose module launches a kernel.
    fn unit_of(&self, item: &WorkItem) -> Option<Unit> {
        match item {
            WorkItem::Launch(launch) => Some(self.modules.unit(launch.scope)),
            WorkItem::Repeat(items, _) => items.iter().find_map(|item| self.unit_of(item)),
            WorkItem::HostOp(_) => None,
        }
    }

    fn forward(&mut self, replayer: &mut Replayer<'_, '_>, items: &[WorkItem]) {
        self.enter_forward(replayer, ROOT);
        let mut now = ROOT;
        for item in items {
            if let Some(unit) = self.unit_of(item).filter(|unit| *unit != now) {
                self.leave_forward(now);
                if unit != ROOT {
                    self.enter_forward(replayer, unit);
                }
                now = unit;
            }
            replayer.item(item);
        }
        self.leave_forward(now);
        self.units[ROOT].gathered &= !self.reshards();
        self.order.push(ROOT);
    }

    /// The whole model is entered and left only once; blocks alternate while it runs.
    fn leave_forward(&mut self, unit: Unit) {
        if unit != ROOT {
            self.units[unit].gathered &= !self.reshards();
            self.order.push(unit);
        }
    }

    fn enter_forward(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) {
        let mixed = if self.parallel.mp { " mp" } else { "" };
        replayer.host(&format!("fsdp{mixed} unit forward"), 1);
        replayer.host("fsdp parameter forward", self.units[unit].shards.len() as u64);
        if !self.units[unit].gathered {
            let done = self.gather(replayer, unit);
            self.copy_out(replayer, unit, done);
        }
    }

    fn backward(&mut self, replayer: &mut Replayer<'_, '_>, items: &[WorkItem]) {
        self.enter_backward(replayer, ROOT);
        let mut now = ROOT;
        for item in items {
            if let Some(unit) = self.unit_of(item).filter(|unit| *unit != now) {
                self.leave_backward(replayer, now);
                if unit != ROOT {
                    self.enter_backward(replayer, unit);
                }
                now = unit;
            }
            replayer.item(item);
        }
        self.leave_backward(replayer, now);
        self.reduce(replayer, ROOT);
        replayer.join(self.reduced);
        if self.parallel.offload.is_any() {
            // The host waits for the copies before it updates.
            replayer.host_join(self.offloaded);
        }
    }

    fn enter_backward(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) {
        if !self.units[unit].gathered {
            let done = match self.units[unit].ahead.take() {
                Some(done) => done,
                None => self.gather_again(replayer, unit),
            };
            self.copy_out(replayer, unit, done);
        }
        let at = self.order.iter().rposition(|&other| other == unit);
        if let Some(before) = at.and_then(|at| at.checked_sub(1)).map(|at| self.order[at]) {
            let group = &self.units[before];
            if !group.gathered && group.ahead.is_none() && !group.reduced {
                self.units[before].ahead = Some(self.gather_again(replayer, before));
            }
        }
    }

    fn leave_backward(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) {
        if unit != ROOT {
            self.reduce(replayer, unit);
        }
    }

    fn gather_again(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) -> f64 {
        replayer.host("fsdp unit gathered again", 1);
        replayer.host("fsdp parameter gathered again", self.units[unit].shards.len() as u64);
        self.gather(replayer, unit)
    }

    /// Copies this GPU's shards into a buffer, from the host's memory if they are offloaded, and gathers those of all
    /// GPUs. It first waits for the copy out of the buffer before the last.
    fn gather(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) -> f64 {
        let group = &self.units[unit];
        let shards = group.shards();
        if shards == 0 {
            return 0.0;
        }
        let mut ready = self.copied[0];
        if self.parallel.offload.is_any() {
            let pieces = group.shards.iter().map(|(n, _)| n * self.own.width());
            ready = replayer.transfer(Way::ToDevice, pieces, ready);
        }
        let bytes = [shards * self.own.width(), shards * self.computed.width()];
        ready = ready.max(replayer.issued()) + replayer.copy_beside("shards into a buffer", self.computed, bytes);
        let whole = shards * self.parallel.world * self.computed.width();
        let done = replayer.collective(Collective::AllGather, whole as f64, ready);
        replayer.host("all_gather call", 1);
        done
    }

    /// Copies gathered parameters out of the buffer, in which they are ordered by GPU.
    fn copy_out(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit, done: f64) {
        let group = &mut self.units[unit];
        group.gathered = true;
        let whole = group.shards() * self.parallel.world * self.computed.width();
        if whole > 0 {
            replayer.join(done);
            replayer.copy("parameters out of a buffer", self.computed, [whole, whole]);
            self.copied = [self.copied[1], replayer.computed()];
        }
    }

    /// Copies gradients into a buffer once the previous reduction has released its own, reduces them, and frees the
    /// parameters.
    fn reduce(&mut self, replayer: &mut Replayer<'_, '_>, unit: Unit) {
        let group = &mut self.units[unit];
        group.gathered = false;
        let shards = group.trained_shards();
        if shards == 0 || std::mem::replace(&mut group.reduced, true) {
            return;
        }
        let trained = group.shards.iter().filter(|(_, trained)| *trained);
        let pieces: Vec<u64> = trained.map(|(n, _)| n * self.own.width()).collect();
        replayer.host("fsdp unit backward", 1);
        replayer.host("fsdp parameter backward", pieces.len() as u64);
        replayer.join(self.reduced);
        let whole = shards * self.parallel.world;
        let bytes = [whole * self.computed.width(), whole * self.summed.width()];
        let ready = replayer.computed() + replayer.copy_beside("gradients into a buffer", self.summed, bytes);
        let bytes = (whole * self.summed.width()) as f64;
        self.reduced = replayer.collective(Collective::ReduceScatter, bytes, ready);
        replayer.host("reduce_scatter call", 1);
        if self.parallel.offload.is_any() {
            self.offloaded = replayer.transfer(Way::ToHost, pieces.into_iter(), self.reduced);
        }
    }

    /// A kernel of the update, on shards in their own dtype.
    fn of_shards(&self, launch: &Launch) -> Launch {
        let mut launch = part(launch, 1.0 / self.parallel.world as f64);
        if self.parallel.mp && launch.dtype.width() < self.own.width() {
            let wider = self.own.width() / launch.dtype.width();
            launch.read *= wider;
            launch.written *= wider;
            launch.dtype = self.own;
        }
        launch
    }
}
