//! Tensors: views of memory with a shape and a node in the graph.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::autograd::{Edge, Node};
use super::core::Tape;
use super::dims::{self, Dims};
use super::kind::Kind;
use super::storage::Storage;
use super::why::Why;
use crate::dtype::DType;

/// A handle to a tensor; clones are the same tensor, as in Python. When the last handle is dropped and nothing saved
/// its memory, the memory is freed: scopes of Rust variables mirror the lifetimes of Python's.
#[derive(Clone)]
pub struct Tensor(pub(super) Rc<Impl>);

pub(super) struct Impl {
    pub storage: Storage,
    pub shape: Dims,
    pub strides: Dims,
    pub dtype: DType,
    pub edge: Option<Edge>,
    pub leaf: Option<Rc<Leaf>>,
    /// True for a view, which keeps its base tensor alive.
    pub is_view: bool,
}

/// Gradient of a leaf that requires grad, and the node that stores it.
pub struct Leaf {
    pub(super) grad: RefCell<Option<Tensor>>,
    pub(super) node: RefCell<Weak<Node>>,
}

impl Tensor {
    /// Returns true if this is the last handle to the tensor, and no other tensor or gradient has its memory.
    pub fn is_only_handle(&self) -> bool {
        Rc::strong_count(&self.0) == 1 && self.storage().is_unique()
    }

    pub(super) fn from_parts(storage: Storage, shape: Dims, strides: Dims, dtype: DType, edge: Option<Edge>) -> Self {
        Self(Rc::new(Impl {
            storage,
            shape,
            strides,
            dtype,
            edge,
            leaf: None,
            is_view: false,
        }))
    }

    /// Returns a tensor with the same memory and another shape.
    pub(super) fn alias(&self, shape: Dims, strides: Dims) -> Self {
        self.alias_as(shape, strides, self.0.dtype)
    }

    /// Returns a tensor with the same memory, another shape and another type.
    pub(super) fn alias_as(&self, shape: Dims, strides: Dims, dtype: DType) -> Self {
        Self(Rc::new(Impl {
            storage: self.0.storage.clone(),
            shape,
            strides,
            dtype,
            edge: None,
            leaf: None,
            is_view: true,
        }))
    }

    /// Returns the memory as a tensor of its own: an operation's result under its final shape.
    pub(super) fn with_layout(self, shape: Dims, strides: Dims) -> Self {
        Self::from_parts(self.0.storage.clone(), shape, strides, self.0.dtype, None)
    }

    /// Returns true if nobody else has this tensor or its memory, so that it may be changed in place.
    pub(super) fn is_ours_alone(&self) -> bool {
        !self.0.is_view && self.is_dense() && self.handles() == 1 && self.storage().is_unique()
    }

    /// Extents in elements.
    pub fn shape(&self) -> &Dims {
        &self.0.shape
    }

    /// Strides in elements.
    pub fn strides(&self) -> &Dims {
        &self.0.strides
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.0.shape.len()
    }

    /// Extent of dimension `i`.
    pub fn size(&self, i: usize) -> u64 {
        self.0.shape[i]
    }

    /// Extent of the last dimension.
    pub fn last(&self) -> u64 {
        self.0.shape[self.dim() - 1]
    }

    /// Number of elements.
    pub fn numel(&self) -> u64 {
        self.0.shape.numel()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Returns true if backward computes a gradient of it.
    pub fn requires_grad(&self) -> bool {
        self.0.edge.is_some() || self.0.leaf.is_some()
    }

    /// Returns true if it is a leaf that requires grad, which nothing may be written into.
    pub fn is_leaf_with_gradient(&self) -> bool {
        self.0.leaf.is_some()
    }

    /// Returns true if its memory is in the order of its shape.
    pub fn is_contiguous(&self) -> bool {
        dims::is_contiguous(&self.0.shape, &self.0.strides)
    }

    /// Returns true if it is contiguous with channels last (`is_contiguous(memory_format=torch.channels_last)`, or
    /// `channels_last_3d` for a volume), even if it is so with channels first too.
    pub fn is_channels_last_contiguous(&self) -> bool {
        dims::is_channels_last_contiguous(&self.0.shape, &self.0.strides)
    }

    /// Returns true if it is contiguous with channels last, and not with channels first.
    pub fn has_channels_last(&self) -> bool {
        !self.is_contiguous() && self.is_channels_last_contiguous()
    }

    /// Returns true if some permutation of it is contiguous.
    pub fn is_dense(&self) -> bool {
        dims::is_dense(&self.0.shape, &self.0.strides)
    }

    /// Memory behind the tensor.
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// Returns the memory as a tensor outside the graph (`detach`).
    pub fn detach(&self) -> Self {
        Self::from_parts(self.0.storage.clone(), self.0.shape, self.0.strides, self.0.dtype, None)
    }

    /// Returns the memory, of its owner if it is lent, as a tensor outside the graph.
    pub(super) fn detach_owner(&self) -> Self {
        Self::from_parts(self.0.storage.owner(), self.0.shape, self.0.strides, self.0.dtype, None)
    }

    /// Returns true if both handles are one tensor.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn handles(&self) -> usize {
        Rc::strong_count(&self.0)
    }

