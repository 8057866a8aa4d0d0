//! Linear layers.

use std::cell::RefCell;
use std::rc::Rc;

use super::builder::Builder;
use super::lora::{Base, BaseWeight, LoraSlot};
use super::nf4::Nf4;
use super::wrapped::Wrapped;
use crate::dtype::DType;
use crate::tape::{Failure, Kind, Module, Tape, Tensor, Why};

/// `torch.nn.Linear`.
pub struct Linear {
    module: Module,
    weight: Weight,
    /// Bias; beside a 4-bit weight, it is cast to the type of products on first use.
    bias: RefCell<Option<Tensor>>,
    lora: Option<Rc<LoraSlot>>,
    split: Split,
}

/// Split of a linear layer between the GPUs of a group (`transformers/distributed/tensor_parallel.py`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    /// Each has all of it.
    Whole,
    /// Each has some outputs (`colwise`).
    Columns,
    /// Each has some outputs, which are gathered (`colwise_gather_output`).
    Gathered,
    /// Each has some inputs, and the outputs are summed (`rowwise`).
    Rows,
}

enum Weight {
    Dense(Tensor),
    /// One on which peft puts adapters by its name.
    Wrapped(Rc<Wrapped>),
    Nf4(Nf4),
}

impl Linear {
    /// Makes a layer with a weight [`output`, `input`] and, if `bias`, a bias of `output`.
    pub fn new(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::make(b, name, [input, output], bias, false)
    }

    /// Makes a layer with a bias as the module under construction itself, such as an element of a list.
    pub fn unnamed(b: &Builder, input: u64, output: u64) -> Self {
        Self::here(b, "", [input, output], true, false)
    }

    /// Makes a layer without a bias as the module under construction itself, an element of a list.
    pub fn of_list(b: &Builder, input: u64, output: u64) -> Self {
        Self::here(b, "", [input, output], false, false)
    }

