//! What a run makes GPU and host do: kernels, and what the host does between them.
//!
//! Written down beside births and deaths, and only where someone asks for time. Most operations need not
//! say anything: whatever is born is written by a kernel that reads what it is made like. Those that do
//! more, or less, say so with [`Tape::ran`].

use std::sync::Arc;

use super::core::Tape;
use super::dims;
use super::log::{ScopeId, StorageId};
use super::tensor::Tensor;
use crate::dtype::DType;

/// Whether anyone may ask for time. Where no face of WebAssembly does, its download has no room for what nobody asks
/// for: there everything here is compiled away.
const ASKED: bool = cfg!(any(not(target_family = "wasm"), feature = "time"));

/// What a kernel computes, as far as its time depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Each element by itself, all tensors laid out alike: vectorised loads.
    Pointwise,
    /// Each element by itself, tensors laid out differently or broadcast.
    Strided,
    /// Rows of elements set side by side.
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
    /// The highest of each row, sorted: rows, columns, how many.
    TopK,
    /// Values put where indices say, in each row: rows, columns, how many.
    Scatter,
    /// Values taken from where indices say, in each row: rows, columns, how many.
    GatherLast,
    /// Fused attention: batch × heads, queries, keys, width; in [`Launch::shared`] query heads to a key
    /// head.
    Attention(Fused),
    /// Patches, as cuDNN does: output positions, outputs, inputs of a patch.
    Convolution,
    /// Gradients of weight and bias.
    ConvolutionBackward,
    /// A list of tensors at once: tensors, elements in all.
    Foreach,
    /// The fused AdamW: tensors, elements in all.
    FusedAdamw,
    /// Norms of a list of tensors.
    ForeachNorm,
    /// A copy from the host or to it.
    HostCopy,
}

/// How operands of a product lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Row by row both.
    Nn,
    /// The right one column by column: a linear map.
    Tn,
    /// The left one column by column: a gradient of a weight.
    Nt,
}

/// A fused attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fused {
    /// What computes it.
    pub backend: super::SdpaBackend,
    /// Gradients, or else the output.
    pub backward: bool,
    /// No query sees a later key.
    pub causal: bool,
    /// A mask is added.
    pub masked: bool,
}

/// One kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launch {
    /// The operation.
    pub name: &'static str,
    /// What it computes.
    pub class: Class,
    /// What it computes with.
    pub dtype: DType,
    /// Whether it is part of an operation's gradient.
    pub gradient: bool,
    /// Module.
    pub scope: ScopeId,
    /// Bytes read, each input once.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Extents, as the class says.
    pub extents: [u64; 4],
    /// Query heads to a key head.
    pub shared: u64,
}

/// What GPUs do together that have each a part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shared {
    /// An all-reduce.
    Summed,
    /// An all-gather.
    Gathered,
    /// One receives what another sends.
    Received,
}

/// What the host does beside launching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chore {
    /// An operation that only looks at memory in another way.
    View,
    /// An operation whose operands are trained makes a node of the graph.
    Record,
    /// A module is called.
    Module,
    /// Backward is called: its thread wakes.
    Backward,
    /// Backward runs a node.
    Node,
    /// Backward puts the gradient of this parameter in place; of none where it holds no memory.
    Accumulate(Option<StorageId>),
    /// A checkpointed block saves a tensor: a hook in Python notes a promise instead.
    Pack,
    /// What was promised is computed again, packed and handed out.
    Unpack,
    /// The host waits for a value from the GPU.
    Wait,
    /// Python names which fused attention may run (`torch.nn.attention.sdpa_kernel`).
    Choose,
    /// GPUs that have each a part of a model do something together, over so many bytes in all.
    Shared(Shared, u64),
    /// A linear map that several GPUs share is called, or else backward comes to it: Python around `DTensor`s.
    SharedMap {
        /// Backward does.
        gradient: bool,
    },
    /// An optimizer's step begins.
    Step(&'static str),
    /// An optimizer turns to one parameter; whether it is a matrix.
    Parameter(&'static str, bool),
}

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// The host launches a kernel.
    Launch(Launch),
    /// The host does something else.
    Chore(Chore),
    /// All of these in order, so many times. An image has hundreds of windows that do alike.
    Repeat(Arc<[Item]>, u64),
}

