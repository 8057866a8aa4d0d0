//! FSDP1 by hooks (`FullyShardedDataParallel` of PyTorch 2.11: `torch/distributed/fsdp/_runtime_utils.py` and
//! `_flat_param.py`), as accelerate wraps a model (`prepare_model` of 1.15), with `use_orig_params=False` and
//! `BackwardPrefetch.BACKWARD_PRE`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::super::super::steps::Trainer;
use super::super::super::wrapper::Wrapper;
use super::super::ddp::{Size, send_states};
use super::super::modules::{Calls, Turn, known_path};
use super::plan::{Plan, ROOT, Wrapped};
use super::shards::weight;
use super::types::{gathered_type, is_mixed, moves};
use super::{GATHER, REDUCE};
use crate::Setup;
use crate::dtype::DType;
use crate::optim::{Norms, Optimizer};
use crate::setup::{Parallel, Strategy};
use crate::tape::log::{ScopeId, StorageId};
use crate::tape::work::Beside;
use crate::tape::{Failure, Kind, ModuleWatcher, Tape, Tensor, Why};

/// Stream of what is copied before a gather (`_pre_unshard_stream`).
const BEFORE_GATHER: u32 = 3;

/// What a unit does (`HandleTrainingState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Forward,
    PreBackward,
    PostBackward,
}

/// A module with one flat parameter (`FlatParamHandle`).
struct Unit {
    params: Vec<Tensor>,
    scope: ScopeId,
    /// Elements of this GPU's shard of the flat parameter, with padding.
    elements: u64,
    /// This GPU's shard; without memory if the host has it.
    shard: Tensor,
    /// Type of the gathered flat parameter.
    dtype: DType,
    trains: bool,
    /// True if the gathered parameter is freed after forward.
    reshards: bool,
    state: State,
    /// The flat parameter of all GPUs, which the module's parameters lie in.
    whole: Option<Tensor>,
    /// Whole gradient of micro-batches that are not summed (`no_sync`).
    gradient: Option<Tensor>,
    /// This GPU's shard of the summed gradient (`_saved_grad_shard`).
    saved: Option<Tensor>,
    /// True if backward gathers it (`_needs_pre_backward_unshard`).
    is_needed: bool,
    /// True if backward has come to it (`_ran_pre_backward_hook`).
    is_reached: bool,
    is_prefetched: bool,
    /// Place in the order in which forwards ended (`_post_forward_index`).
    place: Option<usize>,
    /// First node of the graph that its forward made.
    start: u64,
    /// Number of the work that gathers it.
    gather: u32,
}

/// A parameter as it is before it is wrapped.
struct Made {
    param: Tensor,
    scope: ScopeId,
    /// Type in which it was made.
    dtype: DType,
}

/// A wrapped model.
struct Flat {
    units: RefCell<Vec<Unit>>,
    /// Units in the order in which their forwards ended.
    order: RefCell<Vec<usize>>,
    calls: Calls,
    /// Unit of each module that is wrapped, by its path.
    wrapped: HashMap<String, usize>,
    streams: RefCell<Vec<(StorageId, u32)>>,
    /// Frozen units that backward has left. They are freed by a hook on their input, which runs after that of the module
    /// whose output it is.
    left: RefCell<Vec<usize>>,
    world: u64,
    offloads: bool,
    /// False in micro-batches whose gradients stay whole (`no_sync`).
    sums: Cell<bool>,
    /// False before the first forward.
    has_run: Cell<bool>,
    /// Number of the work that hands over or sums the last gradients.
    reduction: Cell<u32>,
}

