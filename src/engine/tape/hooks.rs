//! Hooks of a library that runs the training: on gradients as they are made, and on the memory of parameters, which it
//! replaces (`param.data = …`).

use std::collections::HashSet;
use std::rc::Rc;

use super::checkpoint::ReentrantRun;
use super::core::{GradientHook, Tape};
use super::dims::Dims;
use super::kind::Kind;
use super::log::{ScopeId, StorageId};
use super::storage::Storage;
use super::tensor::Tensor;
use super::why::Why;
use crate::dtype::DType;

/// A library that gathers and releases parameters around modules.
pub trait ModuleWatcher {
    /// A module's forward begins.
    fn enters(&self, t: &Tape, module: ScopeId);
    /// A module's forward is over.
    fn leaves(&self, t: &Tape, module: ScopeId);
    /// Backward comes to a node of the graph, to none at its end: passes the next end of a module before it, and returns
    /// the module's run if backward leaves it there, another number if it enters one; `None` if there is no end.
    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize>;
    /// The run of a module through whose beginning a gradient for a node goes; `None` if the node is in the module.
    fn leaves_by(&self, node: u64) -> Option<usize>;
    /// A block is about to run again on these inputs, and then to go backward through the graph of that run alone, which
    /// ends at the inputs.
    fn nests(&self, _: &Tape, _inputs: &[Tensor]) {}
    /// Backward is back in the graph around that of a block.
    fn unnests(&self, _: &Tape) {}
    /// True if the library wraps a module as a whole, so that its hooks are outside a checkpoint that the module is run in.
    fn wraps_checkpoints(&self) -> bool {
        false
    }
    /// An operation begins.
    fn begins(&self, t: &Tape);
    /// An operation uses a tensor whose memory is lent, or that has none.
    fn uses(&self, t: &Tape, x: &Tensor);
    /// A module asks a parameter of another for its type.
    fn asks(&self, t: &Tape, x: &Tensor);
    /// A module takes the parameter of another: returns what it computes with in its place, if that is not the parameter.
    fn takes(&self, t: &Tape, x: &Tensor) -> Option<Tensor>;
    /// The result of the current module becomes a leaf that requires a gradient.
    fn makes_leaf(&self, t: &Tape, leaf: &Tensor);
    /// Place among the nodes of such a leaf; `None` for parameters.
    fn place_of_leaf(&self, x: &Tensor) -> Option<u64>;
}

impl Tape {
    /// Sets the hook that runs after each gradient of a backward.
    pub fn on_gradient(&self, hook: GradientHook) {
        *self.0.gradient_hook.borrow_mut() = Some(hook);
    }

    /// Runs the hook on a parameter whose gradient was just made.
    pub(super) fn run_gradient_hook(&self, leaf: &Tensor) {
        let hook = self.0.gradient_hook.borrow().clone();
        if let Some(hook) = hook {
            hook(self, leaf);
        }
    }

    /// Type that a library gives parameters once the model is made.
    pub fn recast(&self) -> Option<DType> {
        self.0.recast.get()
    }

    /// Sets the type that a library gives parameters of the models made from now on.
    pub fn set_recast(&self, dtype: Option<DType>) {
        self.0.recast.set(dtype);
    }

    /// Type in which buffers in fp32 are made instead.
    pub fn buffer_type(&self) -> Option<DType> {
        self.0.buffer_type.get()
    }

    /// Makes buffers of the models made from now on in this type instead of fp32.
    pub fn set_buffer_type(&self, dtype: Option<DType>) {
        self.0.buffer_type.set(dtype);
    }

    /// Type into which floating-point arguments of a wrapped module are cast before its forward, beside its input, which has
    /// that type.
    pub fn argument_type(&self) -> Option<DType> {
        self.0.argument_type.get()
    }

    /// Sets the type into which a wrapper casts the arguments of the modules that it wraps.
    pub fn set_argument_type(&self, dtype: Option<DType>) {
        self.0.argument_type.set(dtype);
    }

    /// True if this is one of several processes, each with a whole model that it loads on the host.
    pub fn is_in_launch(&self) -> bool {
        self.0.in_launch.get()
    }

    /// Makes the tape one of several processes.
    pub fn set_in_launch(&self, is: bool) {
        self.0.in_launch.set(is);
    }

    /// Types in which weights and adapters are made, if a wrapper gathers them in another.
    pub fn made_types(&self) -> [Option<DType>; 2] {
        self.0.made_types.get()
    }

    /// Type in which a parameter was made.
    pub fn made_type(&self, param: &Tensor) -> DType {
        let id = param.storage().id();
        id.map_or(param.dtype(), |id| self.0.log.borrow().allocations[id as usize].dtype)
    }

    /// Sets the types in which weights and adapters are made that a wrapper gathers in another.
    pub fn set_made_types(&self, types: [Option<DType>; 2]) {
        self.0.made_types.set(types);
    }

