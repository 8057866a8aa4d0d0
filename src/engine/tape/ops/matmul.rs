//! Matrix products, and the preparation of operands by `linear` and `matmul`.

use smallvec::smallvec;

use super::super::autograd::Recording;
use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;
use super::super::work::{Class, Layout, WorkItem};
use super::linear_zero3::{flattened, with_last};
use crate::dtype::DType;

/// cuBLAS workspace of one handle and stream: 32 MiB on Hopper, 8.125 MiB before
/// (`aten/src/ATen/cuda/CublasHandlePool.cpp`, `getChosenWorkspaceSize`).
fn cublas_workspace(capability: (u32, u32)) -> u64 {
    if capability.0 == 9 {
        4096 * 8 * 1024
    } else {
        4096 * 1024 * 2 + 16 * 1024 * 8
    }
}

/// cuBLASLt workspace of one handle and stream, `CUBLASLT_WORKSPACE_SIZE` unset: 1 MiB
/// (`_getWorkspaceSize` in `aten/src/ATen/cuda/CUDABlas.cpp`).
const CUBLASLT_WORKSPACE: u64 = 1 << 20;

impl Tape {
    /// Uses cuBLAS, which allocates its workspace on first use.
    pub(crate) fn cublas(&self) {
        let set = self.0.workspace_sizes.get().cublas;
        let bytes = set.unwrap_or_else(|| cublas_workspace(self.0.gpu.capability));
        self.workspace("cuBLAS workspace", bytes);
    }

    /// Uses cuBLASLt, which adds a bias to the product, and allocates its workspace on first use.
    pub(crate) fn cublaslt(&self) {
        self.cublas();
        let set = self.0.workspace_sizes.get().cublaslt;
        self.workspace("cuBLASLt workspace", set.unwrap_or(CUBLASLT_WORKSPACE));
    }

    /// `torch.mm(a, b)`: [n, k] × [k, m] → [n, m].
    pub fn mm(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let (b, a) = (&self.cast_low(b), &self.cast_low(a));
        let mut rec = self.record("MmBackward0", &[a, b]);
        let saved = save_operands(self, &mut rec, a, b, 0);
        let meta = Operands::of(a, b);
        self.fits(a.size(1) == b.size(0), "mm of a linear layer", a, b);
        let out = self.product([a.size(0), b.size(1)], a.dtype(), "mm");
        self.multiplied(&meta.forward(), a.dtype());
        rec.finish(self, out, move |t, bw| {
            let (grad_b, grad_a) = t.mm_backward(bw.grad(), saved, &meta);
            smallvec![grad_a, grad_b]
        })
    }

    /// `torch.addmm(bias, a, b)`: the bias goes through cuBLASLt's epilogue.
    pub fn addmm(&self, bias: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
        let b = &self.cast_low(b);
        let a = &self.cast_low(a);
        let bias = &self.cast_low(bias);
        let mut rec = self.record("AddmmBackward0", &[bias, a, b]);
        let saved = save_operands(self, &mut rec, a, b, 1);
        self.fits(a.size(1) == b.size(0), "addmm of a linear layer", a, b);
        let out = self.empty([a.size(0), b.size(1)], a.dtype(), "addmm");
        self.cublaslt();
        let meta = Operands::of(a, b);
        self.multiplied(&meta.forward(), a.dtype());
        rec.finish(self, out, move |t, bw| {
            let g = bw.grad();
            // Alphabetical: mat1, mat2, then self.
            let grad_a = saved.b.map(|_| t.grad_of_left(g, &meta));
            let grad_b = saved.a.map(|_| t.grad_of_right(g, &meta));
            smallvec![bw.want(0, || g.clone()), grad_a, grad_b]
        })
    }