/// Wraps a model; the optimizer that is made then has its flat parameters.
pub(in super::super) fn wrap(
    t: &Tape,
    (trainer, params): (&mut Trainer, &[Tensor]),
    plan: Plan,
    (given, parallel): (&Setup, &Parallel),
) {
    let reshards = parallel.strategy == Strategy::Fsdp1;
    let offloads = parallel.offload.is_any();
    let mut wrapped = HashMap::new();
    for (at, group) in plan.groups.iter().enumerate() {
        wrapped.extend(group.modules.iter().map(|module| (module.clone(), at)));
    }
    let scopes: Vec<ScopeId> = params.iter().map(|param| t.scope_of(param)).collect();
    let is_mixed = |group: &&Wrapped| {
        let mut trained = group.params.iter().map(|&at| params[at].requires_grad());
        let first = trained.next();
        trained.any(|is| Some(is) != first)
    };
    if let Some(group) = plan.groups.iter().find(is_mixed) {
        t.fail(|| Failure::TrainedInPart {
            module: group.modules.first().cloned().unwrap_or_default(),
        });
    }
    let moves = moves(given, parallel);
    let types: Vec<DType> = params.iter().map(|param| own_type(t, param)).collect();
    if moves {
        params.iter().for_each(|param| t.leave_host(param));
    }
    // The root comes last.
    let count = plan.groups.len();
    let mut units: Vec<Unit> = (1..count)
        .chain([ROOT])
        .map(|at| {
            let own = &plan.groups[at].params;
            let made = |&at: &usize| Made {
                param: params[at].clone(),
                scope: scopes[at],
                dtype: types[at],
            };
            let own = own.iter().map(made).collect();
            Unit::new(t, own, reshards && at != ROOT, (parallel, moves))
        })
        .collect();
    t.move_buffers();
    units.rotate_right(1);
    units.iter_mut().for_each(|unit| unit.widen(t, given, offloads));
    let is_kept = |unit: &&Unit| unit.trains && !offloads;
    let shards = units.iter().filter(is_kept).map(|unit| unit.shard.clone());
    trainer.optimizer = trainer.optimizer.over([shards.collect(), Vec::new()]);
    let flat = Rc::new(Flat {
        units: RefCell::new(units),
        order: RefCell::default(),
        calls: Calls::default(),
        wrapped,
        streams: RefCell::default(),
        left: RefCell::default(),
        world: parallel.world,
        offloads,
        sums: Cell::new(true),
        has_run: Cell::new(false),
        reduction: Cell::new(0),
    });
    t.watch_modules(flat.clone());
    trainer.wrap(flat, true);
}

impl Unit {
    /// Sends a module's parameters to the other GPUs (`_sync_module_params_and_buffers`), flattens them, and cuts the flat
    /// parameter. If the host has the model, they are moved before (`_move_module_to_device`).
    fn new(t: &Tape, params: Vec<Made>, reshards: bool, (parallel, moves): (&Parallel, bool)) -> Self {
        let (scope, own) = params.first().map_or((0, DType::F32), |made| (made.scope, made.dtype));
        let trains = params.iter().any(|made| made.param.requires_grad());
        let dtype = params.first().map_or(DType::F32, |made| gathered_type(&made.param));
        let sizes: Vec<Size> = params
            .iter()
            .map(|made| (made.dtype, elements(&made.param, dtype)))
            .collect();
        let moved = params.iter().zip(&sizes).filter(|_| moves);
        let moved: Vec<Tensor> = moved
            .map(|(made, &(dtype, elements))| weight(t, made.scope, elements, dtype, "parameter from the host"))
            .collect();
        send_states(t, &sizes);
        let all: u64 = sizes.iter().map(|(_, elements)| elements).sum();
        let elements = all.div_ceil(parallel.world);
        let flat = (!params.is_empty()).then(|| weight(t, scope, all, own, "flat parameter"));
        let shard = weight(t, scope, elements, own, "shard of a flat parameter");
        drop(flat);
        drop(moved);
        if !moves {
            params.iter().for_each(|made| t.give_up(&made.param));
        }
        Self {
            params: params.into_iter().map(|made| made.param).collect(),
            scope,
            elements,
            shard,
            dtype,
            trains,
            reshards,
            state: State::Idle,
            whole: None,
            gradient: None,
            saved: None,
            is_needed: false,
            is_reached: false,
            is_prefetched: false,
            place: None,
            start: 0,
            gather: 0,
        }
    }

