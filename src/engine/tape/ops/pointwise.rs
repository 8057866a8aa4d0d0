//! Elementwise operations (TensorIterator): one new tensor each, in the layout of the operands.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::dims;
use super::super::tensor::Tensor;
use super::views::promote;
use crate::dtype::DType;

impl Tape {
    /// Makes the result of an elementwise operation on two tensors: their broadcast shape, promoted type, and the
    /// layout of the first operand that has the whole shape, or else that which follows from both.
    pub(super) fn elementwise(&self, a: &Tensor, b: &Tensor, dtype: DType, name: &'static str) -> Tensor {
        let shape = self.broadcast(a.shape(), b.shape(), name);
        let like = if *a.shape() == shape { a } else { b };
        let strides = if *like.shape() == shape {
            dims::dense_strides_like(&shape, like.strides())
        } else {
            dims::dense_strides_of(&shape, &[a, b].map(|x| (*x.shape(), *x.strides())))
        };
        let out = self.empty_strided(shape, strides, dtype, name);
        if self.works() && out.numel() > 0 {
            self.reads(&out, &[a, b]);
        }
        out
    }

    fn promoted(a: &Tensor, b: &Tensor) -> DType {
        match (a.dim(), b.dim()) {
            (0, 1..) if b.dtype().is_float() => b.dtype(),
            (1.., 0) if a.dtype().is_float() => a.dtype(),
            _ => promote(a.dtype(), b.dtype()),
        }
    }

    /// `a * b`.
    pub fn mul(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("MulBackward0", &[a, b]);
        let (wants_a, wants_b) = (rec.wants(0), rec.wants(1));
        if wants_a {
            rec.save(self, b);
        }
        if wants_b {
            rec.save(self, a);
        }
        let out = self.elementwise(a, b, Self::promoted(a, b), "mul");
        rec.finish(self, out, move |t, bw| {
            let (b, a) = (bw.saved.first(), bw.saved.get(usize::from(wants_a)));
            let g = bw.grad();
            let times =
                |other: Option<&Tensor>| other.map(|o| t.elementwise(g, o, Self::promoted(g, o), "mul backward"));
            let grad_b = if wants_b { times(a) } else { None };
            let grad_a = if wants_a { times(b) } else { None };
            smallvec![grad_a, grad_b]
        })
    }

    /// `a / b`: backward is `grad / b` and `-grad * ((a / b) / b)`.
    pub fn div(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("DivBackward0", &[a, b]);
        rec.save(self, b);
        if rec.wants(1) {
            rec.save(self, a);
        }
        let out = self.elementwise(a, b, Self::promoted(a, b), "div");
        rec.finish(self, out, |t, bw| {
            let (g, b) = (bw.grad(), &bw.saved[0]);
            let like = |x: &Tensor, y: &Tensor| t.elementwise(x, y, Self::promoted(x, y), "div backward");
            // Alphabetical: other, then self.
            let grad_b = bw.want(1, || {
                let quotient = like(&bw.saved[1], b);
                let twice = like(&quotient, b);
                let negated = t.empty_like(g, g.dtype(), "div backward");
                let out = like(&negated, &twice);
                drop((negated, twice, quotient));
                out
            });
            let grad_a = bw.want(0, || like(g, b));
            smallvec![grad_a, grad_b]
        })
    }

    /// `a + b`.
    pub fn add(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let rec = self.record("AddBackward0", &[a, b]);
        let out = self.elementwise(a, b, Self::promoted(a, b), "add");
        rec.finish(self, out, |_, bw| {
            let g = bw.grad().clone();
            smallvec![bw.want(0, || g.clone()), bw.want(1, || g.clone())]
        })
    }

    /// `a - b`.
    pub fn sub(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let rec = self.record("SubBackward0", &[a, b]);
        let out = self.elementwise(a, b, Self::promoted(a, b), "sub");
        rec.finish(self, out, |t, bw| {
            let g = bw.grad().clone();
            let negated = bw.want(1, || t.empty_like(&g, g.dtype(), "neg"));
            smallvec![bw.want(0, || g.clone()), negated]
        })
    }

    /// `a += b`: no new memory; its backward is that of `add`.
    pub fn add_(&self, a: Tensor, b: &Tensor) -> Tensor {
        let rec = self.record("AddBackward0", &[&a, b]);
        let whole = self.broadcast(a.shape(), b.shape(), "add_");
        self.fits(whole == *a.shape(), "add_", &a, b);
        self.add_in_place(&a, b);
        let out = a.detach();
        drop(a);
        rec.finish(self, out, |_, bw| {
            let g = bw.grad().clone();
            smallvec![bw.want(0, || g.clone()), bw.want(1, || g.clone())]
        })
    }

