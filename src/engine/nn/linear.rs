//! Linear maps.

use std::rc::Rc;

use super::builder::Builder;
use super::lora::LoraSlot;
use super::nf4::Nf4;
use crate::tape::{Tape, Tensor};

/// `torch.nn.Linear`.
pub struct Linear {
    weight: Weight,
    bias: Option<Tensor>,
    lora: Option<Rc<LoraSlot>>,
}

enum Weight {
    Dense(Tensor),
    Nf4(Nf4),
}

impl Linear {
    /// Weight [`output`, `input`] and, if asked, a bias of `output`.
    pub fn new(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::make(b, name, [input, output], bias, false)
    }

    /// As [`Linear::new`], for one of a language model's projections that LoRA adapts by default.
    pub fn adapted(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::make(b, name, [input, output], bias, true)
    }

    fn make(b: &Builder, name: &'static str, [input, output]: [u64; 2], bias: bool, language: bool) -> Self {
        b.tape().scope(name, || {
            let (weight, dtype) = match b.nf4(name) {
                Some(compute) => (Weight::Nf4(Nf4::new(b, [output, input], compute)), compute),
                None => (Weight::Dense(b.weight("weight", [output, input])), b.dtype()),
            };
            Self {
                weight,
                bias: bias.then(|| b.weight_of("bias", [output], dtype)),
                lora: Some(b.slot([input, output], language)),
            }
        })
    }

    /// A head that shares its weight with the token embedding.
    pub fn tied(b: &Builder, name: &'static str, weight: &Tensor) -> Self {
        b.tape().scope(name, || Self {
            weight: Weight::Dense(b.tied("weight", weight)),
            bias: None,
            lora: None,
        })
    }

    /// As it is, with a bias of `output`.
    pub fn with_bias(mut self, b: &Builder, name: &'static str, output: u64) -> Self {
        self.bias = Some(b.tape().scope(name, || b.weight("bias", [output])));
        self
    }

    /// The weight [output, input] of a head, which is never kept in 4 bits.
    pub(super) fn head_weight(&self) -> &Tensor {
        match &self.weight {
            Weight::Dense(weight) => weight,
            Weight::Nf4(_) => unreachable!("heads are left out of quantisation"),
        }
    }

    /// [.., input] → [.., output].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let bias = self.bias.as_ref();
        let adapter = self.lora.as_ref().and_then(|slot| slot.adapter());
        match (&self.weight, adapter) {
            (Weight::Dense(weight), None) => t.linear(x, weight, bias),
            (Weight::Dense(weight), Some(adapter)) => adapter.forward(t, x, || t.linear(x, weight, bias)),
            (Weight::Nf4(weight), None) => weight.forward(t, x, bias),
            (Weight::Nf4(weight), Some(adapter)) => adapter.forward_4bit(t, x, || weight.forward(t, x, bias)),
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
