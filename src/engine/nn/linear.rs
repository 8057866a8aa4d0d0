//! Linear maps.

use std::rc::Rc;

use super::builder::Builder;
use super::lora::LoraSlot;
use crate::tape::{Tape, Tensor};

/// `torch.nn.Linear`.
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
    lora: Option<Rc<LoraSlot>>,
}

impl Linear {
    /// Weight [`output`, `input`] and, if asked, a bias of `output`.
    pub fn new(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [output, input]),
            bias: bias.then(|| b.weight("bias", [output])),
            lora: None,
        })
    }

    /// As [`Linear::new`], for a projection that LoRA adapts.
    pub fn adapted(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        let mut linear = Self::new(b, name, input, output, bias);
        linear.lora = Some(b.tape().scope(name, || b.slot(input, output)));
        linear
    }

    /// A head that shares its weight with the token embedding.
    pub fn tied(b: &Builder, name: &'static str, weight: &Tensor) -> Self {
        b.tape().scope(name, || Self {
            weight: b.tied("weight", weight),
            bias: None,
            lora: None,
        })
    }

    /// As it is, with a bias of `output`.
    pub fn with_bias(mut self, b: &Builder, name: &'static str, output: u64) -> Self {
        self.bias = Some(b.tape().scope(name, || b.weight("bias", [output])));
        self
    }

    /// [.., input] → [.., output].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let base = || t.linear(x, &self.weight, self.bias.as_ref());
        match self.lora.as_ref().and_then(|slot| slot.adapter()) {
            Some(adapter) => adapter.forward(t, x, base),
            None => base(),
        }
    }
}

/// transformers' `Conv1D`: a linear map whose weight is [`input`, `output`].
pub struct Conv1d {
    weight: Tensor,
    bias: Tensor,
}

impl Conv1d {
    /// Weight [`input`, `output`] and a bias of `output`.
    pub fn new(b: &Builder, name: &'static str, input: u64, output: u64) -> Self {
        b.tape().scope(name, || Self {
            weight: b.weight("weight", [input, output]),
            bias: b.weight("bias", [output]),
        })
    }

    /// [.., input] → [.., output].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut shape = *x.shape();
        let last = shape.len() - 1;
        shape[last] = self.weight.size(1);
        let flat = t.view(x, [x.numel() / x.last(), x.last()]);
        let out = t.addmm(&self.bias, &flat, &self.weight);
        drop(flat);
        t.view(&out, shape)
    }
}