    /// `a *= b` for a `b` without a gradient: no new memory; its backward is that of `mul`.
    pub fn mul_(&self, a: Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("MulBackward0", &[&a, b]);
        if rec.wants(0) {
            rec.save(self, b);
        }
        let whole = self.broadcast(a.shape(), b.shape(), "mul_");
        self.fits(whole == *a.shape(), "mul_", &a, b);
        self.add_in_place(&a, b);
        let out = a.detach();
        drop(a);
        rec.finish(self, out, |t, bw| {
            let (g, b) = (bw.grad(), bw.saved.first());
            let grad = b.map(|b| t.elementwise(g, b, Self::promoted(g, b), "mul backward"));
            smallvec![grad, None]
        })
    }

    /// `torch.min(a, b)` for a `b` without a gradient: its backward is that of [`Tape::maximum`].
    pub fn minimum(&self, a: &Tensor, b: &Tensor) -> Tensor {
        self.maximum(a, b)
    }

    /// `torch.min(a, b)` of which both may have gradients: backward halves the gradient where both are equal, and clears it
    /// where the other is less.
    pub fn lesser(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("MinimumBackward0", &[a, b]);
        rec.save(self, a);
        rec.save(self, b);
        let out = self.elementwise(a, b, Self::promoted(a, b), "minimum");
        rec.finish(self, out, |t, bw| {
            let (g, a) = (bw.grad(), &bw.saved[0]);
            let of_one = || {
                let half = t.empty_like(g, g.dtype(), "minimum backward");
                let equal = t.empty_like(a, DType::Bool, "comparison");
                let grad = t.empty_like(g, g.dtype(), "minimum backward");
                let greater = t.empty_like(a, DType::Bool, "comparison");
                drop((greater, equal, half));
                grad
            };
            smallvec![bw.want(0, of_one), bw.want(1, of_one)]
        })
    }

