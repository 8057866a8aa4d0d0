//! The tape: records allocations and frees, and holds the state that PyTorch keeps per thread.

mod scopes;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use super::allocations::Allocations;
use super::autocast::AutocastState;
use super::checkpoint::{Hook, ReentrantRun};
use super::dims::Dims;
use super::failure::Failure;
#[cfg(not(target_family = "wasm"))]
use super::follow::Follower;
use super::gpu::Gpu;
use super::hooks::ModuleWatcher;
use super::kind::{Component, Kind};
use super::log::{Allocation, Event, Log, Scope, ScopeId, StorageId};
use super::script::{Cast, Described, Script};
use super::stack::Deduplication;
use super::stage::Stage;
use super::storage::Storage;
use super::tensor::Tensor;
use super::why::Why;
use super::work::{Class, HostOp, WorkItem};
use super::workspace::{Workspace, WorkspaceSizes};
use crate::dtype::DType;

/// Called with a parameter once its gradient is there (`register_post_accumulate_grad_hook`).
pub type GradientHook = Rc<dyn Fn(&Tape, &Tensor)>;

/// Records one run as eager PyTorch would execute it. A cheap handle: clones share the log.
#[derive(Clone)]
pub struct Tape(pub(super) Rc<Core>);

pub(super) struct Core {
    pub(super) log: RefCell<Log>,
    /// Module that runs or is being made.
    scope: Cell<ScopeId>,
    pub(super) kind: Cell<Kind>,
    pub(super) grad_enabled: Cell<bool>,
    /// True if some samples of the batch are padded, so that their mask is not all true.
    padded: Cell<bool>,
    /// Positions that a generation has cached.
    cached: Cell<u64>,
    /// True if modules are made in the state after their first forward.
    settled: Cell<bool>,
    /// GPUs that share each linear layer of the language model (tensor parallelism); 1 if it is whole.
    group: Cell<u64>,
    /// Part of the model that is made (pipeline parallelism).
    stage: Cell<Stage>,
    pub(super) training: Cell<bool>,
    /// True if adapters take part in a forward.
    adapts: Cell<bool>,
    /// True if TRL has set the probability of every `nn.Dropout` to 0.
    pub(super) keeps_all: Cell<bool>,
    /// True if hundreds of segments are recorded as one sum.
    pub(super) sums_segments: Cell<bool>,
    /// Set once a recomputation has produced everything that it was started for; from then on nothing is made.
    pub(super) stopped: Cell<bool>,
    /// False while a library's hooks on modules are taken away.
    pub(super) notifies_watcher: Cell<bool>,
    pub(super) sequence: Cell<u64>,
    pub(super) graph_task: Cell<u32>,
    pub(super) in_backward: Cell<bool>,
    /// Run of a reentrant checkpoint's block that goes on, if one does.
    pub(super) reentrant_run: Cell<Option<ReentrantRun>>,
    pub(super) autocast: RefCell<AutocastState>,
    pub(super) hooks: RefCell<Vec<Hook>>,
    pub(super) workspaces: RefCell<Vec<(Workspace, Storage)>>,
    /// CUDA stream that operations run on.
    pub(super) stream: Cell<u32>,
    /// Sizes of workspaces that the environment sets, if any.
    pub(super) workspace_sizes: Cell<WorkspaceSizes>,
    /// Kernels and host ops; `None` if they are not recorded.
    pub(super) work: RefCell<Option<Vec<WorkItem>>>,
    pub(super) working: Cell<bool>,
    /// True while a library's hook runs.
    pub(super) in_hook: Cell<bool>,
    /// Number of pieces of work beside the computation.
    pub(super) transfers: Cell<u32>,
    /// Layer deduplication, for runs that are only counted.
    pub(super) deduplication: RefCell<Option<Deduplication>>,
    /// True if a pass with deduplicated layers could not be unrolled.
    pub(super) unlike_layers: Cell<bool>,
    #[cfg(not(target_family = "wasm"))]
    pub(super) follower: RefCell<Option<Follower>>,
    failure: RefCell<Option<Failure>>,
    /// Runs after each gradient of a backward.
    pub(super) gradient_hook: RefCell<Option<GradientHook>>,
    /// Told of modules as they run.
    pub(super) watcher: RefCell<Option<Rc<dyn ModuleWatcher>>>,
    /// Modules that have a parameter of another.
    pub(super) ties: RefCell<Vec<(ScopeId, Tensor)>>,
    /// Tables of embeddings.
    pub(super) tables: RefCell<Vec<StorageId>>,
    /// True if linear layers are those of DeepSpeed's stage 3.
    pub(super) linear_of_zero3: Cell<bool>,
    /// Type that a library gives parameters once the model is made.
    pub(super) recast: Cell<Option<DType>>,
    /// Type into which a wrapper casts the arguments of the modules that it wraps.
    pub(super) argument_type: Cell<Option<DType>>,
    /// Type of buffers that are made in fp32.
    pub(super) buffer_type: Cell<Option<DType>>,
    /// Numbers of the events before each call of `torch.cuda.empty_cache()`.
    pub(super) emptied: RefCell<Vec<usize>>,
    /// True for one of several processes, each with a whole model that it loads on the host.
    pub(super) in_launch: Cell<bool>,
    /// Types in which weights and adapters are made, if a wrapper gathers them in another.
    pub(super) made_types: Cell<[Option<DType>; 2]>,
    /// Paths of norms without parameters.
    pub(super) bare_norms: RefCell<Vec<String>>,
    /// Paths of modules that a library wraps one by one: a weight that two of them share is no longer shared.
    pub(super) wrapped_apart: RefCell<HashSet<&'static str>>,
    /// True if the model that is made stays on the host until a wrapper moves it.
    pub(super) on_host: Cell<bool>,
    pub(super) buffers_on_host: RefCell<Vec<Event>>,
    /// Shape of the GPU, on which some temporaries depend.
    pub gpu: Gpu,
}