    /// `torch.bmm(a, b)`: [x, n, k] × [x, k, m] → [x, n, m].
    pub fn bmm(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("BmmBackward0", &[a, b]);
        let saved = save_operands(self, &mut rec, a, b, 0);
        self.fits(a.size(0) == b.size(0) && a.size(2) == b.size(1), "bmm", a, b);
        let out = self.product([a.size(0), a.size(1), b.size(2)], a.dtype(), "bmm");
        let batched = Batched::of(a, b);
        self.multiplied(&batched.forward(), a.dtype());
        let (a_shape, b_shape) = (*a.shape(), *b.shape());
        rec.finish(self, out, move |t, bw| {
            // mat2: self^H.bmm(grad); self: grad.bmm(mat2^H)
            let product = |shape, work: Product| {
                let out = t.product(shape, bw.grad().dtype(), "bmm backward");
                t.multiplied(&work, bw.grad().dtype());
                drop(t.unrepeated(bw.grad()));
                out
            };
            let grad_b = saved.a.map(|_| product(b_shape, batched.grad_of_right()));
            let grad_a = saved.b.map(|_| product(a_shape, batched.grad_of_left()));
            smallvec![grad_a, grad_b]
        })
    }

    /// `torch.nn.functional.linear(x, weight, bias)`; `weight` is [out, in].
    pub fn linear(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        // Arguments are cast from the last to the first.
        let bias = bias.map(|b| self.cast_low(b));
        let weight = self.cast_low(weight);
        let x = self.cast_low(x);
        self.without_autocast(|| self.linear_cast(&x, &weight, bias.as_ref()))
    }

    fn linear_cast(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        if self.0.linear_of_zero3.get() {
            return self.linear_of_zero3(x, weight, bias);
        }
        let Some(bias) = bias else {
            return self.matmul_cast(x, &self.transpose(weight, 0, 1));
        };
        if x.dim() == 2 {
            return self.addmm(bias, x, &self.transpose(weight, 0, 1));
        }
        if x.is_contiguous() {
            let flat = self.reshape(x, flattened(x));
            let out = self.addmm(bias, &flat, &self.transpose(weight, 0, 1));
            drop(flat);
            return self.view(&out, with_last(x, weight.size(0)));
        }
        let out = self.matmul_cast(x, &self.transpose(weight, 0, 1));
        self.add_(out, bias)
    }

    /// `torch.matmul(a, b)`.
    pub fn matmul(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let b = self.cast_low(b);
        let a = self.cast_low(a);
        self.without_autocast(|| self.matmul_cast(&a, &b))
    }

    /// `_matmul_impl`: a matrix on the right is folded into one `mm`, as is a trained one on the left, whose product is
    /// transposed and copied; anything else becomes `bmm`.
    pub(super) fn matmul_cast(&self, a: &Tensor, b: &Tensor) -> Tensor {
        if a.dim() == 2 && b.dim() == 2 {
            return self.mm(a, b);
        }
        if b.dim() == 2 && (b.requires_grad() || folds(a)) {
            let flat = self.reshape(a, flattened(a));
            let out = self.mm(&flat, b);
            drop(flat);
            return self.view(&out, with_last(a, b.size(1)));
        }
        if a.dim() == 2 && a.requires_grad() {
            let last = b.dim() - 1;
            let (rows, columns) = (self.transpose(b, last - 1, last), self.transpose(a, 0, 1));
            let flat = self.reshape(&rows, flattened(&rows));
            let out = self.mm(&flat, &columns);
            drop(flat);
            let out = self.view(&out, with_last(&rows, columns.size(1)));
            return self.contiguous(&self.transpose(&out, last - 1, last));
        }
        let [of_a, of_b] = [a, b].map(|x| Dims::new(&x.shape()[..x.dim() - 2]));
        let lead = self.broadcast(&of_a, &of_b, "matmul").to_vec();
        let batch: u64 = lead.iter().product();
        let stacked = |x: &Tensor| {
            let [n, m] = [x.size(x.dim() - 2), x.last()];
            let expanded = match x.shape()[..x.dim() - 2] == lead[..] {
                true => x.clone(),
                false => self.expand(x, with_tail(&lead, n, m)),
            };
            self.reshape(&expanded, [batch, n, m])
        };
        let (a3, b3) = (stacked(a), stacked(b));
        let out = self.bmm(&a3, &b3);
        drop((a3, b3));
        self.view(&out, with_tail(&lead, a.size(a.dim() - 2), b.last()))
    }

