//! Functions whose backward transformers writes out (`torch.autograd.Function`), operation by operation.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;

impl Tape {
    /// `GeLUFunction` (`transformers/models/bloom/modeling_bloom.py`): GELU by tanh, whose backward computes tanh again.
    pub fn bloom_gelu(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("GeLUFunctionBackward", &[x]);
        rec.save(self, x);
        let out = self.no_grad(|| {
            let half = self.scale(x);
            let shifted = {
                let tanh = self.bloom_tanh(x);
                self.shift(&tanh)
            };
            self.mul(&half, &shifted)
        });
        rec.finish(self, out, |t, bw| {
            let (g, x) = (bw.grad().clone(), bw.saved[0].clone());
            let out = t.no_grad(|| {
                let tanh = t.bloom_tanh(&x);
                let slope = {
                    let first = t.bloom_slope(&x, &tanh);
                    let second = {
                        let shifted = t.shift(&tanh);
                        t.scale(&shifted)
                    };
                    t.add(&first, &second)
                };
                let out = t.mul(&slope, &g);
                drop((tanh, slope));
                out
            });
            smallvec![Some(out)]
        })
    }

    /// `SqrtBoundDerivative` (`transformers/models/recurrent_gemma/modeling_recurrent_gemma.py`): a square root, whose backward
    /// computes its slope up to a bound.
    pub fn sqrt_of_bound_slope(&self, x: &Tensor) -> Tensor {
        let mut rec = self.record("SqrtBoundDerivativeBackward", &[x]);
        rec.save(self, x);
        let out = self.empty_like(x, x.dtype(), "sqrt");
        rec.finish(self, out, |t, bw| {
            let (g, x) = (bw.grad().clone(), bw.saved[0].clone());
            let out = t.no_grad(|| {
                let clipped = {
                    let scaled = t.scale(&x);
                    t.empty_like(&scaled, x.dtype(), "clip")
                };
                let root = t.empty_like(&clipped, x.dtype(), "sqrt");
                let out = t.div(&g, &root);
                drop((root, clipped));
                out
            });
            smallvec![Some(out)]
        })
    }

    /// `PhimoeMultiplier` (`transformers/models/phimoe/modeling_phimoe.py`): `weight * mask` of each row, [n, 1]. Its backward
    /// gives a gradient to the scores [n, experts] alone, from the probabilities [n, experts] and the chosen expert [n, 1].
    pub fn phimoe_multiplier(
        &self,
        scores: &Tensor,
        weight: &Tensor,
        chosen: &Tensor,
        probabilities: &Tensor,
    ) -> Tensor {
        let mut rec = self.record("PhimoeMultiplierBackward", &[scores, weight, probabilities]);
        for x in [weight, chosen, probabilities] {
            rec.save(self, x);
        }
        let out = self.empty(*weight.shape(), weight.dtype(), "mul");
        rec.finish(self, out, |t, bw| {
            let (g, weight, probabilities) = (bw.grad().clone(), bw.saved[0].clone(), bw.saved[2].clone());
            let expanded = t.no_grad(|| {
                let scaled = t.mul(&g, &weight);
                let negated = t.scale(&scaled);
                let expanded = t.mul(&probabilities, &negated);
                drop((negated, scaled));
                expanded
            });
            smallvec![Some(expanded), None, None]
        })
    }

    /// `AddAuxiliaryLoss` of DeepSeek-V2's own code (`modeling_deepseek.py`): `x` as it is; backward gives the loss of the balance
    /// among experts a gradient of one.
    pub fn add_auxiliary_loss(&self, x: &Tensor, loss: &Tensor) -> Tensor {
        let rec = self.record("AddAuxiliaryLossBackward", &[x, loss]);
        let (out, dtype) = (x.detach(), loss.dtype());
        rec.finish(self, out, move |t, bw| {
            let one = bw.want(1, || t.empty([], dtype, "ones"));
            smallvec![Some(bw.grad().clone()), one]
        })
    }

    /// `apply_rotary_emb` of flash-attn (`flash_attn/layers/rotary.py`): rotates `x` by position in one kernel, forward
    /// and backward, which keeps the cosines and sines.
    pub fn flash_rotary(&self, x: &Tensor, waves: &[Tensor; 2]) -> Tensor {
        let mut rec = self.record("ApplyRotaryEmbBackward", &[x]);
        for wave in waves {
            rec.save(self, wave);
        }
        let out = self.empty_like(x, x.dtype(), "apply_rotary");
        if self.works() {
            self.reads(&out, &[x]);
        }
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "apply_rotary backward"))]
        })
    }

    /// `torch.scatter(x, -1, places, number)`: backward clears the gradient at the places.
    pub fn scatter_number(&self, x: &Tensor, places: &Tensor) -> Tensor {
        let mut rec = self.record("ScatterBackward1", &[x]);
        rec.save(self, places);
        let out = self.empty_like(x, x.dtype(), "scatter");
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "scatter backward"))]
        })
    }

    /// `tanh(0.79788456 * x * (1 + 0.044715 * x * x))`.
    fn bloom_tanh(&self, x: &Tensor) -> Tensor {
        let inner = {
            let straight = self.scale(x);
            let curved = {
                let cubic = self.small_square(x);
                self.shift(&cubic)
            };
            self.mul(&straight, &curved)
        };
        self.tanh(&inner)
    }

    /// A number times `x * x`.
    fn small_square(&self, x: &Tensor) -> Tensor {
        let scaled = self.scale(x);
        self.mul(&scaled, x)
    }

    /// `0.5 * x * ((1 - tanh * tanh) * (0.79788456 + 0.1070322243 * x * x))`.
    fn bloom_slope(&self, x: &Tensor, tanh: &Tensor) -> Tensor {
        let half = self.scale(x);
        let product = {
            let rest = {
                let square = self.mul(tanh, tanh);
                self.shift(&square)
            };
            let curved = {
                let square = self.small_square(x);
                self.shift(&square)
            };
            self.mul(&rest, &curved)
        };
        self.mul(&half, &product)
    }
}
