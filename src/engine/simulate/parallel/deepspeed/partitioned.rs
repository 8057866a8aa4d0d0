//! ZeRO stage 3: parameters, gradients and states in parts (`DeepSpeedZeroOptimizer_Stage3`).

use std::cell::Cell;
use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::super::super::trl::ReferenceModel;
use super::super::apart::Apart;
use super::compared::Compared;
use super::gradients::Gradients;
use super::group::master;
use super::shards::Shards;
use super::values;
use super::watcher::Watcher;
use crate::Setup;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::setup::{Freeze, Parallel};
use crate::tape::log::StorageId;
use crate::tape::work::Beside;
use crate::tape::{Tape, Tensor};

/// Parameters that are updated together (`sub_group_size`).
struct SubGroup {
    /// The parameters, each with the elements of its part.
    parts: Vec<(usize, u64)>,
    /// The parts in fp32, with the client's optimizer; `None` if the host has them.
    master: Option<(Tensor, Optimizer)>,
}

impl SubGroup {
    fn elements(&self) -> u64 {
        self.parts.iter().map(|(_, elements)| elements).sum()
    }
}

/// The optimizer around the client's.
pub(super) struct Partitioned {
    watcher: Rc<Watcher>,
    /// Parts of all trained parameters; `None` if the host has them.
    flat: Option<Tensor>,
    groups: Vec<SubGroup>,
    gradients: Gradients,
    /// Name of the update in the host's pace.
    update: &'static str,
    /// Norm of the last step's gradients, which the engine keeps.
    norm: Option<Tensor>,
    clips: bool,
    is_boundary: Rc<Cell<bool>>,
    _tracker: Option<Tensor>,
}

impl Partitioned {
    pub fn new(
        t: &Tape,
        (params, client, made): (&[Tensor], &Optimizer, Option<DType>),
        reference: Option<&mut ReferenceModel>,
        (setup, parallel): (&Setup, &Parallel),
        is_boundary: Rc<Cell<bool>>,
    ) -> Self {
        let (zero, offloads) = (parallel.zero, parallel.offload.is_any());
        let ties = t.take_ties();
        // Trainers make the model within `zero.Init`.
        let in_parts = setup.trainer.is_derived();
        let low = setup.precision.weights();
        let made = (low, in_parts.then(|| made.unwrap_or(low)));
        let mut shards = Shards::new(t, params, parallel, made);
        let reference = reference.map(|model| {
            let shards = Shards::new(t, &model.params, parallel, made);
            (model, shards)
        });
        if setup.trainer.is_derived() {
            t.empty_cache();
        }
        let tracker = (!offloads).then(|| t.empty([1], DType::Bool, "is any invalid"));
        let flat = shards.defragment(t);
        let place = |param: &Tensor| shards.list.iter().position(|shard| shard.param.is(param));
        let of_group = |group: &[Tensor]| {
            let parts: Vec<(usize, u64)> = group
                .iter()
                .filter_map(place)
                .map(|at| (at, shards.list[at].part))
                .collect();
            divided(&parts, zero.sub_group_size)
        };
        let parts = client.groups().flat_map(of_group).collect();
        let is_wide = flat.as_ref().is_some_and(|flat| flat.dtype() == DType::F32);
        let groups = groups(t, client, parts, (offloads, is_wide));
        let largest = groups.iter().map(SubGroup::elements).max().unwrap_or_default();
        drop((!offloads).then(|| t.empty([largest], DType::F32, "gradients in fp32")));
        let gradients = Gradients::new(t, &shards, parallel);
        for at in shards.trained() {
            let whole = shards.list[at].part * parallel.world;
            drop((parallel.world > 1).then(|| t.empty([whole], shards.list[at].param.dtype(), "gathered parameter")));
        }
        let watcher = Rc::new(Watcher::new(shards, (zero, true), wrappers(setup)));
        watcher.share_ties(t, params, &ties);
        t.set_linear_of_zero3();
        match reference {
            Some((model, shards)) => {
                let compared = Compared::new(shards, zero);
                compared.watcher.share_ties(t, &model.params, &ties);
                t.watch_modules(Rc::new(Apart {
                    trained: watcher.clone(),
                    compared: compared.watcher.clone(),
                }));
                model.wrapper = Some(Rc::new(compared));
            }
            None => t.watch_modules(watcher.clone()),
        }
        Self {
            watcher,
            flat,
            groups,
            gradients,
            update: client.on_host(DType::F32),
            norm: None,
            clips: setup.clip,
            is_boundary,
            _tracker: tracker,
        }
    }

