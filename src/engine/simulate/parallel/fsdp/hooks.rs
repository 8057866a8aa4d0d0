//! FSDP2 by hooks, as accelerate prepares a model (`fsdp2_prepare_model` of 1.15) or a loop of one's own does (`fully_shard` of
//! each block and of the model), and PyTorch runs it (`torch/distributed/fsdp/_fully_shard/`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::super::super::steps::Trainer;
use super::super::super::trl::REFERENCE_SCOPE;
use super::super::super::wrapper::Wrapper;
use super::super::apart::Apart;
use super::super::modules::{Calls, Turn, known_path};
use super::plan::{self, Plan};
use super::shards::{Param, shards, shards_by_group, shards_from_host, weight};
use super::types::{Types, gathered_type, moves};
use super::{COMPARED, GATHER, REDUCE};
use crate::dtype::DType;
use crate::nn::FusedOutput;
use crate::optim::{GradScaler, Norms, Optimizer};
use crate::setup::{Parallel, TrainerKind};
use crate::tape::log::{ScopeId, StorageId};
use crate::tape::work::Beside;
use crate::tape::{Kind, ModuleWatcher, Tape, Tensor, Why};
use crate::{Model, Setup};

/// What a group of parameters does (`TrainingState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Forward,
    PreBackward,
    PostBackward,
}

/// Parameters that are gathered together (`FSDPParamGroup`).
struct Group {
    params: Vec<usize>,
    reshards: bool,
    is_whole: bool,
    state: State,
    /// What was gathered and not copied out.
    gathered: Option<Tensor>,
    /// Number of the work that gathers it.
    gather: u32,
    /// Places in the order of forwards (`_post_forward_indices`).
    uses: Vec<usize>,
}

/// What all groups share (`FSDPCommContext`).
#[derive(Default)]
struct Shared {
    /// What the last forward copied out, kept until the next has (`AllGatherState`).
    copied: Option<Tensor>,
    /// Groups in the order in which their forwards ended.
    order: Vec<usize>,
    /// Input of the last reduce-scatter.
    reducing: Option<Tensor>,
    /// Numbers of the copies out of the last two gather buffers, the older one first: a gather waits for it.
    copies: [u32; 2],
    /// Number of the last reduce-scatter.
    reduction: u32,
    /// Number of the last copy of gradients to the host.
    handed: u32,
    streams: Vec<(StorageId, u32)>,
}

/// A sharded model.
struct Sharded {
    params: Vec<Param>,
    groups: RefCell<Vec<Group>>,
    shared: RefCell<Shared>,
    calls: Calls,
    /// Group of the outermost module that runs (`iter_forward_root`): of a block that runs again, its own.
    forward_root: Cell<Option<usize>>,
    /// False in a forward without a graph, which may come between another and its backward.
    is_traced: Cell<bool>,
    /// Group of each module that is wrapped, by its path.
    wrapped: HashMap<String, usize>,
    /// Modules of each group that have not run in this forward.
    waiting: RefCell<Vec<Vec<String>>>,
    /// Scope that the model has for itself, if it is the one that is compared with.
    within: &'static str,
    plan: Plan,
    world: u64,
    offloads: bool,
    types: Types,
    /// True if gradients stay whole until a step's last micro-batch (`set_requires_gradient_sync(False)`), as accelerate has it.
    sums_once: bool,
    /// False in micro-batches whose gradients stay whole.
    sums: Cell<bool>,
}

