//! SigLIP's attention-pooling head (`transformers/models/siglip/modeling_siglip.py`).

use crate::model::config::{Activation, EncoderShape};
use crate::model::parts::encoder::Mlp;
use crate::nn::{Builder, LayerNorm, MultiheadAttention};
use crate::tape::{Module, Tape, Tensor};

/// `SiglipMultiheadAttentionPoolingHead`.
pub struct PoolingHead {
    module: Module,
    probe: Tensor,
    attention: MultiheadAttention,
    layernorm: LayerNorm,
    mlp: Mlp,
}

impl PoolingHead {
    pub fn new(b: &Builder, shape: EncoderShape, activation: Activation) -> Self {
        b.tape().scope("head", || Self {
            module: b.module(),
            probe: b.weight("probe", [1, 1, shape.hidden]),
            attention: MultiheadAttention::new(b, "attention", shape.hidden, shape.heads),
            layernorm: LayerNorm::new(b, "layernorm", shape.hidden),
            mlp: b.tape().scope("mlp", || Mlp::new(b, shape, activation)),
        })
    }

    /// [images, patches, hidden] → [images, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.call_masked(t, x, || ())
    }

    /// [`Self::call`] with a padding mask, made by `mask`, that marks no padding.
    pub fn call_masked(&self, t: &Tape, x: &Tensor, mask: impl FnOnce()) -> Tensor {
        self.module.call(t, || {
            let probe = t.repeat(&self.probe, x.size(0));
            mask();
            let mut h = self.attention.call(t, &probe, x);
            let residual = h.clone();
            h = self.layernorm.call(t, &h);
            let out = self.mlp.call(t, &h);
            h = t.add(&residual, &out);
            t.select(&h, 1)
        })
    }
}