    /// Widens this GPU's shard if it is trained in mixed precision, once all modules are wrapped.
    fn widen(&mut self, t: &Tape, given: &Setup, offloads: bool) {
        if self.trains && is_mixed(given) && self.shard.dtype() != DType::F32 {
            self.shard = weight(t, self.scope, self.elements, DType::F32, "shard of a flat parameter");
        }
        if offloads {
            t.give_up(&self.shard);
        }
        if self.trains {
            self.shard = t.require_grad(&self.shard);
        }
    }
}

/// Type of a parameter before it is wrapped.
fn own_type(t: &Tape, param: &Tensor) -> DType {
    match param.dtype() {
        DType::U8 => gathered_type(param),
        _ => t.made_type(param),
    }
}

/// Elements of a parameter in this type.
fn elements(param: &Tensor, dtype: DType) -> u64 {
    match param.dtype() {
        DType::U8 => param.numel() / dtype.width(),
        _ => param.numel(),
    }
}

impl Flat {
    fn note(&self, x: &Tensor, stream: u32) {
        self.streams
            .borrow_mut()
            .extend(x.storage().id().map(|id| (id, stream)));
    }

    fn state(&self, at: usize) -> State {
        self.units.borrow()[at].state
    }

    fn set(&self, at: usize, state: State) {
        self.units.borrow_mut()[at].state = state;
    }

    /// `_unshard`: gathers a flat parameter from the shards, by way of a copy in its type or from the host.
    fn unshard(&self, t: &Tape, at: usize) {
        let (elements, dtype, own) = {
            let unit = &self.units.borrow()[at];
            if unit.params.is_empty() || unit.whole.is_some() && !self.offloads {
                return;
            }
            (unit.elements, unit.dtype, unit.shard.dtype())
        };
        if self.units.borrow()[at].whole.is_some() {
            // `pre_unshard` brings the shard all the same.
            return drop(t.in_scope(0, || t.empty([elements], own, "shard of the host")));
        }
        let temporary = |elements: u64, dtype: DType, name, stream| {
            let x = t.in_scope(0, || t.empty([elements], dtype, name));
            self.note(&x, stream);
            x
        };
        let is_cast = own != dtype;
        let mut copy = (is_cast || self.offloads).then(|| temporary(elements, dtype, "copy of a shard", BEFORE_GATHER));
        if is_cast && self.offloads {
            drop(temporary(elements, own, "shard of the host", BEFORE_GATHER));
        }
        let whole = t.in_scope(self.units.borrow()[at].scope, || {
            t.as_kind(Kind::Weight, || {
                t.empty([elements * self.world], dtype, "gathered flat parameter")
            })
        });
        whole.storage().classify(Kind::Weight, Why::Parameter);
        self.note(&whole, GATHER);
        drop(copy.take());
        let unit = &mut self.units.borrow_mut()[at];
        let mut ready = 0;
        if self.offloads {
            ready = t.beside((Beside::ToDevice, elements * own.width()), false, ready);
        }
        if is_cast {
            ready = t.beside((Beside::Copy, elements * (own.width() + dtype.width())), false, ready);
        }
        unit.gather = t.beside((Beside::AllGather, elements * self.world * dtype.width()), false, ready);
        unit.params.iter().for_each(|param| t.lend(param, &whole));
        unit.whole = Some(whole);
    }

    /// `init_flat_param_attributes`, which the first forward begins with: memory of what will be gathered is made and freed.
    fn begin_to_run(&self, t: &Tape) {
        let made = |elements: u64, dtype: DType, name| drop(t.in_scope(0, || t.empty([elements], dtype, name)));
        let units = self.units.borrow();
        for unit in units.iter().filter(|unit| !unit.params.is_empty()) {
            let (own, all) = (unit.shard.dtype(), unit.elements * self.world);
            if own != unit.dtype {
                made(unit.elements, unit.dtype, "copy of a shard");
            }
            made(all, unit.dtype, "gathered flat parameter");
            if own != unit.dtype {
                made(all, own, "gathered flat parameter in its own type");
            }
        }
    }

    /// `_reshard`.
    fn reshard(&self, t: &Tape, at: usize, frees: bool) {
        let unit = &mut self.units.borrow_mut()[at];
        unit.is_prefetched = false;
        if frees && unit.whole.is_some() {
            unit.params.iter().for_each(|param| t.take_back(param));
            unit.whole = None;
        }
    }