/// Shards a model, whose optimizer gets the shards (`fsdp2_switch_optimizer_parameters`).
pub(in super::super) fn wrap(
    t: &Tape,
    (trainer, params): (&mut Trainer, &[Tensor]),
    (model, plan): (&Model, Plan),
    (given, parallel): (&Setup, &Parallel),
) {
    let compared = trainer.reference.as_mut().map(|reference| {
        let plan = match given.trainer {
            TrainerKind::MsSwiftDpo => Plan::within(t, REFERENCE_SCOPE, (model, &reference.params), plan.reshards()),
            _ => plan.of_compared(reference.params.len()),
        };
        let own = Rc::new(Sharded::new(t, (&reference.params, false), plan, (given, parallel)));
        reference.wrapper = Some(own.clone());
        own
    });
    let sharded = Rc::new(Sharded::new(t, (params, true), plan, (given, parallel)));
    let of = |group: &[Tensor]| -> Vec<Tensor> {
        let shards = group
            .iter()
            .filter_map(|x| sharded.params.iter().find(|param| param.whole.is(x)));
        let kept = shards.filter(|_| !sharded.offloads);
        kept.map(|param| param.shard.clone()).collect()
    };
    let mut client: Vec<Vec<Tensor>> = trainer.optimizer.groups().map(of).collect();
    client.resize(2, Vec::new());
    let second = client.pop().unwrap_or_default();
    let first = client.pop().unwrap_or_default();
    trainer.optimizer = trainer.optimizer.over_shards([first, second], parallel.world);
    // Outside what is sharded, the run is that of the precision that was asked for.
    trainer.scaler = GradScaler::new(given.precision.has_scaler());
    t.set_argument_type(sharded.types.arguments);
    match compared {
        Some(compared) => t.watch_modules(Rc::new(Apart {
            trained: sharded.clone(),
            compared,
        })),
        None => t.watch_modules(sharded.clone()),
    }
    trainer.wrap(sharded, true);
}

impl Sharded {
    /// Shards a model's parameters, of one that is trained or of one that it is compared with.
    fn new(
        t: &Tape,
        (params, is_trained): (&[Tensor], bool),
        plan: Plan,
        (given, parallel): (&Setup, &Parallel),
    ) -> Self {
        let is_prepared = given.trainer.is_derived();
        let types = Types::of((given, parallel), params, is_trained);
        let params = match is_prepared {
            true if is_trained && moves(given, parallel) => shards_from_host(t, params, (&plan, types, parallel)),
            true => shards(t, params, (&plan, types, parallel)),
            false => shards_by_group(t, params, (&plan, types, parallel)),
        };
        let groups = plan.groups.iter().map(|group| Group {
            params: group.params.clone(),
            reshards: group.reshards,
            is_whole: false,
            state: State::Idle,
            gathered: None,
            gather: 0,
            uses: Vec::new(),
        });
        let wrapped = plan.groups.iter().enumerate();
        let wrapped = wrapped.flat_map(|(at, group)| group.modules.iter().map(move |module| (module.clone(), at)));
        Self {
            groups: RefCell::new(groups.collect()),
            shared: RefCell::default(),
            calls: Calls::default(),
            forward_root: Cell::new(None),
            is_traced: Cell::new(true),
            wrapped: wrapped.collect(),
            waiting: RefCell::new(vec![Vec::new(); plan.groups.len()]),
            within: if is_trained { "" } else { REFERENCE_SCOPE },
            plan,
            world: parallel.world,
            offloads: parallel.offload.is_any(),
            types,
            sums_once: is_prepared,
            sums: Cell::new(true),
            params,
        }
    }

    fn state(&self, group: usize) -> State {
        self.groups.borrow()[group].state
    }

    fn set(&self, group: usize, state: State) {
        self.groups.borrow_mut()[group].state = state;
    }

    fn note(&self, x: &Tensor, stream: u32) {
        let id = x.storage().id();
        // Each root makes its own streams (`FSDPCommContext.lazy_init`).
        let stream = if self.within.is_empty() {
            stream
        } else {
            COMPARED + stream
        };
        self.shared.borrow_mut().streams.extend(id.map(|id| (id, stream)));
    }

