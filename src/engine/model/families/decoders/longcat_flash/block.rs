//! LongCat-Flash's block (`transformers/models/longcat_flash/modeling_longcat_flash.py`).

use std::rc::Rc;

use super::experts::Moe;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::latent::LatentAttention;
use crate::model::decoder::layer::Attend;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::{DecoderConfig, OwnSizes};
use crate::nn::{Builder, Numbered, RmsNorm};
use crate::tape::{Tape, Tensor};

/// `LongcatFlashDecoderLayer`.
pub(crate) struct Layer {
    mlp: Moe,
    self_attn: [Numbered<LatentAttention>; 2],
    mlps: [Numbered<Mlp>; 2],
    input_layernorm: [Numbered<RmsNorm>; 2],
    post_attention_layernorm: [Numbered<RmsNorm>; 2],
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> Self {
        let OwnSizes::Shortcut { intermediate, .. } = c.own else {
            unreachable!("the family has MLPs beside experts")
        };
        let mlp = || Rc::new(Mlp::of(b, [c.hidden, intermediate], false, c.activation));
        let norm = || Rc::new(RmsNorm::of_list(b, c.hidden));
        let norms = |name| [0, 1].map(|i| Numbered::new(b, name, i, norm));
        Self {
            mlp: b.tape().scope("mlp", || Moe::new(b, c)),
            self_attn: [0, 1].map(|i| Numbered::new(b, "self_attn", i, || Rc::new(LatentAttention::new(b, c)))),
            mlps: [0, 1].map(|i| Numbered::new(b, "mlps", i, mlp)),
            input_layernorm: norms("input_layernorm"),
            post_attention_layernorm: norms("post_attention_layernorm"),
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let (mut h, mut _weights) = (x, None);
        let mut parts = None;
        for round in [0, 1] {
            let mut residual = h.clone();
            h = self.input_layernorm[round].call(t, &h);
            (h, _weights) = self.self_attn[round].call(t, shared, h);
            h = t.add(&residual, &h);
            residual = h.clone();
            h = self.post_attention_layernorm[round].call(t, &h);
            let shortcut = parts.unwrap_or_else(|| self.mlp.call(t, &h));
            h = self.mlps[round].call(t, h);
            let sum = t.add(&residual, &h);
            if round == 1 {
                return t.add(&sum, &shortcut);
            }
            h = sum;
            parts = Some(shortcut);
        }
        h
    }
}
