//! Work of a run: kernels, and host ops between them.
//!
//! Recorded beside allocations and frees, and only on request. Most operations need not record their own: each
//! allocation counts as written by a kernel that reads a tensor like it. Operations that do more, or less, call
//! [`Tape::ran`].

use std::sync::Arc;

use super::core::Tape;
use super::dims;
use super::log::{ScopeId, StorageId};
use super::tensor::Tensor;
use crate::dtype::DType;

/// True if anyone may request work. A WebAssembly frontend without the feature `time` never does; everything here is
/// then compiled away to keep its download small.
const ASKED: bool = cfg!(any(not(target_family = "wasm"), feature = "time"));

/// Class of a kernel's computation, on which its time depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Elementwise, all tensors in one layout: vectorised loads.
    Pointwise,
    /// Elementwise, tensors in different layouts or broadcast.
    Strided,
    /// Concatenated rows of elements.
    Cat,
    /// `[batch] × [m, k] · [k, n]`; extents m, n, k, batch.
    Matmul(Layout),
    /// Over the last dimension, to one value: rows, columns.
    ReduceRows,
    /// Over all but the last dimension: rows, columns.
    ReduceColumns,
    /// Rows, columns.
    LayerNorm,
    /// Gradients of input, weight and bias: rows, columns.
    LayerNormBackward,
    /// Gradient of the input alone: rows, columns.
    LayerNormInputBackward,
    /// Rows, columns.
    Softmax,
    /// Rows, columns.
    SoftmaxBackward,
    /// Rows, columns.
    LogSoftmax,
    /// Rows, columns.
    LogSoftmaxBackward,
    /// Loss of chosen classes: rows, columns.
    Nll,
    /// Rows, columns.
    NllBackward,
    /// Rows of a table: rows, columns.
    Gather,
    /// Gradient of a table: rows, columns, entries.
    EmbeddingBackward,
    /// Rows, columns.
    MaskedScatter,
    /// The highest of each row, sorted: rows, columns, k.
    TopK,
    /// Values scattered by indices in each row: rows, columns, number.
    Scatter,
    /// Values gathered by indices in each row: rows, columns, number.
    GatherLast,
    /// Fused attention: batch × heads, queries, keys, width; [`Launch::shared`] is the number of query heads per key
    /// head.
    Attention(Fused),
    /// Convolution of patches by cuDNN: output positions, outputs, inputs of a patch.
    Convolution,
    /// Gradients of weight and bias.
    ConvolutionBackward,
    /// A list of tensors at once: tensors, elements in total.
    Foreach,
    /// The fused AdamW: tensors, elements in total.
    FusedAdamw,
    /// Norms of a list of tensors.
    ForeachNorm,
    /// A copy from the host or to it.
    HostCopy,
}

/// Layout of a product's operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Both row-major.
    Nn,
    /// The right one column-major: a linear layer.
    Tn,
    /// The left one column-major: a gradient of a weight.
    Nt,
}

/// A fused attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fused {
    /// Implementation.
    pub backend: super::SdpaBackend,
    /// True for the gradients, false for the output.
    pub backward: bool,
    /// True if queries see no keys after them.
    pub causal: bool,
    /// True if a mask is added.
    pub masked: bool,
}

/// One kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launch {
    /// The operation.
    pub name: &'static str,
    /// Class of the computation.
    pub class: Class,
    /// Type of the computation.
    pub dtype: DType,
    /// True if it is part of an operation's gradient.
    pub gradient: bool,
    /// Module.
    pub scope: ScopeId,
    /// Bytes read, each input once.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Extents, in the order that the class gives.
    pub extents: [u64; 4],
    /// Query heads per key head.
    pub shared: u64,
}

/// Collective operations of GPUs that each have a part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveKind {
    /// Sum of a tensor over all GPUs.
    AllReduce,
    /// Concatenation of the parts of all GPUs.
    AllGather,
    /// A receive of a tensor that another GPU sends.
    Receive,
}