    /// `unshard`: gathers a group's parameters into one buffer, into which this GPU's own shards are copied first. Shards
    /// of another type, or in host memory, pass through a copy.
    fn unshard(&self, t: &Tape, at: usize) {
        let params: Vec<usize> = {
            let group = &self.groups.borrow()[at];
            if group.gathered.is_some() || group.is_whole || group.params.is_empty() {
                return;
            }
            group.params.clone()
        };
        let gathered = |p: usize| gathered_type(&self.params[p].whole);
        let temporary = |elements: u64, dtype: DType, name| {
            let x = t.in_scope(0, || t.empty([elements], dtype, name));
            self.note(&x, GATHER);
            x
        };
        let copies: Vec<Tensor> = if self.offloads {
            // `all_gather_inputs`: each comes to the GPU in its own type, and is cast there.
            let copy = |&p: &usize| {
                let Param { elements, shard, .. } = &self.params[p];
                let own = temporary(*elements, shard.dtype(), "copy of a shard");
                match shard.dtype() == gathered(p) {
                    true => own,
                    false => temporary(*elements, gathered(p), "copy of a shard"),
                }
            };
            params.iter().map(copy).collect()
        } else {
            let is_cast = |p: &&usize| self.params[**p].shard.dtype() != gathered(**p);
            let cast: Vec<usize> = params.iter().filter(is_cast).copied().collect();
            let elements: u64 = cast.iter().map(|&p| self.params[p].elements).sum();
            let copy = cast
                .first()
                .map(|&p| temporary(elements, gathered(p), "copy of shards"));
            copy.into_iter().collect()
        };
        let bytes = params.iter().map(|&p| self.params[p].elements * gathered(p).width());
        // Parameters of several types are gathered as bytes.
        let dtype = match params.iter().all(|&p| gathered(p) == gathered(params[0])) {
            true => gathered(params[0]),
            false => DType::U8,
        };
        let bytes = bytes.sum::<u64>();
        let elements = bytes / dtype.width();
        let buffer = temporary(elements * self.world, dtype, "all-gather buffer");
        drop(copies);
        if t.is_in_backward() {
            t.hook("fsdp unit gathered again", 1);
            t.hook("fsdp parameter gathered again", params.len());
        }
        let own = params
            .iter()
            .map(|&p| self.params[p].elements * self.params[p].shard.dtype().width());
        let own = own.sum::<u64>();
        let mut ready = self.shared.borrow().copies[0];
        if self.offloads {
            ready = t.beside((Beside::ToDevice, own), false, ready);
        }
        ready = t.beside((Beside::Copy, own + bytes), false, ready);
        let gather = t.beside((Beside::AllGather, bytes * self.world), false, ready);
        t.hook("all_gather call", 1);
        let group = &mut self.groups.borrow_mut()[at];
        (group.gathered, group.gather) = (Some(buffer), gather);
    }

    /// `wait_for_unshard`: copies what was gathered into the parameters. In forward it is kept until the next group's has been
    /// copied.
    fn wait(&self, t: &Tape, at: usize) {
        let Some(buffer) = self.groups.borrow_mut()[at].gathered.take() else {
            return;
        };
        let is_forward = self.state(at) == State::Forward;
        // In forward the next all-gather, on a stream of its own, overlaps this copy. `AllGatherState` holds the buffer
        // until the next one has been copied too, so that two are alive at once; a variable of the function has the
        // older one until then.
        let before = is_forward.then(|| self.shared.borrow_mut().copied.take());
        for p in self.groups.borrow()[at].params.iter().map(|&p| &self.params[p]) {
            let whole = weight(
                t,
                p.scope,
                p.elements * self.world,
                gathered_type(&p.whole),
                "gathered parameter",
            );
            t.lend(&p.whole, &whole);
        }
        self.groups.borrow_mut()[at].is_whole = true;
        t.join(self.groups.borrow()[at].gather);
        let bytes = buffer.numel() * buffer.dtype().width();
        t.copied(buffer.dtype(), [bytes, bytes]);
        let [_, last] = self.shared.borrow().copies;
        self.shared.borrow_mut().copies = [last, t.event()];
        drop(before);
        if is_forward {
            self.shared.borrow_mut().copied = Some(buffer);
        }
    }