    /// `torch.expm1(x)`: backward is `grad * (result + 1)`; autocast computes it in fp32.
    pub fn expm1(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let mut rec = self.record("Expm1Backward0", &[x]);
        let out = self.empty_like(x, x.dtype(), "expm1");
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            let shifted = t.empty_like(&bw.saved[0], g.dtype(), "result + 1");
            let out = t.empty_like(g, g.dtype(), "expm1 backward");
            drop(shifted);
            smallvec![Some(out)]
        })
    }

    /// `torch.maximum(a, b)` for a `b` without a gradient: backward halves the gradient where both are equal, and clears it
    /// where `a` is less.
    pub fn maximum(&self, a: &Tensor, b: &Tensor) -> Tensor {
        let mut rec = self.record("MaximumBackward0", &[a, b]);
        rec.save(self, a);
        rec.save(self, b);
        let out = self.elementwise(a, b, Self::promoted(a, b), "maximum");
        rec.finish(self, out, |t, bw| {
            let (g, a) = (bw.grad(), &bw.saved[0]);
            let half = t.empty_like(g, g.dtype(), "maximum backward");
            let equal = t.empty_like(a, DType::Bool, "comparison");
            let grad = t.empty_like(g, g.dtype(), "maximum backward");
            let less = t.empty_like(a, DType::Bool, "comparison");
            drop((less, equal, half));
            smallvec![Some(grad), None]
        })
    }

    /// `x.clamp_min(s)` for a number `s`: backward clears the gradient where `x` is less.
    pub fn clamp_min(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("ClampMinBackward0", &[x]);
        rec.save(self, x);
        let out = self.empty_like(x, x.dtype(), "clamp_min");
        rec.finish(self, out, |t, bw| {
            let (g, x) = (bw.grad(), &bw.saved[0]);
            let zero = t.empty([], g.dtype(), "0");
            let kept = t.empty_like(x, DType::Bool, "comparison");
            let grad = t.empty_like(g, g.dtype(), "clamp_min backward");
            drop((kept, zero));
            smallvec![Some(grad)]
        })
    }

    /// `x * s` or `x / s` for a number `s`.
    pub fn scale(&self, x: &Tensor) -> Tensor {
        self.unary("MulBackward0", x, "mul by a number")
    }

    /// `x *= s` or `x /= s` for a number `s`: no new memory; its backward is that of [`Tape::scale`].
    pub fn scale_(&self, x: Tensor) -> Tensor {
        let rec = self.record("MulBackward0", &[&x]);
        let out = x.detach();
        drop(x);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "mul by a number"))]
        })
    }

    /// `x + s` for a number `s`.
    pub fn shift(&self, x: &Tensor) -> Tensor {
        let rec = self.record("AddBackward0", &[x]);
        let out = self.empty_like(x, x.dtype(), "add a number");
        rec.finish(self, out, |_, bw| smallvec![Some(bw.grad().clone())])
    }

    /// `s - x` for a number `s`.
    pub fn shift_negated(&self, x: &Tensor) -> Tensor {
        self.unary("RsubBackward1", x, "subtract from a number")
    }

    /// `-x`.
    pub fn neg(&self, x: &Tensor) -> Tensor {
        self.unary("NegBackward0", x, "neg")
    }

    /// An operation whose backward needs only the gradient.
    fn unary(&self, node: &'static str, x: &Tensor, name: &'static str) -> Tensor {
        let rec = self.record(node, &[x]);
        let out = self.empty_like(x, x.dtype(), name);
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty_like(bw.grad(), bw.grad().dtype(), name))]
        })
    }

    /// `tanh`, `sigmoid`, `exp`, `rsqrt`-like: backward needs the result, in one operation.
    pub fn unary_of_result(&self, node: &'static str, x: &Tensor, name: &'static str) -> Tensor {
        let mut rec = self.record(node, &[x]);
        let out = self.empty_like(x, x.dtype(), name);
        rec.save(self, &out);
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty_like(bw.grad(), bw.grad().dtype(), name))]
        })
    }

    /// `tanh(x)`.
    pub fn tanh(&self, x: &Tensor) -> Tensor {
        self.unary_of_result("TanhBackward0", x, "tanh")
    }

    /// `exp(x)`; autocast computes it in fp32.
    pub fn exp(&self, x: &Tensor) -> Tensor {
        self.unary_of_result("ExpBackward0", &self.cast_high(x), "exp")
    }

    /// `sigmoid(x)`.
    pub fn sigmoid(&self, x: &Tensor) -> Tensor {
        self.unary_of_result("SigmoidBackward0", x, "sigmoid")
    }

    /// `gelu`, `silu`, `relu`…: backward needs the input, in one fused operation.
    pub fn activation(&self, node: &'static str, x: &Tensor, name: &'static str) -> Tensor {
        let mut rec = self.record(node, &[x]);
        rec.save(self, x);
        let out = self.empty_like(x, x.dtype(), name);
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty_like(bw.grad(), bw.grad().dtype(), name))]
        })
    }

    /// `torch.nn.functional.softplus(x)`; autocast computes it in fp32.
    pub fn softplus(&self, x: &Tensor) -> Tensor {
        self.activation("SoftplusBackward0", &self.cast_high(x), "softplus")
    }

    /// `torch.pow(x, n)` for a number `n`: backward is `grad * (n * x.pow(n - 1))`.
    pub fn pow(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let mut rec = self.record("PowBackward0", &[x]);
        rec.save(self, x);
        let out = self.empty_like(x, x.dtype(), "pow");
        rec.finish(self, out, |t, bw| {
            let x = &bw.saved[0];
            let lower = t.empty_like(x, x.dtype(), "pow backward");
            let scaled = t.empty_like(&lower, x.dtype(), "pow backward");
            let out = t.elementwise(bw.grad(), &scaled, x.dtype(), "pow backward");
            drop((scaled, lower));
            smallvec![Some(out)]
        })
    }

    /// `torch.log(x)`: backward is `grad / x`; autocast computes it in fp32.
    pub fn log(&self, x: &Tensor) -> Tensor {
        self.activation("LogBackward0", &self.cast_high(x), "log")
    }

    /// `torch.sqrt(x)`: backward is `grad / (2 * result)`.
    pub fn sqrt(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("SqrtBackward0", &[x]);
        let out = self.empty_like(x, x.dtype(), "sqrt");
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let (g, result) = (bw.grad(), &bw.saved[0]);
            let twice = t.empty_like(result, result.dtype(), "sqrt backward");
            let out = t.elementwise(g, &twice, g.dtype(), "sqrt backward");
            drop(twice);
            smallvec![Some(out)]
        })
    }

    /// `torch.rsqrt(x)`: backward is `-0.5 * grad * result.pow(3)`.
    pub fn rsqrt(&self, x: &Tensor) -> Tensor {
        let x = &self.cast_high(x);
        let mut rec = self.record("RsqrtBackward0", &[x]);
        let out = self.empty_like(x, x.dtype(), "rsqrt");
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let (g, result) = (bw.grad(), &bw.saved[0]);
            let cube = t.empty_like(result, result.dtype(), "rsqrt backward");
            let half = t.empty_like(g, g.dtype(), "rsqrt backward");
            let out = t.elementwise(&half, &cube, g.dtype(), "rsqrt backward");
            drop((cube, half));
            smallvec![Some(out)]
        })
    }
}