    /// Returns true if the host has states and weights in fp32.
    fn offloads(&self) -> bool {
        self.groups.iter().any(|group| group.master.is_none())
    }

    /// Updates the groups, one after the other; returns what lives until the step is over.
    fn update(&mut self, t: &Tape) -> Vec<Tensor> {
        let of_group = |group: &SubGroup| {
            let parts = group
                .parts
                .iter()
                .map(|&(_, elements)| self.gradients.part(t, elements));
            values::norm_of_parts(t, &parts.collect::<Vec<Tensor>>())
        };
        let mut held: Vec<Tensor> = self.groups.iter().map(of_group).collect();
        held.push(values::combined_doubles(t, held.len() as u64));
        drop(values::is_invalid_double(t));
        held.extend(self.norm.replace(values::double(t, "norm / scale")));
        let dtype = self.watcher.coordinator.borrow().shards.low;
        for group in &mut self.groups {
            let (elements, count) = (group.elements(), group.parts.len());
            let Some((master, optimizer)) = &mut group.master else {
                continue;
            };
            let together = (count > 1).then(|| t.empty([elements], dtype, "this GPU's gradients"));
            match dtype {
                DType::F32 => {
                    let alone = self.gradients.part(t, elements);
                    values::hold(t, master, (together.as_ref(), &[alone]));
                }
                _ => master.hold_gradient(t),
            }
            drop(together);
            if self.clips {
                values::clip_double(t);
            }
            values::scale_in_place(t, elements);
            optimizer.step(t);
            values::narrow(t, elements, dtype);
            master.clear_grad();
        }
        held
    }

    /// Notes what the host does of an update: it scales gradients, updates, and narrows parameters, which go to the GPU unless
    /// they stay.
    fn update_on_host(&self, t: &Tape) {
        // It reads norms first.
        t.wait();
        let shards = &self.watcher.coordinator.borrow().shards;
        for group in &self.groups {
            t.on_host("pass host element", 2 * group.elements());
            t.on_host(self.update, group.elements());
            if self.flat.is_some() {
                let bytes = group.elements() * shards.of_trained().width();
                let number = t.beside((Beside::ToDevice, bytes), true, 0);
                t.await_on_host(number);
            }
        }
    }

    /// What tells the parameters of modules.
    pub fn watcher(&self) -> Rc<Watcher> {
        self.watcher.clone()
    }
}

/// `_create_fp16_sub_groups`: parameters with the sizes of their parts, in groups of at least so many elements.
fn divided(parts: &[(usize, u64)], least: u64) -> Vec<Vec<(usize, u64)>> {
    if least >= parts.iter().map(|(_, size)| size).sum() {
        return vec![parts.to_vec()];
    }
    let (mut groups, mut open, mut elements) = (Vec::new(), Vec::new(), 0);
    for &(at, size) in parts {
        open.push((at, size));
        elements += size;
        if elements >= least {
            groups.push(std::mem::take(&mut open));
            elements = 0;
        }
    }
    groups.extend((!open.is_empty()).then_some(open));
    groups
}

/// Modules that run around the model's own: `PeftModel` calls the model with the head; told of a task, as TRL and ms-swift tell
/// it, it calls `LoraModel`, which does.
fn wrappers(setup: &Setup) -> usize {
    let is_of_a_task = setup.trainer.is_trl() || setup.trainer.is_swift();
    match setup.freeze {
        Freeze::Lora | Freeze::Qlora if is_of_a_task => 2,
        Freeze::Lora | Freeze::Qlora => 1,
        _ => 0,
    }
}