    /// `reshard`.
    fn reshard(&self, t: &Tape, at: usize) {
        let group = &mut self.groups.borrow_mut()[at];
        if group.state == State::Forward && !group.reshards || !group.is_whole {
            return;
        }
        group.params.iter().for_each(|&p| t.take_back(&self.params[p].whole));
        group.is_whole = false;
    }

    fn before_module(&self, t: &Tape, at: usize) {
        if self.state(at) == State::PreBackward {
            // A recomputation.
            self.unshard(t, at);
            return self.wait(t, at);
        }
        t.hook(
            match self.types.arguments {
                Some(_) => "fsdp mp unit forward",
                None => "fsdp unit forward",
            },
            1,
        );
        t.hook("fsdp parameter forward", self.groups.borrow()[at].params.len());
        self.set(at, State::Forward);
        self.forward_root.set(self.forward_root.get().or(Some(at)));
        self.unshard(t, at);
        self.wait(t, at);
        if self.is_traced.get() && t.makes_graph() {
            self.calls.enter(t, at, true);
        }
    }

    fn after_module(&self, t: &Tape, at: usize) {
        if self.state(at) == State::PreBackward {
            return;
        }
        // `post_forward` within backward leaves what was gathered for a recomputation to the backward that follows.
        if !t.is_in_backward() {
            self.reshard(t, at);
            let group = &mut self.groups.borrow_mut()[at];
            let order = &mut self.shared.borrow_mut().order;
            if !group.params.is_empty() {
                group.uses.push(order.len());
                order.push(at);
            }
        }
        self.set(at, State::Idle);
        if self.forward_root.get() == Some(at) {
            self.forward_root.set(None);
            // A variable of the whole model's `_post_forward` has it until the outputs are cast.
            if at != plan::ROOT {
                self.shared.borrow_mut().copied = None;
            }
        }
        if self.is_traced.get() && t.makes_graph() {
            self.calls.leave_module(t, at);
        }
    }

    /// `pre_backward`: gathers a group, and the one whose forward ended before it.
    fn before_backward(&self, t: &Tape, at: usize) {
        if self.state(at) == State::PreBackward {
            return;
        }
        self.set(at, State::PreBackward);
        self.unshard(t, at);
        self.wait(t, at);
        // Backward prefetch goes by the order in which forwards ended, not by that of the modules: a group that ran
        // twice is in it twice, and its last use comes first.
        let index = self.groups.borrow_mut()[at].uses.pop();
        let before = index.and_then(|index| index.checked_sub(1));
        if let Some(target) = before.map(|index| self.shared.borrow().order[index]) {
            self.unshard(t, target);
        }
    }