    /// `_should_free_in_backward`.
    fn frees_in_backward(&self, at: usize) -> bool {
        let unit = &self.units.borrow()[at];
        // The root's strategy is that of the others.
        self.sums.get() || unit.reshards || at == ROOT && self.units.borrow().iter().any(|unit| unit.reshards)
    }

    fn before_module(&self, t: &Tape, at: usize) {
        if self.state(at) == State::PreBackward {
            // A recomputation.
            return;
        }
        self.set(at, State::Forward);
        self.unshard(t, at);
        {
            let unit = &self.units.borrow()[at];
            let is_cast = unit.shard.dtype() != unit.dtype;
            t.hook(
                if is_cast {
                    "fsdp1 mp unit forward"
                } else {
                    "fsdp1 unit forward"
                },
                1,
            );
            t.hook("fsdp1 parameter forward", unit.params.len());
            t.join(unit.gather);
        }
        if !t.makes_graph() {
            return;
        }
        self.units.borrow_mut()[at].start = t.next_node();
        self.calls.enter(t, at, true);
    }

    fn after_module(&self, t: &Tape, at: usize) {
        if self.state(at) == State::PreBackward {
            return;
        }
        self.record(at);
        self.set(at, State::Idle);
        if t.makes_graph() {
            // `_register_pre_backward_hooks`: of what makes no graph, nothing is gathered ahead.
            let unit = &mut self.units.borrow_mut()[at];
            (unit.is_needed, unit.is_reached) = (unit.start != t.next_node(), false);
        }
        let reshards = self.units.borrow()[at].reshards;
        self.reshard(t, at, reshards);
        if t.makes_graph() {
            self.calls.leave_module(t, at);
        }
    }

    /// `record_post_forward`: a unit keeps its first place in the order, unless that is 0, which is taken for none.
    fn record(&self, at: usize) {
        let unit = &mut self.units.borrow_mut()[at];
        let order = &mut self.order.borrow_mut();
        if unit.params.is_empty() {
            return;
        }
        if unit.place.is_none_or(|place| place == 0) {
            unit.place = Some(order.len());
        }
        order.push(at);
    }

    /// `_pre_backward_hook`: gathers a unit, and the one whose forward ended before it.
    fn before_backward(&self, t: &Tape, at: usize) {
        if std::mem::replace(&mut self.units.borrow_mut()[at].is_reached, true) {
            return;
        }
        self.set(at, State::PreBackward);
        if std::mem::take(&mut self.units.borrow_mut()[at].is_needed) && !self.units.borrow()[at].is_prefetched {
            self.unshard(t, at);
        }
        t.join(self.units.borrow()[at].gather);
        self.prefetch(t, at);
    }

    /// `_prefetch_handle`.
    fn prefetch(&self, t: &Tape, at: usize) {
        let place = self.units.borrow()[at].place.and_then(|place| place.checked_sub(1));
        let Some(target) = place.map(|place| self.order.borrow()[place]) else {
            return;
        };
        let is_wanted = {
            let unit = &self.units.borrow()[target];
            unit.is_needed && !unit.is_prefetched
        };
        if is_wanted {
            self.unshard(t, target);
            self.units.borrow_mut()[target].is_prefetched = true;
        }
    }