    /// Copies an operand whose rows or columns are one row or column repeated, which cuBLAS does not support
    /// (`prepare_batch_matrix_for_cublas` in `aten/src/ATen/native/cuda/Blas.cpp`).
    pub(crate) fn unrepeated(&self, x: &Tensor) -> Option<Tensor> {
        let last = x.dim() - 1;
        let repeats = |i: usize| x.strides()[i] == 0 && x.size(i) > 1;
        (repeats(last) || repeats(last - 1)).then(|| self.empty(*x.shape(), x.dtype(), "contiguous copy"))
    }

    /// Copies a matrix, or a batch of matrices, in which neither rows nor columns are contiguous
    /// (`prepare_matrix_for_cublas`, `prepare_batch_matrix_for_cublas`).
    pub(crate) fn ready_for_cublas(&self, x: &Tensor) -> Option<Tensor> {
        let last = x.dim().checked_sub(1).filter(|&last| last > 0)?;
        let [rows, columns] = [x.size(last - 1), x.size(last)];
        let [by_row, by_column] = [x.strides()[last - 1], x.strides()[last]];
        let takes = (by_column == 1 && by_row >= columns.max(1)) || (by_row == 1 && by_column >= rows.max(1));
        (!takes && !x.is_contiguous()).then(|| self.empty(*x.shape(), x.dtype(), "contiguous copy"))
    }

    pub(super) fn product(&self, shape: impl Into<Dims>, dtype: DType, name: &'static str) -> Tensor {
        let out = self.empty(shape, dtype, name);
        self.cublas();
        out
    }

    fn mm_backward(&self, g: &Tensor, slots: SavedOperands, meta: &Operands) -> (Option<Tensor>, Option<Tensor>) {
        // Alphabetical: mat2, then self.
        let grad_b = slots.a.map(|_| self.grad_of_right(g, meta));
        let grad_a = slots.b.map(|_| self.grad_of_left(g, meta));
        (grad_b, grad_a)
    }

    /// `mm_mat1_backward`: the gradient comes in the layout of the operand.
    fn grad_of_left(&self, g: &Tensor, meta: &Operands) -> Tensor {
        let out = self.product_like(meta.a, meta.a_transposed, g.dtype());
        self.multiplied(&meta.grad_of_left(), g.dtype());
        out
    }

    /// `mm_mat2_backward`: the gradient comes in the layout of the operand.
    fn grad_of_right(&self, g: &Tensor, meta: &Operands) -> Tensor {
        let out = self.product_like(meta.b, meta.b_transposed, g.dtype());
        self.multiplied(&meta.grad_of_right(), g.dtype());
        out
    }

    fn product_like(&self, shape: Dims, transposed: bool, dtype: DType) -> Tensor {
        if transposed {
            let out = self.product(shape.swapped(0, 1), dtype, "mm backward");
            self.transpose(&out, 0, 1)
        } else {
            self.product(shape, dtype, "mm backward")
        }
    }

    /// Records that the last allocation is the result of this product.
    pub(super) fn multiplied(&self, product: &Product, dtype: DType) {
        self.items(|items| {
            let allocation = items.iter().rposition(|item| matches!(item, WorkItem::Launch(_)));
            let Some(WorkItem::Launch(last)) = allocation.map(|at| &mut items[at]) else {
                return;
            };
            let [m, n, k, batch] = product.extents;
            last.class = Class::Matmul(product.layout);
            last.dtype = dtype;
            last.extents = product.extents;
            last.read = batch * (m * k + k * n) * dtype.width();
            last.written = batch * m * n * dtype.width();
        });
    }

    pub(super) fn without_autocast<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.0.autocast.borrow_mut().dtype.take();
        let result = f();
        self.0.autocast.borrow_mut().dtype = before;
        result
    }
}

/// Indices of the operands among the saved tensors.
#[derive(Clone, Copy)]
pub(super) struct SavedOperands {
    pub a: Option<usize>,
    pub b: Option<usize>,
}