    /// `post_backward`: frees a group's parameters, and reduces their gradients.
    fn after_backward_of(&self, t: &Tape, at: usize) {
        self.set(at, State::PostBackward);
        let params = self.groups.borrow()[at].params.clone();
        if !self.sums.get() {
            return self.reshard(t, at);
        }
        let with_gradient: Vec<&Param> = params
            .iter()
            .map(|&p| &self.params[p])
            .filter(|p| p.whole.grad().is_some())
            .collect();
        let mut gradients: Vec<Tensor> = with_gradient.iter().filter_map(|p| p.whole.grad()).collect();
        with_gradient.iter().for_each(|p| p.whole.clear_grad());
        self.reshard(t, at);
        let Some(dtype) = gradients.first().map(Tensor::dtype) else {
            return;
        };
        let made = dtype;
        let dtype = self.types.sums.unwrap_or(dtype);
        let own: u64 = with_gradient.iter().map(|p| p.elements).sum();
        // The input of the reduce-scatter before lives until this one is about to begin, so that two are never alive at
        // once.
        drop(self.shared.borrow_mut().reducing.take());
        let input = t.in_scope(0, || t.empty([own * self.world], dtype, "reduce-scatter input"));
        // `foreach_reduce` looks at each gradient's size, and its variable has the last until it returns.
        let last = gradients.pop();
        drop(gradients);
        self.shared.borrow_mut().reducing = Some(input);
        let shards = |dtype| {
            let x = t.in_scope(with_gradient[0].scope, || {
                t.as_kind(Kind::Gradient, || t.empty([own], dtype, "shards of gradients"))
            });
            x.storage().classify(Kind::Gradient, Why::Gradient);
            self.note(&x, REDUCE);
            x
        };
        let reduced = shards(dtype);
        let own = with_gradient[0].shard.dtype();
        let output = match dtype == own {
            true => reduced.clone(),
            false => shards(own),
        };
        drop(last);
        drop(reduced);
        t.hook("fsdp unit backward", 1);
        t.hook("fsdp parameter backward", with_gradient.len());
        // The input of the last reduce-scatter is freed once that is done.
        t.join(self.shared.borrow().reduction);
        let whole = with_gradient.iter().map(|p| p.elements).sum::<u64>() * self.world;
        let shard = with_gradient[0].shard.dtype().width() * whole / self.world;
        let copied = t.beside((Beside::Copy, whole * (made.width() + dtype.width())), true, 0);
        let reduction = t.beside((Beside::ReduceScatter, whole * dtype.width()), false, copied);
        t.hook("reduce_scatter call", 1);
        self.shared.borrow_mut().reduction = reduction;
        if self.offloads {
            self.shared.borrow_mut().handed = t.beside((Beside::ToHost, shard), false, reduction);
        }
        if !self.offloads {
            // The sums of a micro-batch before are added to where they are.
            let first = with_gradient.iter().filter(|p| p.shard.grad().is_none());
            first.for_each(|p| t.give_gradient(&p.shard, &output));
        }
    }
}

impl Wrapper for Sharded {
    fn begin(&self, is_last: bool) {
        self.sums.set(is_last || !self.sums_once);
    }

    fn before_forward(&self, t: &Tape) {
        self.is_traced.set(t.is_grad_enabled());
        if self.is_traced.get() {
            self.calls.clear();
        }
        self.waiting.borrow_mut().iter_mut().for_each(Vec::clear);
        self.forward_root.set(None);
        t.in_hook(|| t.no_grad(|| self.before_module(t, plan::ROOT)));
    }

    fn after_forward(&self, t: &Tape) {
        t.in_hook(|| t.no_grad(|| self.after_module(t, plan::ROOT)));
        // A variable of `_post_forward` has what the last forward copied out until the outputs are cast.
        if self.types.outputs.is_none() {
            self.shared.borrow_mut().copied = None;
        }
    }

    fn wrapped_outputs(&self, t: &Tape, _: Option<&Tensor>, held: Vec<Tensor>) -> Vec<Tensor> {
        let cast = held.iter().map(|x| t.no_grad(|| self.cast(t, x))).collect();
        self.shared.borrow_mut().copied = None;
        cast
    }

    fn wrapped_figures(&self, t: &Tape, figures: FusedOutput) -> FusedOutput {
        let cast = figures.map(|x| self.cast(t, x));
        self.shared.borrow_mut().copied = None;
        cast
    }

    /// `_root_post_backward_final_callback`.
    fn after_backward(&self, t: &Tape) {
        for at in 0..self.plan.groups.len() {
            if self.state(at) != State::PostBackward {
                t.in_hook(|| t.no_grad(|| self.after_backward_of(t, at)));
            }
            let group = &mut self.groups.borrow_mut()[at];
            group.state = State::Idle;
            group.gathered = None;
            group.uses.clear();
        }
        let mut shared = self.shared.borrow_mut();
        t.join(std::mem::take(&mut shared.reduction));
        // The host waits for the copies before it updates.
        t.await_on_host(std::mem::take(&mut shared.handed));
        shared.order.clear();
        shared.reducing = None;
        self.calls.forget_leaves();
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        let params = self.params.iter();
        params
            .map(|param| (param.shard.clone(), param.shard.requires_grad()))
            .collect()
    }