    /// Notes that the current module has a norm without parameters of this name.
    pub fn note_bare_norm(&self, name: &str) {
        let path = self.path_of_scope(self.scope_id());
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            path + "." + name
        };
        self.0.bare_norms.borrow_mut().push(path);
    }

    /// Paths of norms without parameters, which no parameter tells of.
    pub fn bare_norms(&self) -> Vec<String> {
        self.0.bare_norms.borrow().clone()
    }

    /// Sets the paths of modules that a library wraps one by one, so that a weight that two of them share is no longer shared.
    pub fn set_wrapped_apart(&self, modules: HashSet<&'static str>) {
        self.0.wrapped_apart.replace(modules);
    }

    /// True if a weight is in another wrapped module than the current one.
    pub fn is_wrapped_apart(&self, weight: &Tensor) -> bool {
        let modules = self.0.wrapped_apart.borrow();
        let around = |path: &str| {
            let path = path.replace("..", ".");
            let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
            ends.map(|at| &path[..at])
                .rfind(|module| modules.contains(module))
                .map(str::to_owned)
        };
        around(&self.path_of(weight)) != around(&self.path_of_scope(self.scope_id()))
    }

    /// True if the model that is made stays on the host until a wrapper moves it.
    pub fn stays_on_host(&self) -> bool {
        self.0.on_host.get()
    }

    /// Makes the model that comes stay on the host.
    pub fn set_on_host(&self, is: bool) {
        self.0.on_host.set(is);
    }

    /// Leaves a model with these parameters, which was just made, on the host. Parameters know their modules until
    /// [`Tape::leave_host`].
    pub fn keep_on_host(&self, params: &[Tensor]) {
        self.forget_freed();
        let ids: HashSet<StorageId> = params.iter().filter_map(|param| param.storage().id()).collect();
        let made = std::mem::take(&mut self.0.log.borrow_mut().events);
        let buffers = made.into_iter().filter(|event| !ids.contains(&event.storage()));
        self.0.buffers_on_host.replace(buffers.collect());
        self.0.emptied.borrow_mut().clear();
        self.empty_cache();
    }

    /// Forgets that these parameters were made, which a library makes otherwise.
    pub fn unmake(&self, params: &[Tensor]) {
        let ids: HashSet<StorageId> = params.iter().filter_map(|param| param.storage().id()).collect();
        self.0
            .log
            .borrow_mut()
            .events
            .retain(|event| !ids.contains(&event.storage()));
        self.0.emptied.borrow_mut().clear();
        params.iter().for_each(|param| self.leave_host(param));
    }

    /// Moves buffers from the host.
    pub fn move_buffers(&self) {
        let buffers = self.0.buffers_on_host.take();
        self.0.log.borrow_mut().events.extend(buffers);
    }

    /// Takes a parameter's place on the host from it.
    pub fn leave_host(&self, x: &Tensor) {
        x.storage().forget();
    }

    /// Makes a tensor of type `after` whose memory is of type `before` until [`Tape::move_to`] replaces it.
    pub fn empty_to_recast(&self, like: &Tensor, after: DType) -> Tensor {
        like.alias_as(*like.shape(), *like.strides(), after)
    }

    /// Makes a tensor without memory, which gets it by [`Tape::give_memory`].
    pub fn without_memory(&self, shape: &Dims, dtype: DType) -> Tensor {
        let storage = Storage::new(&self.0, None);
        Tensor::from_parts(storage, *shape, shape.contiguous_strides(), dtype, None)
    }

    /// Gives a parameter of the module `scope` that has no memory some of the type `made`.
    pub fn give_memory(&self, x: &Tensor, made: DType, (scope, name): (ScopeId, &'static str)) {
        let new = self.in_scope(scope, || {
            self.as_kind(Kind::Weight, || self.storage(x.shape(), made, name))
        });
        new.classify(Kind::Weight, Why::Parameter);
        x.storage().take_over(&new);
    }

    /// Gives a tensor new memory in its own type, then frees the old.
    pub fn move_to(&self, x: &Tensor, name: &'static str) {
        let scope = self.scope_of(x);
        let new = self.in_scope(scope, || {
            self.as_kind(Kind::Weight, || self.storage(x.shape(), x.dtype(), name))
        });
        new.classify(Kind::Weight, Why::Parameter);
        x.storage().take_over(&new);
    }

    /// Forgets what was made and freed so far, which `empty_cache` gives back to the driver.
    pub fn forget_freed(&self) {
        let mut log = self.0.log.borrow_mut();
        let mut is_freed = vec![false; log.allocations.len()];
        for event in log.events.iter().filter(|event| !event.is_alloc()) {
            is_freed[event.storage() as usize] = true;
        }
        log.events.retain(|event| !is_freed[event.storage() as usize]);
        drop(log);
        self.0.emptied.borrow_mut().clear();
        self.empty_cache();
    }

    /// Notes that `torch.cuda.empty_cache()` is called.
    pub fn empty_cache(&self) {
        self.0.emptied.borrow_mut().push(self.mark());
    }

    /// Numbers of the events before each call of `torch.cuda.empty_cache()`.
    pub fn emptied(&self) -> Vec<usize> {
        self.0.emptied.borrow().clone()
    }

    /// Copies a parameter's gradient into memory of its type, of which it is a part from then on.
    pub fn move_gradient(&self, param: &Tensor, memory: &Tensor) {
        if let Some(grad) = param.grad() {
            param.take_gradient(memory.alias(*grad.shape(), *grad.strides()));
        }
    }

    /// Sets a leaf's gradient, which lies in some memory.
    pub fn give_gradient(&self, leaf: &Tensor, memory: &Tensor) {
        leaf.take_gradient(memory.alias(*leaf.shape(), *leaf.strides()));
    }

    /// Lends a tensor that has no memory the memory of another.
    pub fn lend(&self, x: &Tensor, memory: &Tensor) {
        x.storage().borrow(memory.storage());
    }

    /// Takes back what was lent to a tensor.
    pub fn take_back(&self, x: &Tensor) {
        x.storage().give_back();
    }

    /// Runs `f` as a submodule if a library is told of modules.
    pub fn watched<R>(&self, name: &'static str, f: impl FnOnce() -> R) -> R {
        match self.watcher() {
            Some(_) => self.scope(name, f),
            None => f(),
        }
    }

    /// `output.requires_grad_()` by a hook on the current module.
    pub fn require_grad_of_output(&self, x: &Tensor) -> Tensor {
        let leaf = self.require_grad(x);
        if let Some(watcher) = self.watcher() {
            // The function that is put after it is a node.
            self.0.sequence.set(self.next_node() + 1);
            watcher.makes_leaf(self, &leaf);
        }
        leaf
    }

    /// Type of a parameter of another module, which a library gathers for the current one when it is asked for.
    pub fn type_of(&self, x: &Tensor) -> DType {
        if let Some(watcher) = self.watcher() {
            watcher.asks(self, x);
        }
        x.dtype()
    }

    /// A parameter of another module as the current one computes with it, such as the weight of a head that a loss takes.
    pub fn taken(&self, x: &Tensor) -> Tensor {
        let other = self.watcher().and_then(|watcher| watcher.takes(self, x));
        other.unwrap_or_else(|| x.clone())
    }

    /// Notes that the current module has a parameter of another, for a library that asks with [`Tape::take_ties`].
    pub fn note_tie(&self, weight: &Tensor) {
        if self.recast().is_some() {
            self.0.ties.borrow_mut().push((self.scope_id(), weight.clone()));
        }
    }

    /// Modules that have a parameter of another.
    pub fn take_ties(&self) -> Vec<(ScopeId, Tensor)> {
        self.0.ties.take()
    }

    /// Notes that a parameter is the table of an `nn.Embedding`.
    pub fn note_table(&self, weight: &Tensor) {
        self.0.tables.borrow_mut().extend(weight.storage().id());
    }

    /// Returns true if a parameter is the table of an `nn.Embedding`.
    pub fn is_table(&self, x: &Tensor) -> bool {
        x.storage().id().is_some_and(|id| self.0.tables.borrow().contains(&id))
    }

    /// Sets the library that is told of modules as they run.
    pub fn watch_modules(&self, watcher: Rc<dyn ModuleWatcher>) {
        *self.0.watcher.borrow_mut() = Some(watcher);
    }

    /// True if a block's hooks hold for both of its runs under a reentrant checkpoint.
    pub fn has_hooks_around_checkpoints(&self) -> bool {
        self.watcher().is_some_and(|watcher| watcher.wraps_checkpoints())
    }

    /// Takes the library's hooks on modules away, or puts them back.
    pub fn tell_of_modules(&self, tells: bool) {
        self.0.notifies_watcher.set(tells);
    }

    /// The library that is told of modules; none while a recomputation that has all it was started for ends.
    pub(super) fn watcher(&self) -> Option<Rc<dyn ModuleWatcher>> {
        let watcher = self.0.watcher.borrow().clone();
        watcher.filter(|_| self.0.notifies_watcher.get() && !self.0.stopped.get())
    }

    /// Returns true if a module runs within backward: a recomputation.
    pub fn is_in_backward(&self) -> bool {
        self.0.in_backward.get()
    }

    /// Returns true if backward goes through modules that run now: not in the first run of a reentrant checkpoint's block, and
    /// within backward in the second alone. Other recomputations are only ways to tensors. A function that makes its graph
    /// itself, such as TRL's head, runs without gradients and is gone through all the same.
    pub fn makes_graph(&self) -> bool {
        match self.0.reentrant_run.get() {
            Some(run) => run == ReentrantRun::Again,
            None => !self.0.in_backward.get(),
        }
    }

    /// Returns true if a node of the graph runs, and no recomputation of a block.
    pub fn is_in_backward_of_node(&self) -> bool {
        self.0.in_backward.get() && self.0.hooks.borrow().is_empty() && self.0.reentrant_run.get().is_none()
    }

    /// Number that the next node of the graph gets.
    pub fn next_node(&self) -> u64 {
        self.0.sequence.get()
    }

    /// Frees a tensor's memory: its values lie in memory of another from now on, or nowhere.
    pub fn give_up(&self, x: &Tensor) {
        x.storage().give_up();
    }
}