    /// Identity of the tensor among those that live.
    pub fn key(&self) -> usize {
        Rc::as_ptr(&self.0) as usize
    }

    /// Gradient of a leaf, if it has one.
    pub fn grad(&self) -> Option<Self> {
        self.0.leaf.as_ref().and_then(|l| l.grad.borrow().clone())
    }

    /// Gives a leaf a gradient in the leaf's layout.
    pub(crate) fn hold_gradient(&self, t: &Tape) {
        let strides = match self.is_dense() {
            true => *self.strides(),
            false => self.shape().contiguous_strides(),
        };
        if let Some(leaf) = &self.0.leaf {
            let grad = t.empty_strided(*self.shape(), strides, self.dtype(), "gradient");
            grad.storage().classify(Kind::Gradient, Why::Gradient);
            leaf.grad.replace(Some(grad));
        }
    }

    /// Sets the gradient of a leaf.
    pub(super) fn take_gradient(&self, grad: Self) {
        if let Some(leaf) = &self.0.leaf {
            leaf.grad.replace(Some(grad));
        }
    }

    /// Drops the gradient of a leaf (`grad = None`).
    pub fn clear_grad(&self) {
        if let Some(leaf) = &self.0.leaf {
            leaf.grad.take();
        }
    }

    /// Destination of this tensor's gradient.
    pub(super) fn edge(&self) -> Option<Edge> {
        self.0
            .edge
            .clone()
            .or_else(|| self.0.leaf.as_ref().map(|leaf| Node::accumulate(leaf, self)))
    }
}

impl Tape {
    /// Allocates a contiguous tensor, made by the operation `name`.
    pub fn empty(&self, shape: impl Into<Dims>, dtype: DType, name: &'static str) -> Tensor {
        let shape = shape.into();
        self.empty_strided(shape, shape.contiguous_strides(), dtype, name)
    }

    /// Allocates a dense tensor with the given strides.
    pub fn empty_strided(&self, shape: Dims, strides: Dims, dtype: DType, name: &'static str) -> Tensor {
        let storage = self.storage(&shape, dtype, name);
        Tensor::from_parts(storage, shape, strides, dtype, None)
    }

    /// Allocates a tensor in the layout of another one (`empty_like`).
    pub fn empty_like(&self, like: &Tensor, dtype: DType, name: &'static str) -> Tensor {
        let strides = dims::dense_strides_like(like.shape(), like.strides());
        let out = self.empty_strided(*like.shape(), strides, dtype, name);
        if self.works() && out.numel() > 0 {
            self.reads(&out, &[like]);
        }
        out
    }

    /// Makes a parameter: a leaf that requires grad.
    pub fn parameter(&self, shape: impl Into<Dims>, dtype: DType, name: &'static str) -> Tensor {
        let t = self.empty(shape, dtype, name);
        self.require_grad(&t)
    }

    /// Returns the memory as a leaf that requires grad.
    pub fn require_grad(&self, t: &Tensor) -> Tensor {
        let leaf = Rc::new(Leaf {
            grad: RefCell::new(None),
            node: RefCell::new(Weak::new()),
        });
        let Impl {
            storage,
            shape,
            strides,
            dtype,
            ..
        } = &*t.0;
        Tensor(Rc::new(Impl {
            storage: storage.clone(),
            shape: *shape,
            strides: *strides,
            dtype: *dtype,
            edge: None,
            leaf: Some(leaf),
            is_view: false,
        }))
    }
}