    fn norms(&self) -> Norms {
        Norms::ForeachOfShards
    }

    fn update_on_host(&self, t: &Tape, optimizer: &Optimizer) {
        if self.offloads {
            for param in self.params.iter().filter(|param| param.shard.requires_grad()) {
                t.on_host(optimizer.on_host(param.shard.dtype()), param.elements);
            }
        }
    }

    fn shards_states(&self) -> bool {
        true
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        self.shared.borrow().streams.clone()
    }
}

impl Sharded {
    /// What the model returns, in the type of the policy.
    fn cast(&self, t: &Tape, x: &Tensor) -> Tensor {
        match self.types.outputs.filter(|_| x.dtype() == DType::F32) {
            Some(dtype) => t.to_dtype(x, dtype),
            None => x.clone(),
        }
    }

    /// Path and group of a module that is wrapped.
    fn group_of(&self, t: &Tape, scope: ScopeId) -> Option<(String, usize)> {
        let path = t.path_of_scope(scope);
        let path = known_path(plan::own_path(&path, self.within), |path| {
            self.wrapped.contains_key(path)
        });
        let group = self.wrapped.get(&path).copied()?;
        Some((path, group))
    }
}

impl ModuleWatcher for Sharded {
    /// The first module of a group gathers it (`_register_group_forward_hooks`).
    fn enters(&self, t: &Tape, scope: ScopeId) {
        let Some((_, group)) = self.group_of(t, scope) else {
            return;
        };
        let is_first = self.waiting.borrow()[group].is_empty();
        if is_first {
            self.waiting.borrow_mut()[group].clone_from(&self.plan.groups[group].modules);
            t.in_hook(|| t.in_scope(0, || self.before_module(t, group)));
        }
    }

    /// The last module of a group releases it.
    fn leaves(&self, t: &Tape, scope: ScopeId) {
        let Some((path, group)) = self.group_of(t, scope) else {
            return;
        };
        let is_last = {
            let waiting = &mut self.waiting.borrow_mut()[group];
            waiting.retain(|module| *module != path);
            waiting.is_empty()
        };
        if is_last {
            t.in_hook(|| t.in_scope(0, || self.after_module(t, group)));
        }
    }

    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize> {
        // A recomputation that has stopped leaves no modules.
        self.waiting.borrow_mut().iter_mut().for_each(Vec::clear);
        let (passed, turn) = self.calls.come_to(node)?;
        let act = || match turn {
            Turn::Into(group) => self.before_backward(t, group),
            Turn::OutOf(group) => self.after_backward_of(t, group),
            Turn::Past(_) | Turn::None => {}
        };
        t.in_hook(|| t.in_scope(0, act));
        Some(passed)
    }

    fn leaves_by(&self, node: u64) -> Option<usize> {
        self.calls.leaves_by(node)
    }

    fn nests(&self, t: &Tape, inputs: &[Tensor]) {
        self.calls.nest(t, inputs);
    }

    fn unnests(&self, _: &Tape) {
        self.calls.unnest();
    }

    fn begins(&self, _: &Tape) {}

    fn uses(&self, _: &Tape, _: &Tensor) {}

    fn asks(&self, _: &Tape, _: &Tensor) {}

    /// `full_tensor`, which TRL calls where a head's own module never ran.
    fn takes(&self, t: &Tape, x: &Tensor) -> Option<Tensor> {
        let at = self.params.iter().position(|param| param.whole.is(x))?;
        let is_whole = |group: &&Group| group.params.contains(&at) && group.is_whole;
        if self.groups.borrow().iter().any(|group| is_whole(&group)) {
            return None;
        }
        let dtype = self.params[at].shard.dtype();
        Some(t.no_grad(|| t.empty_like(x, dtype, "whole parameter")))
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.calls.make_leaf(t, leaf);
    }

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        self.calls.place_of_leaf(x)
    }
}