impl Tape {
    /// Makes an empty tape with room for a large run: reserved memory that is never written costs nothing, while moving
    /// a growing log does.
    pub fn roomy(gpu: Gpu) -> Self {
        let tape = Self::new(gpu);
        tape.0.log.borrow_mut().make_room();
        tape
    }

    /// Makes an empty tape for a GPU of this shape.
    pub fn new(gpu: Gpu) -> Self {
        let root = Scope {
            parent: 0,
            name: "",
            index: None,
            component: Component::Run,
        };
        Self(Rc::new(Core {
            log: RefCell::new(Log {
                scopes: vec![root],
                ..Log::default()
            }),
            scope: Cell::new(0),
            kind: Cell::new(Kind::Temporary),
            grad_enabled: Cell::new(true),
            padded: Cell::new(false),
            cached: Cell::new(0),
            settled: Cell::new(false),
            group: Cell::new(1),
            stage: Cell::new(Stage::WHOLE),
            training: Cell::new(true),
            adapts: Cell::new(true),
            keeps_all: Cell::new(false),
            sums_segments: Cell::new(false),
            stopped: Cell::new(false),
            notifies_watcher: Cell::new(true),
            sequence: Cell::new(0),
            graph_task: Cell::new(0),
            in_backward: Cell::new(false),
            reentrant_run: Cell::new(None),
            autocast: RefCell::new(AutocastState::default()),
            hooks: RefCell::new(Vec::new()),
            workspaces: RefCell::new(Vec::new()),
            stream: Cell::new(0),
            workspace_sizes: Cell::default(),
            work: RefCell::new(None),
            working: Cell::new(false),
            in_hook: Cell::new(false),
            transfers: Cell::new(0),
            deduplication: RefCell::new(None),
            unlike_layers: Cell::new(false),
            #[cfg(not(target_family = "wasm"))]
            follower: RefCell::new(None),
            failure: RefCell::new(None),
            gradient_hook: RefCell::new(None),
            watcher: RefCell::new(None),
            ties: RefCell::default(),
            tables: RefCell::default(),
            linear_of_zero3: Cell::new(false),
            recast: Cell::new(None),
            argument_type: Cell::new(None),
            buffer_type: Cell::new(None),
            emptied: RefCell::default(),
            in_launch: Cell::new(false),
            made_types: Cell::default(),
            bare_norms: RefCell::default(),
            wrapped_apart: RefCell::default(),
            on_host: Cell::new(false),
            buffers_on_host: RefCell::default(),
            gpu,
        }))
    }