/// `_create_fp32_partitions`: a converted copy, which lives until the next, is cloned. Parts that are in fp32 already are cloned
/// without one: DeepSpeed would update them themselves, but compares their device with its name, which never is the same.
fn groups(
    t: &Tape,
    client: &Optimizer,
    divided: Vec<Vec<(usize, u64)>>,
    (offloads, is_wide): (bool, bool),
) -> Vec<SubGroup> {
    let mut converted = None;
    let mut groups = Vec::new();
    for parts in divided {
        let elements = parts.iter().map(|(_, elements)| elements).sum();
        let master = (!offloads).then(|| {
            if !is_wide {
                converted.replace(t.empty([elements], DType::F32, "parts in fp32"));
            }
            let master = t.require_grad(&master(t, elements));
            let optimizer = client.over([vec![master.clone()], Vec::new()]);
            (master, optimizer)
        });
        groups.push(SubGroup { parts, master });
    }
    groups
}

impl EngineOptimizer for Partitioned {
    fn before_forward(&mut self, t: &Tape, is_traced: bool) {
        if is_traced {
            self.gradients.begin_pass();
        }
        self.watcher.begin(t, is_traced);
    }

    fn after_forward(&mut self, t: &Tape) {
        self.watcher.end(t);
    }

    /// `unwrap_model_for_generation` of TRL: gathers all parameters, and takes the hooks away until the model has generated. The
    /// order of modules is not known afterwards.
    fn generates(&mut self, t: &Tape, begins: bool) {
        t.tell_of_modules(!begins);
        let coordinator = &mut self.watcher.coordinator.borrow_mut();
        match begins {
            true => coordinator.shards.gather_all(t),
            false => {
                coordinator.shards.release_all(t);
                coordinator.invalidate(t);
            }
        }
    }

    fn gradient(&mut self, t: &Tape, param: &Tensor) {
        let coordinator = self.watcher.coordinator.borrow();
        let shards = &coordinator.shards;
        self.gradients.is_boundary = self.is_boundary.get();
        if let Some(at) = shards.list.iter().position(|shard| shard.param.is(param)) {
            let gradients = &mut self.gradients;
            t.in_hook(|| gradients.put(t, shards, at));
        }
    }

    fn after_backward(&mut self, t: &Tape) {
        let mut coordinator = self.watcher.coordinator.borrow_mut();
        self.gradients.is_boundary = self.is_boundary.get();
        let gradients = &mut self.gradients;
        t.hook("deepspeed3 backward", 1);
        t.in_hook(|| gradients.reduce(t, &coordinator.shards));
        gradients.settle(t);
        t.in_hook(|| coordinator.release_leftovers(t));
        self.watcher.forget();
    }

    fn step(&mut self, t: &Tape) {
        {
            let shards = &self.watcher.coordinator.borrow().shards;
            values::begin_step(t, "deepspeed3", shards.trained().map(|at| &shards.list[at].param));
        }
        t.in_hook(|| self.watcher.coordinator.borrow_mut().shards.release_all(t));
        if self.watcher.coordinator.borrow().shards.of_trained() == DType::F16 {
            self.gradients.check_overflow(t);
        }
        let held = match self.offloads() {
            true => {
                let params = |group: &SubGroup| group.parts.iter().map(|(at, _)| *at).collect();
                let groups: Vec<Vec<usize>> = self.groups.iter().map(params).collect();
                self.gradients.sum_norms(t, &groups);
                self.gradients.forget_norms();
                self.update_on_host(t);
                Vec::new()
            }
            false => self.update(t),
        };
        t.in_hook(|| self.watcher.coordinator.borrow_mut().shards.gather_persistent(t));
        drop(held);
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        let mut streams = self.watcher.coordinator.borrow().shards.streams.clone();
        streams.extend(&self.gradients.streams);
        streams
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        self.watcher.coordinator.borrow().shards.memory(self.flat.as_ref())
    }
}
