//! ZeRO stage 3: parameters, gradients and states in parts (`DeepSpeedZeroOptimizer_Stage3`).

use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::gradients::Gradients;
use super::group::master;
use super::shards::Shards;
use super::values;
use super::watcher::Watcher;
use crate::Setup;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::setup::Parallel;
use crate::tape::log::StorageId;
use crate::tape::{Tape, Tensor};

/// Parameters that are updated together (`sub_group_size`).
struct SubGroup {
    /// Elements of each parameter's part.
    parts: Vec<u64>,
    /// The parts in fp32.
    master: Tensor,
    optimizer: Optimizer,
}

/// The optimizer around the client's.
pub(super) struct Partitioned {
    watcher: Rc<Watcher>,
    /// Parts of all trained parameters.
    flat: Tensor,
    groups: Vec<SubGroup>,
    gradients: Gradients,
    /// Norm of the last step's gradients, which the engine keeps.
    norm: Option<Tensor>,
    clips: bool,
    steps: u64,
    _tracker: Tensor,
}

impl Partitioned {
    pub fn new(t: &Tape, params: &[Tensor], (setup, parallel): (&Setup, &Parallel)) -> Self {
        let zero = parallel.zero;
        let form = (zero.stage3_param_persistence_threshold, parallel.overlaps());
        let ties = t.take_ties();
        let mut shards = Shards::new(t, params, parallel.world, form);
        let tracker = t.empty([1], DType::Bool, "is any invalid");
        let flat = shards.defragment(t);
        let sizes: Vec<u64> = shards.trained().map(|at| shards.list[at].part).collect();
        let groups = groups(t, setup, divided(&sizes, zero.sub_group_size));
        let largest = groups.iter().map(|group| group.master.numel()).max().unwrap_or_default();
        drop(t.empty([largest], DType::F32, "gradients in fp32"));
        let gradients = Gradients::new(t, &shards, parallel);
        for at in shards.trained() {
            let whole = shards.list[at].part * parallel.world;
            drop((parallel.world > 1).then(|| t.empty([whole], DType::Bf16, "gathered parameter")));
        }
        let watcher = Rc::new(Watcher::new(t, shards, zero));
        for (scope, weight) in ties {
            let at = params.iter().position(|param| param.is(&weight));
            at.iter().for_each(|&at| watcher.share(&t.path_of_scope(scope), at));
        }
        t.set_linear_of_zero3();
        t.watch_modules(Some(watcher.clone()));
        Self {
            watcher,
            flat,
            groups,
            gradients,
            norm: None,
            clips: setup.clip,
            steps: 0,
            _tracker: tracker,
        }
    }

    /// What tells the parameters of modules.
    pub fn watcher(&self) -> Rc<Watcher> {
        self.watcher.clone()
    }
}

/// `_create_fp16_sub_groups`: sizes of parts, in groups of at least so many elements.
fn divided(sizes: &[u64], least: u64) -> Vec<Vec<u64>> {
    if least >= sizes.iter().sum() {
        return vec![sizes.to_vec()];
    }
    let (mut groups, mut open) = (Vec::new(), Vec::new());
    for &size in sizes {
        open.push(size);
        if open.iter().sum::<u64>() >= least {
            groups.push(std::mem::take(&mut open));
        }
    }
    groups.extend((!open.is_empty()).then_some(open));
    groups
}

/// `_create_fp32_partitions`: a converted copy, which lives until the next, is cloned.
fn groups(t: &Tape, setup: &Setup, divided: Vec<Vec<u64>>) -> Vec<SubGroup> {
    let mut converted = None;
    let mut groups = Vec::new();
    for parts in divided {
        let elements = parts.iter().sum();
        converted.replace(t.empty([elements], DType::F32, "parts in fp32"));
        let master = t.require_grad(&master(t, elements));
        groups.push(SubGroup {
            parts,
            optimizer: Optimizer::new(setup.optim, std::slice::from_ref(&master)),
            master,
        });
    }
    groups
}

impl EngineOptimizer for Partitioned {
    fn before_forward(&mut self, t: &Tape) {
        self.watcher.begin(t, self.steps == 0);
    }

    fn after_forward(&mut self, t: &Tape) {
        self.watcher.end(t);
    }

    fn gradient(&mut self, t: &Tape, param: &Tensor) {
        let coordinator = self.watcher.coordinator.borrow();
        let shards = &coordinator.shards;
        if let Some(at) = shards.list.iter().position(|shard| shard.param.is(param)) {
            self.gradients.put(t, shards, at);
        }
    }

    fn after_backward(&mut self, t: &Tape) {
        let mut coordinator = self.watcher.coordinator.borrow_mut();
        self.gradients.reduce(t, &coordinator.shards);
        coordinator.release_leftovers(t);
    }

    fn step(&mut self, t: &Tape) {
        self.steps += 1;
        self.watcher.coordinator.borrow_mut().shards.release_all(t);
        let norms: Vec<Tensor> = self
            .groups
            .iter()
            .map(|group| {
                let parts = group.parts.iter().map(|&elements| self.gradients.part(t, elements));
                values::norm_of_parts(t, &parts.collect::<Vec<Tensor>>())
            })
            .collect();
        let total = values::combined_doubles(t, norms.len() as u64);
        drop(values::is_invalid_double(t));
        let last = self.norm.replace(t.empty([], DType::F64, "norm / scale"));
        for group in &mut self.groups {
            let together = (group.parts.len() > 1)
                .then(|| t.empty([group.master.numel()], DType::Bf16, "this GPU's gradients"));
            group.master.hold_gradient(t);
            drop(together);
            if self.clips {
                values::clip_double(t);
            }
            group.optimizer.step(t);
            group.master.clear_grad();
        }
        self.watcher.coordinator.borrow_mut().shards.gather_persistent(t);
        drop((total, last, norms));
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        let mut streams = self.watcher.coordinator.borrow().shards.streams.clone();
        streams.extend(&self.gradients.streams);
        streams
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        self.watcher.coordinator.borrow().shards.memory(&self.flat)
    }
}