    /// Allocates memory for a tensor of `shape`; an empty tensor allocates nothing.
    pub(super) fn storage(&self, shape: &Dims, dtype: DType, name: &'static str) -> Storage {
        self.storage_of_bytes(
            shape.numel().saturating_mul(dtype.width()),
            shape,
            dtype,
            name,
            self.0.kind.get(),
        )
    }

    pub(super) fn storage_of_bytes(
        &self,
        bytes: u64,
        shape: &Dims,
        dtype: DType,
        name: &'static str,
        kind: Kind,
    ) -> Storage {
        let bytes = self.possible(bytes, shape, name);
        if bytes > 0 && kind != Kind::Workspace && !self.0.in_hook.get() && self.works() {
            self.launch(self.kernel(name, Class::Pointwise, dtype, [bytes, bytes]));
        }
        let id = (bytes > 0 && !self.0.stopped.get()).then(|| {
            self.0.log.borrow_mut().born(Allocation {
                bytes,
                shape: *shape,
                dtype,
                name,
                scope: self.0.scope.get(),
                kind,
                why: Why::default(),
            })
        });
        Storage::new(&self.0, id)
    }

    /// Bytes of the memory behind a tensor.
    pub(super) fn bytes_of_storage(&self, x: &Tensor) -> u64 {
        let id = x.storage().id();
        id.map_or(0, |id| self.0.log.borrow().allocations[id as usize].bytes)
    }

    /// Makes an empty bundle: a storage of many pieces.
    pub(super) fn bundle(&self) -> Storage {
        Storage::bundle(&self.0)
    }

    /// Returns true if some samples of the batch are padded, so that their mask is not all true.
    pub fn is_padded(&self) -> bool {
        self.0.padded.get()
    }

    /// GPUs that share the linear layers of a language model (tensor parallelism); 1 if it is whole.
    pub fn group(&self) -> u64 {
        self.0.group.get()
    }

    /// Sets the number of GPUs that share the linear layers of the models made from now on.
    pub fn set_group(&self, gpus: u64) {
        self.0.group.set(gpus);
    }

    /// Part of the model that is made (pipeline parallelism).
    pub fn stage(&self) -> Stage {
        self.0.stage.get()
    }

    /// Sets the part of the model that is made from now on.
    pub fn set_stage(&self, stage: Stage) {
        self.0.stage.set(stage);
    }

    /// Positions of each sample before those of the forward, which a generation has cached.
    pub fn cached_positions(&self) -> u64 {
        self.0.cached.get()
    }

    /// Sets the positions that a generation has cached.
    pub fn set_cached_positions(&self, cached: u64) {
        self.0.cached.set(cached);
    }

    /// Sets if some samples of the batch are padded.
    pub fn set_padded(&self, padded: bool) {
        self.0.padded.set(padded);
    }

    /// Makes modules in the state after their first forward, for recordings of a step after the first.
    pub fn settle(&self) {
        self.0.settled.set(true);
    }

    /// Returns true if the model trains (`module.training`).
    pub fn is_training(&self) -> bool {
        self.0.training.get()
    }

    /// Returns true if modules are made in the state after their first forward.
    pub fn is_settled(&self) -> bool {
        self.0.settled.get()
    }

    /// Sets training mode, on which dropout depends (`model.train()`, `model.eval()`).
    pub fn set_training(&self, training: bool) {
        self.0.training.set(training);
    }

    /// Returns true if adapters take part in a forward.
    pub fn adapts(&self) -> bool {
        self.0.adapts.get()
    }

