//! Linear layers of DeepSpeed's ZeRO stage 3 (`deepspeed/runtime/zero/linear.py`).

use smallvec::{SmallVec, smallvec};

use super::super::core::Tape;
use super::super::dims::Dims;
use super::super::tensor::Tensor;

impl Tape {
    /// Makes linear layers DeepSpeed's from now on (`LinearFunctionForZeroStage3` in `deepspeed/runtime/zero/linear.py`).
    pub fn set_linear_of_zero3(&self) {
        self.0.linear_of_zero3.set(true);
    }

    /// True if linear layers are DeepSpeed's.
    pub fn has_linear_of_zero3(&self) -> bool {
        self.0.linear_of_zero3.get()
    }

    /// `LinearFunctionForZeroStage3`: keeps input, weight and bias whether a gradient needs them or not, and the weight
    /// itself rather than a view of it, whose memory would outlive its release.
    pub(super) fn linear_of_zero3(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let inputs: SmallVec<[&Tensor; 3]> = [Some(x), Some(weight), bias].into_iter().flatten().collect();
        let mut rec = self.record("LinearFunctionForZeroStage3Backward", &inputs);
        let folds = weight.requires_grad() && self.is_grad_enabled() && x.dim() > 2;
        let out = self.no_grad(|| {
            let columns = self.transpose(weight, 0, 1);
            match bias.filter(|_| x.dim() == 2) {
                Some(bias) => self.addmm(bias, x, &columns),
                // `matmul` folds any matrix beside a trained one.
                None if folds => {
                    let rows = self.reshape(x, flattened(x));
                    self.view(&self.mm(&rows, &columns), with_last(x, weight.size(0)))
                }
                None => self.matmul_cast(x, &columns),
            }
        });
        inputs.iter().for_each(|input| rec.save(self, input));
        let is_trained = weight.requires_grad();
        rec.finish(self, out, move |t, bw| {
            let (g, x, weight) = (bw.grad(), &bw.saved[0], &bw.saved[1]);
            t.no_grad(|| {
                let of_input = bw.want(0, || match is_trained && g.dim() > 2 {
                    // `matmul` folds any matrix beside a trained one.
                    true => t
                        .view(&t.mm(&t.reshape(g, flattened(g)), weight), with_last(g, weight.size(1)))
                        .detach(),
                    false => t.matmul(g, weight).detach(),
                });
                let of_weight = bw.want(1, || {
                    let rows = t.reshape(g, flattened(g));
                    t.matmul(&t.transpose(&rows, 0, 1), &t.reshape(x, flattened(x)))
                });
                let of_bias = bw
                    .saved
                    .get(2)
                    .and_then(|bias| bw.want(2, || t.sum_to(g, bias.shape())));
                let mut grads = smallvec![of_input, of_weight];
                grads.extend(bw.saved.get(2).map(|_| of_bias));
                grads
            })
        })
    }
}

pub(super) fn flattened(x: &Tensor) -> Dims {
    Dims::new(&[x.numel() / x.last().max(1), x.last()])
}

pub(super) fn with_last(x: &Tensor, last: u64) -> Dims {
    let mut shape = *x.shape();
    let d = shape.len() - 1;
    shape[d] = last;
    shape
}