impl Item {
    /// The same with other launches.
    #[must_use]
    pub fn map(&self, of: &dyn Fn(&Launch) -> Launch) -> Self {
        match self {
            Self::Launch(launch) => Self::Launch(of(launch)),
            Self::Chore(chore) => Self::Chore(*chore),
            Self::Repeat(items, times) => Self::Repeat(items.iter().map(|item| item.map(of)).collect(), *times),
        }
    }

    /// How many launches there are that `counts`.
    pub fn launches(&self, counts: &dyn Fn(&Launch) -> bool) -> u64 {
        match self {
            Self::Launch(launch) => u64::from(counts(launch)),
            Self::Chore(_) => 0,
            Self::Repeat(items, times) => times * items.iter().map(|item| item.launches(counts)).sum::<u64>(),
        }
    }
}

impl Launch {
    /// Elements of the result, or what stands for them.
    pub fn bytes(&self) -> u64 {
        self.read + self.written
    }
}

/// Bytes of memory that a tensor looks at, repeated elements once.
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

/// All but the last extent as rows, and the last.
pub fn rows_of(x: &Tensor) -> [u64; 4] {
    if !ASKED {
        return [0; 4];
    }
    let columns = if x.dim() == 0 { 1 } else { x.last() };
    [x.numel() / columns.max(1), columns, 0, 0]
}

impl Tape {
    /// Writes down what GPU and host do from here on.
    pub fn write_work(&self) {
        self.expect_work(0);
    }

    /// The same, with room for so many items.
    pub fn expect_work(&self, items: usize) {
        let mut work = self.0.work.borrow_mut();
        work.get_or_insert_with(|| Vec::with_capacity(items));
        self.0.working.set(true);
    }

    /// Runs `f`, which only the first step does: it is no work of a later one.
    pub(crate) fn first_only<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.working.replace(false);
        let result = f();
        self.0.working.set(before);
        result
    }

    /// Whether it does.
    pub(crate) fn works(&self) -> bool {
        ASKED && self.0.working.get() && !self.0.stopped.get()
    }

    /// How much was done so far: a mark between items.
    pub fn work_mark(&self) -> usize {
        if !ASKED {
            return 0;
        }
        self.0.work.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Takes what was written.
    pub fn take_work(&self) -> Vec<Item> {
        self.0.working.set(false);
        self.0.work.borrow_mut().take().unwrap_or_default()
    }

    pub(super) fn items<R>(&self, f: impl FnOnce(&mut Vec<Item>) -> R) -> Option<R> {
        if !self.works() {
            return None;
        }
        self.0.work.borrow_mut().as_mut().map(f)
    }

    /// The host does something that is no kernel.
    pub(crate) fn chore(&self, chore: Chore) {
        self.items(|items| items.push(Item::Chore(chore)));
    }

    /// A kernel of an operation `name` that reads and writes so many bytes.
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

    /// Whether what runs now is part of an operation's gradient.
    pub(super) fn is_gradient(&self) -> bool {
        self.0.in_backward.get() && !self.0.grad_enabled.get()
    }

    /// Adds a kernel.
    pub(crate) fn launch(&self, launch: Launch) {
        self.items(|items| items.push(Item::Launch(launch)));
    }

    /// Replaces the kernels that births since `mark` stand for by those that really run.
    pub(crate) fn ran(&self, mark: usize, launches: impl IntoIterator<Item = Launch>) {
        self.items(|items| {
            let after: Vec<Item> = items.drain(mark.min(items.len())..).collect();
            items.extend(after.into_iter().filter(|item| matches!(item, Item::Chore(_))));
            items.extend(launches.into_iter().map(Item::Launch));
        });
    }

    /// One kernel in place of those that births since `mark` stand for.
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

    /// The host waits for a value from the GPU.
    pub(crate) fn wait(&self) {
        self.chore(Chore::Wait);
    }

    /// The last kernel reads these tensors instead of what its birth made believe, and is strided if one of
    /// them lies otherwise than the result.
    pub(super) fn reads(&self, out: &Tensor, inputs: &[&Tensor]) {
        self.items(|items| {
            let Some(Item::Launch(last)) = items.last_mut() else {
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

/// Whether elements of both that belong together follow one another alike.
fn lies_like(x: &Tensor, out: &Tensor) -> bool {
    if x.shape() != out.shape() {
        // leading extents of 1 change nothing
        return x.numel() == out.numel() && dims::is_contiguous(x.shape(), x.strides()) && out.is_contiguous();
    }
    (0..x.dim()).all(|i| x.size(i) == 1 || x.strides()[i] == out.strides()[i])
}
