//! Simulates FSDP2: each block's parameters are gathered for its forward and again for its backward, and its gradients
//! are reduce-scattered as they become ready.

use super::super::communication::Collective;
use super::super::cost::Costs;
use super::super::timeline::Phase;
use super::player::{Player, Way};
use super::zero::part;
use vramscope_engine::Setup;
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Optimizer, Parallel, Precision, Strategy};
use vramscope_engine::simulate::{ROOT, Recording, Unit, Units, shard};
use vramscope_engine::tape::work::{Item, Launch};

/// Simulates a step: forward, backward, and the update of the shards at the host's pace for `DTensor`s.
pub(super) fn step(
    player: &mut Player<'_, '_>,
    recording: &Recording,
    (setup, parallel): (&Setup, &Parallel),
    sharded: &Costs<'_>,
) {
    let mut pass = Pass::new(recording, setup, parallel);
    player.begin(Phase::Forward);
    pass.forward(player, recording.work.forward());
    player.begin(Phase::Backward);
    pass.backward(player, recording.work.backward());
    player.begin(Phase::Optimizer);
    if parallel.offload {
        let elements = pass.units.iter().map(Group::trained_shards).sum::<u64>();
        player.host_seconds(elements as f64 * host_update(setup.optim, pass.own, sharded));
        return;
    }
    for item in recording.work.optimizer() {
        match item {
            Item::Launch(launch) => player.item_by(&Item::Launch(pass.of_shards(launch)), sharded),
            _ => player.item_by(item, sharded),
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
            let birth = &recording.log.births[id as usize];
            let elements = shard(&birth.shape, parallel.world);
            units[modules.unit(birth.scope)].shards.push((elements, trained));
        }
        let own = match setup.precision {
            Precision::Bf16 => DType::Bf16,
            _ => DType::F32,
        };
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
    fn unit_of(&self, item: &Item) -> Option<Unit> {
        match item {
            Item::Launch(launch) => Some(self.modules.unit(launch.scope)),
            Item::Repeat(items, _) => items.iter().find_map(|item| self.unit_of(item)),
            Item::Chore(_) => None,
        }
    }

    fn forward(&mut self, player: &mut Player<'_, '_>, items: &[Item]) {
        self.enter_forward(player, ROOT);
        let mut now = ROOT;
        for item in items {
            if let Some(unit) = self.unit_of(item).filter(|unit| *unit != now) {
                self.leave_forward(now);
                if unit != ROOT {
                    self.enter_forward(player, unit);
                }
                now = unit;
            }
            player.item(item);
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

    fn enter_forward(&mut self, player: &mut Player<'_, '_>, unit: Unit) {
        let mixed = if self.parallel.mp { " mp" } else { "" };
        player.host(&format!("fsdp{mixed} unit forward"), 1);
        player.host("fsdp parameter forward", self.units[unit].shards.len() as u64);
        if !self.units[unit].gathered {
            let done = self.gather(player, unit);
            self.copy_out(player, unit, done);
        }
    }

    fn backward(&mut self, player: &mut Player<'_, '_>, items: &[Item]) {
        self.enter_backward(player, ROOT);
        let mut now = ROOT;
        for item in items {
            if let Some(unit) = self.unit_of(item).filter(|unit| *unit != now) {
                self.leave_backward(player, now);
                if unit != ROOT {
                    self.enter_backward(player, unit);
                }
                now = unit;
            }
            player.item(item);
        }
        self.leave_backward(player, now);
        self.reduce(player, ROOT);
        player.join(self.reduced);
        if self.parallel.offload {
            // The host waits for the copies before it updates.
            player.host_join(self.offloaded);
        }
    }

    fn enter_backward(&mut self, player: &mut Player<'_, '_>, unit: Unit) {
        if !self.units[unit].gathered {
            let done = match self.units[unit].ahead.take() {
                Some(done) => done,
                None => self.gather_again(player, unit),
            };
            self.copy_out(player, unit, done);
        }
        let at = self.order.iter().rposition(|&other| other == unit);
        if let Some(before) = at.and_then(|at| at.checked_sub(1)).map(|at| self.order[at]) {
            let group = &self.units[before];
            if !group.gathered && group.ahead.is_none() && !group.reduced {
                self.units[before].ahead = Some(self.gather_again(player, before));
            }
        }
    }

    fn leave_backward(&mut self, player: &mut Player<'_, '_>, unit: Unit) {
        if unit != ROOT {
            self.reduce(player, unit);
        }
    }

    fn gather_again(&mut self, player: &mut Player<'_, '_>, unit: Unit) -> f64 {
        player.host("fsdp unit gathered again", 1);
        player.host("fsdp parameter gathered again", self.units[unit].shards.len() as u64);
        self.gather(player, unit)
    }

    /// Copies this GPU's shards into a buffer, from the host's memory if they are offloaded, and gathers those of all
    /// GPUs. It first waits for the copy out of the buffer before the last.
    fn gather(&mut self, player: &mut Player<'_, '_>, unit: Unit) -> f64 {
        let group = &self.units[unit];
        let shards = group.shards();
        if shards == 0 {
            return 0.0;
        }
        let mut ready = self.copied[0];
        if self.parallel.offload {
            let pieces = group.shards.iter().map(|(n, _)| n * self.own.width());
            ready = player.transfer(Way::ToDevice, pieces, ready);
        }
        let bytes = [shards * self.own.width(), shards * self.computed.width()];
        ready = ready.max(player.issued()) + player.copy_beside("shards into a buffer", self.computed, bytes);
        let whole = shards * self.parallel.world * self.computed.width();
        let done = player.collective(Collective::AllGather, whole as f64, ready);
        player.host("all_gather call", 1);
        done
    }

    /// Copies gathered parameters out of the buffer, in which they are ordered by GPU.
    fn copy_out(&mut self, player: &mut Player<'_, '_>, unit: Unit, done: f64) {
        let group = &mut self.units[unit];
        group.gathered = true;
        let whole = group.shards() * self.parallel.world * self.computed.width();
        if whole > 0 {
            player.join(done);
            player.copy("parameters out of a buffer", self.computed, [whole, whole]);
            self.copied = [self.copied[1], player.computed()];
        }
    }

    /// Copies gradients into a buffer once the previous reduction has released its own, reduces them, and frees the
    /// parameters.
    fn reduce(&mut self, player: &mut Player<'_, '_>, unit: Unit) {
        let group = &mut self.units[unit];
        group.gathered = false;
        let shards = group.trained_shards();
        if shards == 0 || std::mem::replace(&mut group.reduced, true) {
            return;
        }
        let trained = group.shards.iter().filter(|(_, trained)| *trained);
        let pieces: Vec<u64> = trained.map(|(n, _)| n * self.own.width()).collect();
        player.host("fsdp unit backward", 1);
        player.host("fsdp parameter backward", pieces.len() as u64);
        player.join(self.reduced);
        let whole = shards * self.parallel.world;
        let bytes = [whole * self.computed.width(), whole * self.summed.width()];
        let ready = player.computed() + player.copy_beside("gradients into a buffer", self.summed, bytes);
        let bytes = (whole * self.summed.width()) as f64;
        self.reduced = player.collective(Collective::ReduceScatter, bytes, ready);
        player.host("reduce_scatter call", 1);
        if self.parallel.offload {
            self.offloaded = player.transfer(Way::ToHost, pieces.into_iter(), self.reduced);
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