    /// Makes a head whose weight is its own, by another name than `lm_head`: neither kept in 4 bits nor adapted.
    pub fn head(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Weight::Dense(b.weight("weight", [output, input])),
            bias: RefCell::new(bias.then(|| b.weight("bias", [output]))),
            lora: None,
            split: Split::Whole,
        })
    }

    /// Makes a layer without a bias on whose weight peft puts adapters by its name.
    pub fn wrapped(b: &Builder, name: &'static str, input: u64, output: u64) -> Self {
        if b.nf4(name).is_some() {
            return Self::new(b, name, input, output, false);
        }
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Weight::Wrapped(Wrapped::new(b, "weight", [output, input])),
            bias: RefCell::default(),
            lora: None,
            split: Split::Whole,
        })
    }

    /// Makes a layer without a bias whose weight is in fp32 whatever the model's type, unless it is kept in 4 bits.
    pub fn in_f32(b: &Builder, name: &'static str, input: u64, output: u64) -> Self {
        if b.nf4(name).is_some() {
            return Self::new(b, name, input, output, false);
        }
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Weight::Dense(b.weight_of("weight", [output, input], DType::F32)),
            bias: RefCell::default(),
            lora: Some(b.slot_in(b.module(), [input, output], DType::F32)),
            split: Split::Whole,
        })
    }

    /// Makes one of a language model's projections that LoRA adapts by default.
    pub fn adapted(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::make(b, name, [input, output], bias, true)
    }

    /// Makes a projection that LoRA adapts by default, with its outputs split over the GPUs of a group (`colwise`).
    pub fn columns(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::adapted(b, name, input, output / b.tape().group(), bias).split(b, Split::Columns)
    }

    /// Makes a projection that LoRA adapts by default, with its inputs split over the GPUs of a group (`rowwise`).
    pub fn rows(b: &Builder, name: &'static str, input: u64, output: u64, bias: bool) -> Self {
        Self::adapted(b, name, input / b.tape().group(), output, bias).split(b, Split::Rows)
    }

    /// Makes a head whose outputs are split over the GPUs of a group and gathered (`colwise_gather_output`).
    pub fn gathered(b: &Builder, name: &'static str, input: u64, output: u64) -> Self {
        Self::new(b, name, input, output / b.tape().group(), false).split(b, Split::Gathered)
    }

    /// Makes a head that shares its weight with the token embedding, with its outputs split over the GPUs of a group
    /// and gathered.
    pub fn gathered_tied(b: &Builder, name: &'static str, weight: &Tensor) -> Self {
        Self::tied(b, name, weight).split(b, Split::Gathered)
    }

    fn split(self, b: &Builder, split: Split) -> Self {
        let split = if b.tape().group() > 1 { split } else { Split::Whole };
        Self { split, ..self }
    }

    fn make(b: &Builder, name: &'static str, widths: [u64; 2], bias: bool, language: bool) -> Self {
        b.tape().scope(name, || Self::here(b, name, widths, bias, language))
    }

    fn here(b: &Builder, name: &'static str, [input, output]: [u64; 2], bias: bool, language: bool) -> Self {
        let weight = match b.nf4(name) {
            Some(compute) => {
                b.check_saved_in_4_bits();
                Weight::Nf4(Nf4::new(b, [output, input], compute))
            }
            None => Weight::Dense(b.weight("weight", [output, input])),
        };
        let linear = Self {
            module: b.module(),
            weight,
            bias: RefCell::new(bias.then(|| b.weight("bias", [output]))),
            lora: Some(b.slot(b.module(), [input, output], language)),
            split: Split::Whole,
        };
        if b.tape().is_settled() {
            linear.cast_bias(b.tape());
            if let Some(bias) = &*linear.bias.borrow() {
                b.set_data(bias);
            }
        }
        linear
    }

    /// Makes a head that shares its weight with the token embedding.
    pub fn tied(b: &Builder, name: &'static str, weight: &Tensor) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: Weight::Dense(b.tied("weight", weight)),
            bias: RefCell::default(),
            lora: None,
            split: Split::Whole,
        })
    }

    /// Makes a layer without a bias of a weight [output, input] that is there.
    pub fn sharing(name: &'static str, weight: &Tensor) -> Self {
        Self {
            module: Module::without_parameters(name),
            weight: Weight::Dense(weight.clone()),
            bias: RefCell::default(),
            lora: None,
            split: Split::Whole,
        }
    }

    /// Takes another weight [output, input] in place of its own.
    pub fn share_weight(&mut self, weight: &Tensor) {
        self.weight = Weight::Dense(weight.clone());
    }

    /// Adds a bias of `output`.
    pub fn with_bias(self, b: &Builder, name: &'static str, output: u64) -> Self {
        let bias = b.tape().scope(name, || b.weight("bias", [output]));
        self.bias.replace(Some(bias));
        self
    }

    /// The bias in fp32, if there is one.
    pub fn float_bias(&self, t: &Tape) -> Option<Tensor> {
        self.bias.borrow().as_ref().map(|bias| t.to_dtype(bias, DType::F32))
    }

    /// Adds a bias that another module holds.
    pub fn sharing_bias(self, bias: &Tensor) -> Self {
        self.bias.replace(Some(bias.clone()));
        self
    }

    /// The weight [output, input] of a head, which is never kept in 4 bits.
    pub(super) fn head_weight(&self) -> &Tensor {
        match &self.weight {
            Weight::Dense(weight) => weight,
            Weight::Wrapped(_) | Weight::Nf4(_) => unreachable!("heads are left out of both"),
        }
    }

    /// The weight [output, input], for a model that reads it itself; none, and the run fails, if it is in 4 bits or has a
    /// parametrisation.
    pub fn read_weight(&self, t: &Tape) -> Option<Tensor> {
        match &self.weight {
            Weight::Dense(weight) => Some(weight.clone()),
            Weight::Wrapped(_) | Weight::Nf4(_) => {
                t.fail(|| Failure::WeightRead);
                None
            }
        }
    }

    /// The bias of a head.
    pub(super) fn head_bias(&self) -> Option<Tensor> {
        self.bias.borrow().clone()
    }

    /// [.., input] → [.., output].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, x))
    }

    /// True if the result for inputs of three dimensions is a view: that of one product with a bias.
    pub fn gives_view(&self, t: &Tape) -> bool {
        let adapter = self.lora.as_ref().and_then(|slot| slot.adapter());
        let plain = matches!(self.weight, Weight::Dense(_)) && adapter.is_none();
        plain && self.bias.borrow().is_some() && !t.has_linear_of_zero3()
    }

    /// [.., input] → [.., output], which a hook on the module replaces.
    pub fn call_hooked(&self, t: &Tape, x: &Tensor, hook: impl FnOnce(Tensor) -> Tensor) -> Tensor {
        self.module.call(t, || hook(self.forward(t, x)))
    }

    /// [.., input] → [.., output], for a caller that has entered the module by another path than it was made.
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let adapter = self.lora.as_ref().and_then(|slot| slot.adapter());
        let adapter = adapter.filter(|_| t.adapts());
        match self.split {
            Split::Whole => self.multiplied(t, x),
            Split::Columns if let Some(adapter) = adapter => {
                adapter.forward_in_part(t, x, || self.product(t, &t.share(x)), |low| t.share(low))
            }
            Split::Rows if let Some(adapter) = adapter => {
                let base = || t.sum_partials(&self.product(t, x));
                adapter.forward_in_part(t, x, base, |low| t.sum_partials(low))
            }
            Split::Columns => self.multiplied(t, &t.share(x)),
            Split::Gathered => {
                let part = self.multiplied(t, &t.share(x));
                t.gather_shards(&part)
            }
            Split::Rows => {
                let part = self.multiplied(t, x);
                t.sum_partials(&part)
            }
        }
    }

    /// The product with the weight, and the bias, without adapters.
    fn product(&self, t: &Tape, x: &Tensor) -> Tensor {
        match &self.weight {
            Weight::Dense(weight) => t.linear(x, weight, self.bias.borrow().as_ref()),
            Weight::Wrapped(_) | Weight::Nf4(_) => self.multiplied(t, x),
        }
    }

    fn multiplied(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.cast_bias(t);
        let bias = self.bias.borrow();
        let bias = bias.as_ref();
        let adapter = self.lora.as_ref().and_then(|slot| slot.adapter());
        let adapter = adapter.filter(|_| t.adapts());
        match (&self.weight, adapter) {
            (Weight::Dense(weight), None) => t.linear(x, weight, bias),
            (Weight::Dense(weight), Some(adapter)) => {
                let base = Base {
                    weight: BaseWeight::Dense(weight),
                    bias,
                };
                adapter.forward(t, x, base, || t.linear(x, weight, bias))
            }
            (Weight::Wrapped(weight), _) => {
                let weight = weight.activate(t);
                t.linear(x, weight.get(t), bias)
            }
            (Weight::Nf4(weight), None) => weight.forward(t, x, bias),
            (Weight::Nf4(weight), Some(adapter)) => {
                let base = Base {
                    weight: BaseWeight::Nf4(weight),
                    bias,
                };
                adapter.forward_4bit(t, x, base, || weight.forward(t, x, bias))
            }
        }
    }
}

