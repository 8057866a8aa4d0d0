//! Convolutions along a sequence by the package causal-conv1d (`causal_conv1d_interface.py`, `csrc/causal_conv1d.cpp` of
//! version 1.7).

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::super::work::{Class, bytes_of};
use crate::dtype::DType;

impl Tape {
    /// `causal_conv1d_fn(x, weight, bias, activation="silu")`, or without an activation: [n, channels, length], weight
    /// [channels, kernel] → the same as `x`, whose type may be another than the weight's. The gradients of all inputs are
    /// computed, whichever are needed.
    pub fn causal_conv1d(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let mut inputs = vec![x, weight];
        inputs.extend(bias);
        let mut rec = self.record("CausalConv1dFnBackward", &inputs);
        let copy = self.readable(x);
        let x = copy.as_ref().unwrap_or(x);
        let mark = self.work_mark();
        let out = self.empty_like(x, x.dtype(), "causal_conv1d");
        let extents = [out.numel() / out.size(1), out.size(1), weight.size(1), 0];
        let bytes = [bytes_of(x) + bytes_of(weight), bytes_of(&out)];
        self.ran_as(mark, ("causal_conv1d", Class::Convolution), x.dtype(), bytes, extents);
        for saved in [Some(x), Some(weight), bias].into_iter().flatten() {
            rec.save(self, saved);
        }
        rec.finish(self, out, move |t, bw| {
            let copy = t.readable(bw.grad());
            let grad = copy.as_ref().unwrap_or_else(|| bw.grad());
            let x = &bw.saved[0];
            let mark = t.work_mark();
            let dx = t.empty_like(x, x.dtype(), "causal_conv1d backward");
            let of_weights = bw.saved[1..]
                .iter()
                .map(|weight| (weight.dtype(), t.wide_zeros(weight)));
            let of_weights: Vec<(DType, Tensor)> = of_weights.collect();
            let has_channels_last = |x: &Tensor| x.strides()[1] == 1 && x.strides()[2] > 1;
            let differs = has_channels_last(x) != (grad.strides()[1] == 1);
            drop(differs.then(|| t.empty(*grad.shape(), grad.dtype(), "contiguous copy")));
            let bytes = [bytes_of(x) + bytes_of(grad), bytes_of(&dx)];
            let kernel = ("causal_conv1d backward", Class::ConvolutionBackward);
            t.ran_as(mark, kernel, x.dtype(), bytes, extents);
            let mut grads = smallvec![bw.want(0, || dx.clone())];
            let narrow = of_weights.into_iter().map(|(dtype, wide)| match dtype {
                DType::F32 => wide,
                dtype => t.to_dtype_raw(&wide, dtype),
            });
            for (i, grad) in narrow.enumerate() {
                grads.push(bw.want(i + 1, || grad));
            }
            grads
        })
    }

    fn wide_zeros(&self, like: &Tensor) -> Tensor {
        self.empty_like(like, DType::F32, "zeros_like")
    }

    /// Copies a tensor in which neither positions nor channels are contiguous.
    fn readable(&self, x: &Tensor) -> Option<Tensor> {
        let readable = x.strides()[1] == 1 || x.strides()[2] == 1;
        (!readable).then(|| self.empty(*x.shape(), x.dtype(), "contiguous copy"))
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::tape::{Gpu, Tape};

    /// The gradient of the weight is summed in fp32, then cast.
    #[test]
    fn gradients_of_weights_are_wide_first() {
        let t = Tape::new(Gpu::H200);
        let x = t.parameter([2, 100, 64], DType::Bf16, "x");
        let weight = t.parameter([64, 4], DType::Bf16, "weight");
        let start = t.mark();
        let out = t.causal_conv1d(&t.transpose(&x, 1, 2), &weight, None);
        t.backward(&out);
        drop((out, x, weight));
        let log = t.finish();
        let made = log.events[start..].iter().filter(|event| event.is_alloc());
        let made: Vec<u64> = made
            .map(|event| log.allocations[event.storage() as usize].bytes)
            .collect();
        let whole = 2 * 2 * 100 * 64;
        assert_eq!(made, [whole, whole, whole, 4 * 64 * 4, 2 * 64 * 4]);
    }
}