    /// Runs `f` with adapters switched off (peft's `disable_adapter`).
    pub fn without_adapters<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.adapts.replace(false);
        let result = f();
        self.0.adapts.set(before);
        result
    }

    /// Runs `f` in evaluation mode (`model.eval()`).
    pub fn evaluating<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.training.replace(false);
        let result = f();
        self.0.training.set(before);
        result
    }

    /// Sets the probability of every `nn.Dropout` to 0 (`disable_dropout_in_model`); those that a forward calls as
    /// functions stay.
    pub fn disable_dropout_modules(&self) {
        self.0.keeps_all.set(true);
    }

    /// Probability of an `nn.Dropout`.
    pub fn module_dropout(&self, p: f64) -> f64 {
        if self.0.keeps_all.get() { 0.0 } else { p }
    }

    /// GPU of the run.
    pub fn gpu(&self) -> Gpu {
        self.0.gpu
    }

    /// Adds descriptions of a script's allocations in the current module to the log.
    pub(super) fn describe(&self, script: &Script) -> Described {
        script.describe(&mut self.0.log.borrow_mut(), self.0.scope.get())
    }

    /// Appends a script to the log, with `known` as its known storages; does nothing once the tape has stopped.
    pub(super) fn perform(&self, script: &Script, described: Described, known: &[StorageId]) -> Option<Cast> {
        (!self.0.stopped.get()).then(|| script.perform(&mut self.0.log.borrow_mut(), described, known))
    }

    /// Takes the log so far.
    pub(super) fn take_log(&self) -> Log {
        self.0.log.take()
    }

    /// Number of events so far, a mark between events.
    pub fn mark(&self) -> usize {
        self.0.log.borrow().events.len()
    }

    /// Rewrites the log; `f` gets all events, and the descriptions of storages.
    pub fn revise(&self, f: impl FnOnce(&mut [Event], &Allocations)) {
        let log = &mut *self.0.log.borrow_mut();
        f(&mut log.events, &log.allocations);
    }

    /// Reads the log so far.
    pub fn read_log<R>(&self, f: impl FnOnce(&Log) -> R) -> R {
        f(&self.0.log.borrow())
    }

    /// Replaces the events since `from` by what `f` makes of them.
    pub fn rewrite_from(&self, from: usize, f: impl FnOnce(&[Event]) -> Vec<Event>) {
        let log = &mut *self.0.log.borrow_mut();
        let events = f(&log.events[from..]);
        log.events.truncate(from);
        log.events.extend(events);
    }

    /// Number of storages so far.
    pub(super) fn allocations(&self) -> usize {
        self.0.log.borrow().allocations.len()
    }

    /// Runs `f`, with its allocations counted as `kind`.
    pub fn as_kind<R>(&self, kind: Kind, f: impl FnOnce() -> R) -> R {
        let before = self.0.kind.replace(kind);
        let result = f();
        self.0.kind.set(before);
        result
    }

    /// Runs `f` without recording a graph (`torch.no_grad`).
    pub fn no_grad<R>(&self, f: impl FnOnce() -> R) -> R {
        self.with_grad(false, f)
    }

    /// Returns true unless operations run under `no_grad`.
    pub fn is_grad_enabled(&self) -> bool {
        self.0.grad_enabled.get()
    }

    pub(super) fn with_grad<R>(&self, enabled: bool, f: impl FnOnce() -> R) -> R {
        let before = self.0.grad_enabled.replace(enabled);
        let result = f();
        self.0.grad_enabled.set(before);
        result
    }

    /// Notes an error that the run would raise; only the first one is kept.
    pub fn fail(&self, failure: impl FnOnce() -> Failure) {
        self.0.failure.borrow_mut().get_or_insert_with(failure);
    }

    /// Error that the run would raise, if any.
    pub fn failure(&self) -> Option<Failure> {
        self.0.failure.borrow().clone()
    }

    /// Allocates a library's workspace on its first use by a thread; the workspace stays.
    pub(super) fn workspace(&self, lib: &'static str, bytes: u64) {
        if self.0.stopped.get() {
            return;
        }
        let key = Workspace {
            lib,
            backward_thread: self.0.in_backward.get(),
            stream: self.0.stream.get(),
        };
        let known = self.0.workspaces.borrow().iter().any(|(k, _)| *k == key);
        if !known {
            let storage = self.in_scope(0, || {
                self.storage_of_bytes(bytes, &Dims::new(&[bytes]), DType::U8, lib, Kind::Workspace)
            });
            storage.classify(Kind::Workspace, Why::Library);
            self.0.workspaces.borrow_mut().push((key, storage));
        }
    }

    /// Ends the recording and returns the log.
    pub fn finish(self) -> Log {
        // Emptied in place: a setter that is called with nothing here and with one type elsewhere is compiled for that type,
        // and the page's first program would hold it.
        self.0.gradient_hook.take();
        self.0.watcher.take();
        self.0.workspaces.borrow_mut().clear();
        self.0.log.take()
    }
}