/// Saves the operands that the gradients need: the right one for the left one's, and vice versa. `first` is the
/// position of the left operand among the operation's inputs.
pub(super) fn save_operands(tape: &Tape, rec: &mut Recording, a: &Tensor, b: &Tensor, first: usize) -> SavedOperands {
    let mut next = 0;
    let mut save = |wanted: bool, t: &Tensor, rec: &mut Recording| {
        wanted.then(|| {
            rec.save(tape, t);
            next += 1;
            next - 1
        })
    };
    let slot_b = save(rec.wants(first), b, rec);
    let slot_a = save(rec.wants(first + 1), a, rec);
    SavedOperands { a: slot_a, b: slot_b }
}

/// Shapes and layouts of two matrices.
pub(super) struct Operands {
    a: Dims,
    b: Dims,
    a_transposed: bool,
    b_transposed: bool,
}

impl Operands {
    pub(super) fn of(a: &Tensor, b: &Tensor) -> Self {
        let transposed = |t: &Tensor| t.strides()[0] == 1 && t.strides()[1] == t.size(0);
        Self {
            a: *a.shape(),
            b: *b.shape(),
            a_transposed: transposed(a),
            b_transposed: transposed(b),
        }
    }
}

/// Extents m, n, k and batch of a product, and its layout.
#[derive(Clone, Copy)]
pub(super) struct Product {
    extents: [u64; 4],
    layout: Layout,
}

impl Operands {
    pub(super) fn forward(&self) -> Product {
        Product {
            extents: [self.a[0], self.b[1], self.a[1], 1],
            layout: layout(self.a_transposed, self.b_transposed),
        }
    }

    fn grad_of_left(&self) -> Product {
        Product {
            extents: [self.a[0], self.a[1], self.b[1], 1],
            layout: layout(false, !self.b_transposed),
        }
    }

    fn grad_of_right(&self) -> Product {
        let [m, n] = if self.b_transposed {
            [self.b[1], self.b[0]]
        } else {
            [self.b[0], self.b[1]]
        };
        Product {
            extents: [m, n, self.a[0], 1],
            layout: Layout::Nt,
        }
    }
}

/// A batch of products.
#[derive(Clone, Copy)]
pub(super) struct Batched {
    /// m, n, k, batch.
    extents: [u64; 4],
    a_transposed: bool,
    b_transposed: bool,
}

impl Batched {
    pub(super) fn of(a: &Tensor, b: &Tensor) -> Self {
        let transposed = |t: &Tensor| t.strides()[1] == 1 && t.size(1) > 1 && t.strides()[2] != 1;
        Self {
            extents: [a.size(1), b.size(2), a.size(2), a.size(0)],
            a_transposed: transposed(a),
            b_transposed: transposed(b),
        }
    }

    pub(super) fn forward(&self) -> Product {
        Product {
            extents: self.extents,
            layout: layout(self.a_transposed, self.b_transposed),
        }
    }

    pub(super) fn grad_of_left(&self) -> Product {
        let [m, n, k, batch] = self.extents;
        Product {
            extents: [m, k, n, batch],
            layout: layout(false, !self.b_transposed),
        }
    }

    pub(super) fn grad_of_right(&self) -> Product {
        let [m, n, k, batch] = self.extents;
        Product {
            extents: [k, n, m, batch],
            layout: layout(!self.a_transposed, false),
        }
    }
}

fn layout(a_transposed: bool, b_transposed: bool) -> Layout {
    match (a_transposed, b_transposed) {
        (true, _) => Layout::Nt,
        (false, true) => Layout::Tn,
        (false, false) => Layout::Nn,
    }
}

/// Returns true if a tensor can be viewed as a matrix without a copy (`should_fold`, which also checks strides of
/// extents of 1).
fn folds(a: &Tensor) -> bool {
    let (shape, strides) = (a.shape(), a.strides());
    (0..a.dim() - 2).all(|i| strides[i] == strides[i + 1] * shape[i + 1])
}

fn with_tail(lead: &[u64], n: u64, m: u64) -> Dims {
    let mut all = lead.to_vec();
    all.extend([n, m]);
    Dims::new(&all)
}