    /// Backward is past a unit: gradients of its parameters become one of the flat parameter (`split_with_sizes_backward`),
    /// whose shards are summed (`_post_backward_hook`).
    fn after_backward_of(&self, t: &Tape, at: usize) {
        let (params, trains, scope) = {
            let unit = &self.units.borrow()[at];
            (unit.params.clone(), unit.trains, unit.scope)
        };
        if !trains {
            return self.left.borrow_mut().push(at);
        }
        let Some(dtype) = params.iter().find_map(|param| param.grad().map(|grad| grad.dtype())) else {
            return;
        };
        let whole: u64 = params.iter().map(Tensor::numel).sum();
        let gradient = |elements: u64, dtype: DType, name| {
            let x = t.in_scope(scope, || t.as_kind(Kind::Gradient, || t.empty([elements], dtype, name)));
            x.storage().classify(Kind::Gradient, Why::Gradient);
            x
        };
        let missing: Vec<Tensor> = params
            .iter()
            .filter(|param| param.grad().is_none())
            .map(|param| gradient(param.numel(), dtype, "zeros for a gradient"))
            .collect();
        let flat = gradient(whole, dtype, "gradient of a flat parameter");
        drop(missing);
        params.iter().for_each(Tensor::clear_grad);
        let bytes = whole * dtype.width();
        self.note_backward(t, at, (dtype, params.len(), bytes));
        // Added to that of earlier micro-batches in place; autograd has the new one until this hook returns.
        let (flat, _new) = match self.units.borrow_mut()[at].gradient.take() {
            Some(sum) => {
                t.copied(dtype, [2 * bytes, bytes]);
                (sum, Some(flat))
            }
            None => (flat, None),
        };
        self.set(at, State::PostBackward);
        let frees = self.frees_in_backward(at);
        self.reshard(t, at, frees);
        if !self.sums.get() {
            self.units.borrow_mut()[at].gradient = Some(flat);
            return;
        }
        let (elements, own) = {
            let unit = &self.units.borrow()[at];
            (unit.elements, unit.shard.dtype())
        };
        let is_padded = elements * self.world != whole;
        let padded = is_padded.then(|| gradient(elements * self.world, dtype, "padded gradient"));
        let mut shard = gradient(elements, dtype, "shard of a gradient");
        self.note(&shard, REDUCE);
        if own != dtype {
            shard = gradient(elements, own, "shard of a gradient");
            self.note(&shard, REDUCE);
        }
        drop((padded, flat));
        self.reduce(t, (elements, is_padded), (dtype, own));
        self.units.borrow_mut()[at].saved = Some(shard);
    }
}

impl Flat {
    /// Notes what the hook behind a unit's backward runs before its gradient is summed: of so many parameters, copied into one.
    fn note_backward(&self, t: &Tape, at: usize, (dtype, params, bytes): (DType, usize, u64)) {
        let unit = match self.units.borrow()[at].shard.dtype() == dtype {
            true => "fsdp1 unit backward",
            false => "fsdp1 mp unit backward",
        };
        t.hook(unit, 1);
        t.hook("fsdp1 parameter backward", params);
        t.copied(dtype, [bytes, bytes]);
    }

    /// Notes that a gradient, whose shards have so many elements, is padded, divided (`_div_if_needed`) and summed, and its shard
    /// cast and handed over.
    fn reduce(&self, t: &Tape, (elements, is_padded): (u64, bool), (dtype, own): (DType, DType)) {
        let whole = elements * self.world * dtype.width();
        let passes = 1 + u64::from(is_padded);
        let divided = t.beside((Beside::Copy, 2 * passes * whole), true, 0);
        let mut last = t.beside((Beside::ReduceScatter, whole), false, divided);
        if own != dtype {
            last = t.beside((Beside::Copy, elements * (dtype.width() + own.width())), false, last);
        }
        if self.offloads {
            last = t.beside((Beside::ToHost, elements * own.width()), false, last);
        }
        self.reduction.set(last);
    }

    /// Frees frozen units that backward has left (`_post_backward_reshard_only_hook`).
    fn free_left(&self, t: &Tape) {
        for at in self.left.take() {
            self.set(at, State::PostBackward);
            let frees = self.frees_in_backward(at);
            self.reshard(t, at, frees);
        }
    }
}

impl Wrapper for Flat {
    fn begin(&self, is_last: bool) {
        self.sums.set(is_last);
    }

    fn before_forward(&self, t: &Tape) {
        if !self.has_run.replace(true) {
            t.in_hook(|| t.no_grad(|| self.begin_to_run(t)));
        }
        self.calls.clear();
        t.in_hook(|| t.no_grad(|| self.before_module(t, ROOT)));
    }

    fn after_forward(&self, t: &Tape) {
        t.in_hook(|| t.no_grad(|| self.after_module(t, ROOT)));
    }