/// Work beside the computation, on streams of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Beside {
    /// Sum of a buffer over all GPUs.
    AllReduce,
    /// Concatenation of the parts of all GPUs.
    AllGather,
    /// Sum over all GPUs, of which each gets its part.
    ReduceScatter,
    /// A kernel that reads and writes so many bytes in total.
    Copy,
    /// A copy from the host.
    ToDevice,
    /// A copy to the host.
    ToHost,
}

/// A piece of [work beside the computation](Beside).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transfer {
    /// Kind of the work.
    pub work: Beside,
    /// Bytes of the buffer that each GPU has in the end, or at the start of a reduce-scatter.
    pub bytes: u64,
    /// Its number in the recording, from 1.
    pub number: u32,
    /// True if it begins once everything that was issued before is computed; else it may begin at once.
    pub follows: bool,
    /// Number of another piece that it waits for, 0 for none.
    pub after: u32,
}

/// Host ops other than launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostOp {
    /// An operation that only makes a view.
    View,
    /// An operation whose operands require grad makes a node of the graph.
    Record,
    /// A module is called.
    Module,
    /// Backward is called, and its thread wakes.
    Backward,
    /// Backward runs a node.
    Node,
    /// Backward stores the gradient of this parameter; `None` if it holds no memory.
    Accumulate(Option<StorageId>),
    /// A checkpointed block saves a tensor: a hook in Python notes a promise instead.
    Pack,
    /// Promised tensors are recomputed, packed and returned.
    Unpack,
    /// The host waits for a value from the GPU.
    Wait,
    /// Python selects the fused attention backends that may run (`torch.nn.attention.sdpa_kernel`).
    Choose,
    /// A collective of GPUs that each have a part of a model, over this many bytes in total.
    Collective(CollectiveKind, u64),
    /// A linear layer that several GPUs share runs its forward or backward: Python around `DTensor`s.
    DTensor {
        /// True for backward.
        gradient: bool,
    },
    /// A library's Python around the operations of a step runs so many times: a hook, by its name in the host's pace. An
    /// optimizer's step that began before is over.
    Hook(&'static str, u32),
    /// A hook's kernel on the stream of the computation: type, bytes read and bytes written. Its launch is part of the hook.
    Copied(DType, [u64; 2]),
    /// Work beside the computation is issued.
    Beside(Transfer),
    /// Marks the computation issued so far with a number (`torch.cuda.Event.record`), for which work beside it can wait as for
    /// another piece.
    Event(u32),
    /// The computation waits for work beside it with this number.
    Join(u32),
    /// The host waits for work beside the computation with this number.
    Await(u32),
    /// The host computes something of so many elements, by its name in the host's pace.
    OnHost(&'static str, u64),
    /// An optimizer's step begins.
    Step(&'static str),
    /// An optimizer processes one parameter; true if it is a matrix.
    Parameter(&'static str, bool),
}

/// One item of work.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkItem {
    /// The host launches a kernel.
    Launch(Launch),
    /// The host does something else.
    HostOp(HostOp),
    /// These items in order, repeated. An image has hundreds of equal windows.
    Repeat(Arc<[WorkItem]>, u64),
}

impl WorkItem {
    /// Returns the item with each launch replaced by `of`.
    #[must_use]
    pub fn map(&self, of: &dyn Fn(&Launch) -> Launch) -> Self {
        match self {
            Self::Launch(launch) => Self::Launch(of(launch)),
            Self::HostOp(host_op) => Self::HostOp(*host_op),
            Self::Repeat(items, times) => Self::Repeat(items.iter().map(|item| item.map(of)).collect(), *times),
        }
    }

    /// Number of launches for which `counts` returns true.
    pub fn launches(&self, counts: &dyn Fn(&Launch) -> bool) -> u64 {
        match self {
            Self::Launch(launch) => u64::from(counts(launch)),
            Self::HostOp(_) => 0,
            Self::Repeat(items, times) => times * items.iter().map(|item| item.launches(counts)).sum::<u64>(),
        }
    }
}

impl Launch {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read + self.written
    }
}

/// Bytes of memory that a tensor views, repeated elements once.
pub fn bytes_of(x: &Tensor) -> u64 {
    if !ASKED {
        return 0;
    }
    let elements: u64 = (0..x.dim())
        .filter(|&i| x.strides()[i] != 0)
        .map(|i| x.size(i))
        .product();
    elements * x.dtype().width()
}

/// Extents with all but the last dimension as rows, and the last as columns.
pub fn rows_of(x: &Tensor) -> [u64; 4] {
    if !ASKED {
        return [0; 4];
    }
    let columns = if x.dim() == 0 { 1 } else { x.last() };
    [x.numel() / columns.max(1), columns, 0, 0]
}

impl Tape {
    /// Records kernels and host ops from here on.
    pub fn write_work(&self) {
        self.expect_work(0);
    }

    /// Records kernels and host ops from here on, with room for this many items.
    pub fn expect_work(&self, items: usize) {
        let mut work = self.0.work.borrow_mut();
        work.get_or_insert_with(|| Vec::with_capacity(items));
        self.0.working.set(true);
    }

    /// Runs `f`, which only the first step runs, without recording its work.
    pub(crate) fn first_only<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.working.replace(false);
        let result = f();
        self.0.working.set(before);
        result
    }

    /// Runs what a library does around operations: memory that it makes stands for no kernels, which are noted one by one.
    pub(crate) fn in_hook<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.in_hook.replace(true);
        let result = f();
        self.0.in_hook.set(before);
        result
    }

    /// Notes that a hook runs so many times.
    pub(crate) fn hook(&self, name: &'static str, times: usize) {
        if times > 0 {
            self.host_op(HostOp::Hook(name, times as u32));
        }
    }

    /// Notes a hook's kernel on the stream of the computation.
    pub(crate) fn copied(&self, dtype: DType, bytes: [u64; 2]) {
        if bytes != [0, 0] {
            self.host_op(HostOp::Copied(dtype, bytes));
        }
    }

    /// Notes work beside the computation, which begins once all that was issued is computed if it `follows`, and once the
    /// piece `after` is done. Returns its number; without work, that of `after`.
    pub(crate) fn beside(&self, (work, bytes): (Beside, u64), follows: bool, after: u32) -> u32 {
        if bytes == 0 || !self.works() {
            return after;
        }
        let number = self.next_transfer();
        let transfer = Transfer {
            work,
            bytes,
            number,
            follows,
            after,
        };
        self.host_op(HostOp::Beside(transfer));
        number
    }

    /// Numbers what was issued so far, for work beside the computation that waits for it.
    pub(crate) fn event(&self) -> u32 {
        if !self.works() {
            return 0;
        }
        let number = self.next_transfer();
        self.host_op(HostOp::Event(number));
        number
    }

    /// Notes that the computation waits for a piece of work beside it; 0 is none.
    pub(crate) fn join(&self, number: u32) {
        if number > 0 {
            self.host_op(HostOp::Join(number));
        }
    }

    /// Notes that the host waits for a piece of work beside the computation; 0 is none.
    pub(crate) fn await_on_host(&self, number: u32) {
        if number > 0 {
            self.host_op(HostOp::Await(number));
        }
    }

    /// Notes that the host computes something of so many elements.
    pub(crate) fn on_host(&self, name: &'static str, elements: u64) {
        if elements > 0 {
            self.host_op(HostOp::OnHost(name, elements));
        }
    }

    /// A collective that the computation waits for.
    pub(crate) fn collective_at_once(&self, work: Beside, bytes: u64) {
        let number = self.beside((work, bytes), true, 0);
        self.join(number);
    }

    fn next_transfer(&self) -> u32 {
        let number = self.0.transfers.get() + 1;
        self.0.transfers.set(number);
        number
    }

    /// Returns true if work is being recorded.
    pub(crate) fn works(&self) -> bool {
        ASKED && self.0.working.get() && !self.0.stopped.get()
    }

    /// Number of items so far, a mark between items.
    pub fn work_mark(&self) -> usize {
        if !ASKED {
            return 0;
        }
        self.0.work.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Takes the recorded items.
    pub fn take_work(&self) -> Vec<WorkItem> {
        self.0.working.set(false);
        self.0.work.borrow_mut().take().unwrap_or_default()
    }

    pub(super) fn items<R>(&self, f: impl FnOnce(&mut Vec<WorkItem>) -> R) -> Option<R> {
        if !self.works() {
            return None;
        }
        self.0.work.borrow_mut().as_mut().map(f)
    }

    /// Records a host op.
    pub(crate) fn host_op(&self, host_op: HostOp) {
        self.items(|items| items.push(WorkItem::HostOp(host_op)));
    }

    /// Makes a kernel of an operation `name` that reads and writes this many bytes.
    pub(crate) fn kernel(&self, name: &'static str, class: Class, dtype: DType, [read, written]: [u64; 2]) -> Launch {
        Launch {
            name,
            class,
            dtype,
            gradient: self.is_gradient(),
            scope: self.scope_id(),
            read,
            written,
            extents: [0; 4],
            shared: 1,
        }
    }

    /// Returns true if the current operation belongs to a gradient.
    pub(super) fn is_gradient(&self) -> bool {
        self.0.in_backward.get() && !self.0.grad_enabled.get()
    }

    /// Adds a kernel.
    pub(crate) fn launch(&self, launch: Launch) {
        self.items(|items| items.push(WorkItem::Launch(launch)));
    }

    /// Replaces the kernels that stand for allocations since `mark` by those that really run.
    pub(crate) fn ran(&self, mark: usize, launches: impl IntoIterator<Item = Launch>) {
        self.items(|items| {
            let after: Vec<WorkItem> = items.drain(mark.min(items.len())..).collect();
            items.extend(after.into_iter().filter(|item| matches!(item, WorkItem::HostOp(_))));
            items.extend(launches.into_iter().map(WorkItem::Launch));
        });
    }

    /// Replaces the kernels that stand for allocations since `mark` by one kernel.
    pub(crate) fn ran_as(
        &self,
        mark: usize,
        (name, class): (&'static str, Class),
        dtype: DType,
        bytes: [u64; 2],
        extents: [u64; 4],
    ) {
        if self.works() {
            let launch = self.kernel(name, class, dtype, bytes);
            self.ran(mark, [Launch { extents, ..launch }]);
        }
    }

    /// Records that the host waits for a value from the GPU.
    pub(crate) fn wait(&self) {
        self.host_op(HostOp::Wait);
    }

    /// Sets the tensors that the last kernel reads, in place of the assumed one; the kernel is strided if one of them
    /// has another layout than the result.
    pub(super) fn reads(&self, out: &Tensor, inputs: &[&Tensor]) {
        self.items(|items| {
            let Some(WorkItem::Launch(last)) = items.last_mut() else {
                return;
            };
            last.read = inputs.iter().map(|x| bytes_of(x)).sum();
            let alike = |x: &&&Tensor| x.numel() == 1 || x.numel() == 0 || lies_like(x, out);
            if !inputs.iter().all(|x| alike(&x)) {
                last.class = Class::Strided;
            }
            if let Some(first) = inputs.first() {
                last.dtype = if inputs.len() == 1 || first.dtype().width() >= last.dtype.width() {
                    first.dtype()
                } else {
                    last.dtype
                };
            }
        });
    }
}

/// Returns true if corresponding elements of both follow one another in the same order in memory.
fn lies_like(x: &Tensor, out: &Tensor) -> bool {
    if x.shape() != out.shape() {
        // Leading extents of 1 change nothing.
        return x.numel() == out.numel() && dims::is_contiguous(x.shape(), x.strides()) && out.is_contiguous();
    }
    (0..x.dim()).all(|i| x.size(i) == 1 || x.strides()[i] == out.strides()[i])
}
