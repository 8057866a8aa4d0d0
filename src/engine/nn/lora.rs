//! Low-rank adapters as peft makes and runs them (`peft/tuners/lora/layer.py`).

use std::cell::OnceCell;

use crate::dtype::DType;
use crate::setup::{AdapterPlaces, MapPlace};
use crate::tape::{Component, Kind, Module, Tape, Tensor, Why};

/// Names of the two maps of an adapter.
pub(super) const ADAPTER_MAPS: [&str; 2] = ["lora_A.weight", "lora_B.weight"];

/// Settings of the adapters.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapters {
    /// Rank.
    pub rank: u64,
    /// Dropout before the first map.
    pub dropout: f64,
    /// Type of their weights.
    pub dtype: DType,
    /// Linear maps and parameters that get one.
    pub places: AdapterPlaces,
}

/// A projection that an adapter may be put on.
pub(super) struct LoraSlot {
    module: Module,
    /// True for one of the language model's seven projections.
    language: bool,
    input: u64,
    output: u64,
    /// Type of the weight beside it, if that is not the model's.
    dtype: Option<DType>,
    adapter: OnceCell<Lora>,
}

impl LoraSlot {
    pub fn new(module: Module, [input, output]: [u64; 2], language: bool) -> Self {
        Self {
            module,
            language,
            input,
            output,
            dtype: None,
            adapter: OnceCell::new(),
        }
    }

    /// Says the type of the weight beside it.
    pub fn beside(self, dtype: DType) -> Self {
        Self {
            dtype: Some(dtype),
            ..self
        }
    }

    /// Type of the weight beside it, if that is not the model's.
    pub const fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    pub fn adapter(&self) -> Option<&Lora> {
        self.adapter.get()
    }

    /// Dotted path.
    pub fn path(&self, t: &Tape) -> String {
        t.path_of_scope(self.module.made())
    }

    /// Place in the model.
    pub fn place(&self, t: &Tape) -> MapPlace {
        match self.language {
            true => MapPlace::Projection,
            false if t.component_of_scope(self.module.made()) == Component::LanguageModel => MapPlace::LanguageModel,
            false => MapPlace::Elsewhere,
        }
    }

    /// Makes the first (`lora_A.weight`) or second (`lora_B.weight`) map of an adapter.
    pub fn weight(&self, t: &Tape, map: usize, rank: u64, dtype: DType) -> Tensor {
        let shape = match map {
            0 => [rank, self.input],
            _ => [self.output, rank],
        };
        let name = ADAPTER_MAPS[map];
        t.in_scope(self.module.made(), || {
            let weight = t.as_kind(Kind::Weight, || t.parameter(shape, dtype, name));
            weight.storage().classify(Kind::Weight, Why::Adapter);
            weight
        })
    }

    pub fn attach(&self, [a, b]: [Tensor; 2], dropout: f64) {
        let fresh = self.adapter.set(Lora { a, b, dropout }).is_ok();
        debug_assert!(fresh, "adapters are attached once");
    }
}

pub(super) struct Lora {
    a: Tensor,
    b: Tensor,
    dropout: f64,
}

impl Lora {
    /// `result + lora_B(lora_A(dropout(x))) * scaling`, cast back to the type of the base layer.
    pub fn forward(&self, t: &Tape, x: &Tensor, base: impl FnOnce() -> Tensor) -> Tensor {
        let mut result = t.watched("base_layer", base);
        let dtype = result.dtype();
        // `_cast_input_dtype`
        let x = t.to_dtype(x, self.a.dtype());
        let scaled = self.delta(t, &x, Tensor::clone);
        result = t.add(&result, &scaled);
        drop(scaled);
        t.to_dtype(&result, dtype)
    }

    /// Forward beside a map that is split over the GPUs of a group: what `lora_A` makes is summed over them if they share its
    /// inputs, or else its gradient is, as they share the outputs of `lora_B` (`peft/tuners/lora/layer.py`, 0.21).
    pub fn forward_in_part(
        &self,
        t: &Tape,
        x: &Tensor,
        base: impl FnOnce() -> Tensor,
        joined: impl FnOnce(&Tensor) -> Tensor,
    ) -> Tensor {
        let mut result = t.watched("base_layer", base);
        let dtype = result.dtype();
        let x = t.to_dtype(x, self.a.dtype());
        let scaled = self.delta(t, &x, joined);
        result = t.add(&result, &scaled);
        drop(scaled);
        t.to_dtype(&result, dtype)
    }

    /// Forward beside 4-bit weights (`peft/tuners/lora/bnb.py`): the result is cloned first, and types are left to
    /// autocast if it is on.
    pub fn forward_4bit(&self, t: &Tape, x: &Tensor, base: impl FnOnce() -> Tensor) -> Tensor {
        let mut result = t.watched("base_layer", base);
        result = t.clone_of(&result);
        let converts = t.autocast_dtype().is_none();
        let x = if converts {
            t.to_dtype(x, self.a.dtype())
        } else {
            x.clone()
        };
        let mut output = self.delta(t, &x, Tensor::clone);
        if converts {
            output = t.to_dtype(&output, result.dtype());
        }
        result = t.add(&result, &output);
        result
    }

    /// `lora_B(joined(lora_A(dropout(x)))) * scaling`.
    fn delta(&self, t: &Tape, x: &Tensor, joined: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        let dropped = t.watched("lora_dropout", || t.dropout(x, self.dropout));
        let low = t.watched("lora_A", || t.linear(&dropped, &self.a, None));
        drop(dropped);
        let joined = joined(&low);
        drop(low);
        let low = joined;
        let high = t.watched("lora_B", || t.linear(&low, &self.b, None));
        drop(low);
        t.scale(&high)
    }
}
