//! AltUp and the MLP of Gemma 3n (`transformers/models/gemma3n/modeling_gemma3n.py`).

use super::config::{Gemma3nTextConfig, MlpForm};
use crate::dtype::DType;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear, PowerRmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Gemma3nTextAltUp`: predicts the hidden states behind a layer, and corrects them by the one that the layer computes.
pub(super) struct AltUp {
    correct_output_scale: Tensor,
    correction_coefs: Linear,
    prediction_coefs: Linear,
    modality_router: Linear,
    router_norm: PowerRmsNorm,
    router_input_scale: Tensor,
    streams: u64,
}

/// `Gemma3nTextMLP`.
pub(super) struct Mlp {
    module: Module,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
    is_sparse: bool,
}

impl AltUp {
    pub fn new(b: &Builder, c: &Gemma3nTextConfig) -> Self {
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        Self {
            correct_output_scale: b.weight("correct_output_scale", [c.hidden]),
            correction_coefs: linear("correction_coefs", c.streams, c.streams),
            prediction_coefs: linear("prediction_coefs", c.streams, c.streams * c.streams),
            modality_router: linear("modality_router", c.hidden, c.streams),
            router_norm: PowerRmsNorm::new(b, "router_norm", c.hidden),
            router_input_scale: b.buffer("router_input_scale", [], b.dtype()),
            streams: c.streams,
        }
    }

    /// `compute_router_modalities`: [batch, seq, hidden] → [batch, seq, streams].
    fn modalities(&self, t: &Tape, x: &Tensor) -> Tensor {
        let inputs = {
            let normed = self.router_norm.call(t, x);
            t.mul(&normed, &self.router_input_scale)
        };
        let routed = self.modality_router.call(t, &inputs);
        let bounded = {
            let wide = t.to_dtype(&routed, DType::F32);
            t.tanh(&wide)
        };
        let out = t.to_dtype(&bounded, x.dtype());
        drop((bounded, routed, inputs));
        out
    }

    /// Hidden states [streams, batch, seq, hidden] → what is predicted of them.
    pub fn predict(&self, t: &Tape, h: &Tensor) -> Tensor {
        let modalities = self.modalities(t, &t.select(h, 0));
        let [batch, seq] = [h.size(1), h.size(2)];
        let coefs = {
            let flat = self.prediction_coefs.call(t, &modalities);
            let square = t.reshape(&flat, [batch, seq, self.streams, self.streams]);
            t.permute(&square, &[0, 1, 3, 2])
        };
        let product = t.matmul(&t.permute(h, &[1, 2, 3, 0]), &coefs);
        let sum = t.add_to_part(product, *h.shape(), h);
        let predictions = t.permute_again(&sum, &[3, 0, 1, 2]);
        drop(sum);
        let out = {
            let dense = t.contiguous(&predictions);
            t.to_dtype(&dense, h.dtype())
        };
        drop((predictions, coefs, modalities));
        out
    }

    /// Predictions [streams, batch, seq, hidden] and the state that the layer computed → corrected hidden states.
    pub fn correct(&self, t: &Tape, predictions: &Tensor, activated: &Tensor) -> Tensor {
        let modalities = self.modalities(t, activated);
        let innovation = {
            let difference = t.sub(activated, &t.select(predictions, 0));
            t.repeat_in_front(&difference, self.streams)
        };
        let mut clamped = None;
        let coefs = {
            let flat = match self.correction_coefs.read_weight(t).filter(|_| t.is_training()) {
                Some(weight) => {
                    let weight = clamped.insert(t.clamp_between(&weight));
                    t.linear(&modalities, weight, None)
                }
                None => self.correction_coefs.call(t, &modalities),
            };
            t.shift(&flat)
        };
        let by_stream = t.unsqueeze(&t.permute(&coefs, &[2, 0, 1]), 3);
        drop(coefs);
        let corrected = t.add_(t.mul(&innovation, &by_stream), predictions);
        let out = t.to_dtype(&t.contiguous(&corrected), activated.dtype());
        drop((corrected, by_stream, clamped, innovation, modalities));
        out
    }

    /// `scale_corrected_output`, which like the other methods does not call the module.
    pub fn scale_corrected(&self, t: &Tape, x: &Tensor) -> Tensor {
        let scaled = {
            let cast = t.to_dtype(x, self.correct_output_scale.dtype());
            t.mul(&cast, &self.correct_output_scale)
        };
        t.to_dtype(&scaled, x.dtype())
    }
}

impl Mlp {
    pub fn new(b: &Builder, c: &Gemma3nTextConfig, form: MlpForm) -> Self {
        Self {
            module: b.module(),
            gate_proj: Linear::adapted(b, "gate_proj", c.hidden, form.width, false),
            up_proj: Linear::adapted(b, "up_proj", c.hidden, form.width, false),
            down_proj: Linear::adapted(b, "down_proj", form.width, c.hidden, false),
            activation: c.activation,
            is_sparse: form.is_sparse,
        }
    }

    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut gate = self.gate_proj.call(t, x);
            if self.is_sparse {
                gate = sparse(t, &gate);
            }
            let activated = nn::activate(t, self.activation, gate.clone());
            let up = self.up_proj.call(t, x);
            let out = {
                let product = t.mul(&activated, &up);
                self.down_proj.call(t, &product)
            };
            drop((up, activated, gate));
            out
        })
    }
}

/// `_gaussian_topk`: clears what is less than so many standard deviations above the mean.
fn sparse(t: &Tape, x: &Tensor) -> Tensor {
    let scalar = |name| t.empty([], DType::F32, name);
    let target = scalar("target sparsity");
    let multiplier = {
        let mut value = scalar("2 × target");
        for name in ["minus 1", "erfinv", "times scale", "times √2", "plus mean"] {
            value = scalar(name);
        }
        t.to_dtype(&value, x.dtype())
    };
    let mean = t.mean_last(x);
    let deviation = t.std_last(x);
    let cutoff = {
        let above = t.mul(&deviation, &multiplier);
        t.add(&mean, &above)
    };
    let out = {
        let rest = t.sub(x, &cutoff);
        nn::activate(t, Activation::Relu, rest)
    };
    drop((cutoff, deviation, mean, multiplier, target));
    out
}