impl Linear {
    /// `FalconLinear.forward`: the product, and then the bias in an operation of its own.
    pub fn call_apart(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || self.multiplied_apart(t, x))
    }

    fn multiplied_apart(&self, t: &Tape, x: &Tensor) -> Tensor {
        let Weight::Dense(weight) = &self.weight else {
            return self.multiplied(t, x);
        };
        let bias = self.bias.borrow();
        let apart = || {
            let product = t.matmul(x, &t.transpose(weight, 0, 1));
            match &*bias {
                Some(bias) => t.add(&product, bias),
                None => product,
            }
        };
        match self.lora.as_ref().and_then(|slot| slot.adapter()) {
            Some(adapter) => {
                let base = Base {
                    weight: BaseWeight::Dense(weight),
                    bias: bias.as_ref(),
                };
                adapter.forward(t, x, base, apart)
            }
            None => apart(),
        }
    }

    /// `bias.data = bias.data.to(x.dtype)` of `Linear4bit`.
    fn cast_bias(&self, t: &Tape) {
        let Weight::Nf4(weight) = &self.weight else { return };
        let dtype = weight.compute();
        let mut bias = self.bias.borrow_mut();
        if let Some(held) = bias.as_ref().filter(|held| held.dtype() != dtype) {
            let cast = t.first_only(|| t.as_kind(Kind::Weight, || t.empty_like(held, dtype, "bias")));
            cast.storage().classify(Kind::Weight, Why::Parameter);
            *bias = Some(cast);
        }
    }
}

/// transformers' `Conv1D`: a linear layer whose weight is [`input`, `output`].
pub struct Conv1d {
    module: Module,
    weight: Tensor,
    bias: Tensor,
}

impl Conv1d {
    /// Makes a weight [`input`, `output`] and a bias of `output`.
    pub fn new(b: &Builder, name: &'static str, input: u64, output: u64) -> Self {
        b.tape().scope(name, || Self {
            module: b.module(),
            weight: b.weight("weight", [input, output]),
            bias: b.weight("bias", [output]),
        })
    }

    /// [.., input] → [.., output].
    ///
    /// GPT-2's are not told apart from the modules around them unless a library asks.
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call_if_watched(t, || {
            let mut shape = *x.shape();
            let last = shape.len() - 1;
            shape[last] = self.weight.size(1);
            let flat = t.view(x, [x.numel() / x.last().max(1), x.last()]);
            let out = t.addmm(&self.bias, &flat, &self.weight);
            drop(flat);
            t.view(&out, shape)
        })
    }
}
