//! SigLIP's attention-pooling head (`transformers/models/siglip/modeling_siglip.py`).

use crate::model::config::{Activation, EncoderShape};
use crate::nn::{self, Builder, LayerNorm, Linear, MultiheadAttention};
use crate::tape::{Tape, Tensor};

/// `SiglipMultiheadAttentionPoolingHead`.
pub struct PoolingHead {
    probe: Tensor,
    attention: MultiheadAttention,
    layernorm: LayerNorm,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl PoolingHead {
    pub fn new(b: &Builder, shape: EncoderShape, activation: Activation) -> Self {
        let (hidden, intermediate) = (shape.hidden, shape.intermediate);
        b.tape().scope("head", || Self {
            probe: b.weight("probe", [1, 1, hidden]),
            attention: MultiheadAttention::new(b, "attention", hidden, shape.heads),
            layernorm: LayerNorm::new(b, "layernorm", hidden),
            fc1: Linear::new(b, "mlp.fc1", hidden, intermediate, true),
            fc2: Linear::new(b, "mlp.fc2", intermediate, hidden, true),
            activation,
        })
    }

    /// [images, patches, hidden] → [images, hidden].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.forward_masked(t, x, || ())
    }

    /// [`Self::forward`] with a padding mask, made by `mask`, that marks no padding.
    pub fn forward_masked(&self, t: &Tape, x: &Tensor, mask: impl FnOnce()) -> Tensor {
        t.scope("head", || {
            let probe = t.repeat(&self.probe, x.size(0));
            mask();
            let mut h = t.scope("attention", || self.attention.forward(t, &probe, x));
            let residual = h.clone();
            h = t.scope("layernorm", || self.layernorm.forward(t, &h));
            let out = t.scope("mlp", || {
                let inner = t.scope("fc1", || self.fc1.forward(t, &h));
                let inner = nn::activate(t, self.activation, inner);
                t.scope("fc2", || self.fc2.forward(t, &inner))
            });
            h = t.add(&residual, &out);
            t.select(&h, 1)
        })
    }
}
