//! Attention of each segment of a sequence with itself, as vision towers of any image size run it:
//! queries, keys and values split, `scaled_dot_product_attention` of each part, the results joined.
//!
//! An image has hundreds of windows, each with ten small tensors. They are written down as pieces of
//! a few bundles by one operation, in the order of the several ones that it stands for.

use std::rc::Rc;

use smallvec::smallvec;

use super::super::autograd::Backward;
use super::super::core::{Piece, Storage, Tape};
use super::super::dims::Dims;
use super::super::kind::Kind;
use super::super::tensor::Tensor;
use super::attention::{Extents, cudnn, efficient};
use crate::dtype::DType;

/// Which implementation runs every segment; see [`Tape::sdpa`] for the choice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Cudnn,
    Efficient,
}

impl Kernel {
    const fn node(self) -> &'static str {
        match self {
            Self::Cudnn => "ScaledDotProductCudnnAttentionBackward0",
            Self::Efficient => "ScaledDotProductEfficientAttentionBackward0",
        }
    }

    /// What forward keeps of each segment beside its output.
    const fn extras(self) -> usize {
        match self {
            Self::Cudnn => 3,
            Self::Efficient => 1,
        }
    }
}

impl Tape {
    /// [1, heads, positions, width] each, and the positions of each segment → [1, positions, heads,
    /// width], and the outputs of the segments, which live as long as the caller's list of them.
    pub fn sdpa_of_segments(&self, qkv: [&Tensor; 3], lengths: &Rc<[u64]>) -> (Tensor, Tensor) {
        let [q, k, v] = qkv.map(|x| self.parted(x));
        let kernel = if q.dtype() == DType::F32 {
            Kernel::Efficient
        } else {
            Kernel::Cudnn
        };
        let mut rec = self.record(kernel.node(), &[&q, &k, &v]);
        for x in [&q, &k, &v] {
            rec.save(self, x);
        }
        let (outs, extras) = (self.bundle(), self.bundle());
        let is_kept = rec.is_active() && self.keeps_saved();
        let made = Made {
            kernel,
            outs: &outs,
            extras: &extras,
            kind: if is_kept { Kind::Activation } else { Kind::Temporary },
            needs_sums: rec.is_active(),
        };
        for &n in lengths.iter() {
            self.segment_forward(&made, &extents(&q, n));
            if !is_kept {
                extras.release(kernel.extras());
            }
        }
        let (outs, extras) = (held(outs, &q), held(extras, &q));
        rec.save(self, &outs);
        rec.save(self, &extras);
        let joined = self.empty([1, q.size(2), q.size(1), q.size(3)], q.dtype(), "cat");
        let lengths = lengths.clone();
        let joined = rec.finish(self, joined, move |t, bw| t.segments_backward(bw, kernel, &lengths));
        (joined, outs)
    }

    /// `torch.split`: its backward joins the gradients of the parts.
    fn parted(&self, x: &Tensor) -> Tensor {
        let rec = self.record("SplitWithSizesBackward0", &[x]);
        let shape = *x.shape();
        rec.finish(self, x.alias(shape, *x.strides()), move |t, bw| {
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "split backward"))]
        })
    }

    fn segment_forward(&self, made: &Made<'_>, e: &Extents) {
        let out = Dims::new(&[1, e.heads, e.queries, e.width]);
        let sums = |rows: u64, extent: &[u64]| {
            if made.needs_sums {
                let shape = Dims::new(&[&[1, e.heads, rows], extent].concat());
                made.extras.add(&made.piece(shape, DType::F32, "logsumexp of scores"));
            }
        };
        match made.kernel {
            Kernel::Cudnn => {
                let scalar = Dims::new(&[]);
                made.extras.add(&made.piece(scalar, DType::I64, "philox seed"));
                made.extras.add(&made.piece(scalar, DType::I64, "philox offset"));
                made.outs.add(&made.piece(out, e.dtype, "attention output"));
                sums(e.queries, &[1]);
                scratch(made.extras, 256, "cuDNN workspace");
            }
            Kernel::Efficient => {
                made.outs.add(&made.piece(out, e.dtype, "attention output"));
                sums(e.queries.next_multiple_of(32), &[]);
            }
        }
    }

    /// From the last segment to the first; each lets go of what forward kept of it.
    fn segments_backward(&self, bw: &Backward<'_>, kernel: Kernel, lengths: &[u64]) -> super::super::autograd::Grads {
        let [q, outs, extras] = [&bw.saved[0], &bw.saved[3], &bw.saved[4]];
        let grads = [(); 3].map(|()| self.bundle());
        for &n in lengths.iter().rev() {
            let e = extents(q, n);
            let shape = Dims::new(&[1, e.heads, n, e.width]);
            for (grad, name) in grads.iter().zip(GRADIENTS) {
                grad.add(&temporary(shape, e.dtype, name));
            }
            match kernel {
                Kernel::Cudnn => scratch(&grads[0], cudnn::backward_workspace(&e), "cuDNN workspace"),
                Kernel::Efficient => self.efficient_scratch(&e),
            }
            outs.storage().release(1);
            extras.storage().release(kernel.extras());
        }
        grads.into_iter().map(|grad| Some(held(grad, q))).collect()
    }

    fn efficient_scratch(&self, e: &Extents) {
        let rows = |shape: [u64; 3], name| self.empty(shape, DType::F32, name);
        let product = self.empty([1, e.heads, e.queries, e.width], DType::F32, "gradient times output");
        let sums = rows([1, e.queries, e.heads], "row sums");
        let delta = rows([1, e.heads, e.queries], "row sums, contiguous");
        drop((sums, product));
        let workspace = self.bundle();
        scratch(
            &workspace,
            efficient::backward_workspace(e),
            "attention backward workspace",
        );
        drop(delta);
    }
}

const GRADIENTS: [&str; 3] = [
    "attention backward, queries",
    "attention backward, keys",
    "attention backward, values",
];

/// What forward makes.
struct Made<'a> {
    kernel: Kernel,
    outs: &'a Storage,
    extras: &'a Storage,
    kind: Kind,
    /// Backward will want the sums of exponentials.
    needs_sums: bool,
}

impl Made<'_> {
    fn piece(&self, shape: Dims, dtype: DType, name: &'static str) -> Piece {
        let why = if self.kind == Kind::Activation {
            self.kernel.node()
        } else {
            ""
        };
        Piece {
            shape,
            dtype,
            name,
            kind: self.kind,
            why,
        }
    }
}

fn temporary(shape: Dims, dtype: DType, name: &'static str) -> Piece {
    Piece {
        shape,
        dtype,
        name,
        kind: Kind::Temporary,
        why: "",
    }
}

/// A piece that is freed at once.
fn scratch(bundle: &Storage, bytes: u64, name: &'static str) {
    bundle.add(&temporary(Dims::new(&[bytes]), DType::U8, name));
    bundle.release(1);
}

/// A bundle as a tensor that is saved, held or passed on like one of the shape of `like`.
fn held(bundle: Storage, like: &Tensor) -> Tensor {
    Tensor::from_parts(bundle, *like.shape(), *like.strides(), like.dtype(), None)
}

fn extents(q: &Tensor, n: u64) -> Extents {
    Extents {
        batch: 1,
        heads: q.size(1),
        kv_heads: q.size(1),
        queries: n,
        keys: n,
        width: q.size(3),
        dtype: q.dtype(),
    }
}

#[cfg(test)]
mod tests;