    /// `_post_backward_final_callback`.
    fn after_backward(&self, t: &Tape) {
        let count = self.units.borrow().len();
        let leave_all = || {
            for at in 0..count {
                self.after_backward_of(t, at);
            }
            self.free_left(t);
        };
        t.in_hook(|| t.no_grad(leave_all));
        let last = self.reduction.take();
        t.join(last);
        if self.offloads {
            t.await_on_host(last);
        }
        for at in 0..count {
            let frees = self.frees_in_backward(at);
            self.reshard(t, at, frees);
            let unit = &mut self.units.borrow_mut()[at];
            unit.state = State::Idle;
            (unit.is_needed, unit.is_reached, unit.place) = (false, false, None);
            if let Some(saved) = unit.saved.take().filter(|_| !self.offloads) {
                t.give_gradient(&unit.shard, &saved);
            }
        }
        self.order.borrow_mut().clear();
        self.calls.forget_leaves();
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        let units = self.units.borrow();
        units.iter().map(|unit| (unit.shard.clone(), unit.trains)).collect()
    }

    fn norms(&self) -> Norms {
        Norms::EachAlone
    }

    fn update_on_host(&self, t: &Tape, optimizer: &Optimizer) {
        if self.offloads {
            let units = self.units.borrow();
            for unit in units.iter().filter(|unit| unit.trains) {
                t.on_host(optimizer.on_host(unit.shard.dtype()), unit.elements);
            }
        }
    }

    fn streams(&self) -> Vec<(StorageId, u32)> {
        self.streams.borrow().clone()
    }
}

impl Flat {
    fn unit_of(&self, t: &Tape, scope: ScopeId) -> Option<usize> {
        let path = known_path(&t.path_of_scope(scope), |path| self.wrapped.contains_key(path));
        self.wrapped.get(&path).copied()
    }
}

impl ModuleWatcher for Flat {
    fn enters(&self, t: &Tape, scope: ScopeId) {
        if let Some(unit) = self.unit_of(t, scope) {
            t.in_hook(|| t.in_scope(0, || self.before_module(t, unit)));
        }
    }

    fn leaves(&self, t: &Tape, scope: ScopeId) {
        if let Some(unit) = self.unit_of(t, scope) {
            t.in_hook(|| t.in_scope(0, || self.after_module(t, unit)));
        }
    }

    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize> {
        let Some((passed, turn)) = self.calls.come_to(node) else {
            self.free_left(t);
            return None;
        };
        let act = || match turn {
            Turn::Into(unit) => {
                self.before_backward(t, unit);
                self.free_left(t);
            }
            Turn::OutOf(unit) => self.after_backward_of(t, unit),
            // The function that cut the flat parameter runs once all of the module has; what is frozen waits for its input.
            Turn::Past(unit) => {
                let trains = self.units.borrow()[unit].trains;
                if trains {
                    self.after_backward_of(t, unit);
                }
            }
            Turn::None => {}
        };
        t.in_hook(|| t.in_scope(0, act));
        Some(passed)
    }

    /// Notes that a gradient leaves a module, before which no function waits for it.
    fn leaves_by(&self, node: u64) -> Option<usize> {
        self.calls.leaves_by(node);
        None
    }

    fn nests(&self, t: &Tape, inputs: &[Tensor]) {
        self.calls.nest(t, inputs);
    }

    /// The gradient of a block's flat parameter is made within the block's own backward.
    fn unnests(&self, t: &Tape) {
        self.calls.unnest();
        let is_trained = |&unit: &usize| self.units.borrow()[unit].trains;
        if let Some(unit) = self.unit_of(t, t.scope_id()).filter(is_trained) {
            t.in_hook(|| t.in_scope(0, || self.after_backward_of(t, unit)));
        }
    }

    fn wraps_checkpoints(&self) -> bool {
        true
    }

    fn begins(&self, _: &Tape) {}

    fn uses(&self, _: &Tape, _: &Tensor) {}

    fn asks(&self, _: &Tape, _: &Tensor) {}

    fn takes(&self, _: &Tape, _: &Tensor) -> Option<Tensor> {
        None
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.calls.make_leaf(t, leaf);
    }

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        self.calls.place_of_leaf(x)
    }
}
