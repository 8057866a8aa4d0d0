//! Low-rank adapters as peft makes and runs them (`peft/tuners/lora/layer.py`).

use std::cell::OnceCell;

use super::nf4::Nf4;
use crate::dtype::DType;
use crate::setup::{AdapterPlaces, MapPlace};
use crate::tape::dims::Dims;
use crate::tape::{Component, Kind, Module, Tape, Tensor, Why};

/// Names of an adapter's two matrices and, of DoRA, of its magnitudes.
pub(super) const ADAPTER_MAPS: [&str; 3] = ["lora_A.weight", "lora_B.weight", "lora_magnitude_vector.weight"];

/// Settings of the adapters.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapters {
    /// Rank.
    pub rank: u64,
    /// Dropout before the first matrix.
    pub dropout: f64,
    /// Type of their weights.
    pub dtype: DType,
    /// True for DoRA (`use_dora`): the length of each of a weight's rows is trained apart from its direction.
    pub dora: bool,
    /// Linear layers and parameters that get one.
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

    /// Makes the first (`lora_A.weight`) or second (`lora_B.weight`) matrix of an adapter, or DoRA's magnitudes.
    pub fn weight(&self, t: &Tape, map: usize, rank: u64, dtype: DType) -> Tensor {
        let shape: Dims = match map {
            0 => [rank, self.input].into(),
            1 => [self.output, rank].into(),
            _ => [self.output].into(),
        };
        let name = ADAPTER_MAPS[map];
        t.in_scope(self.module.made(), || {
            let weight = t.as_kind(Kind::Weight, || t.parameter(shape, dtype, name));
            weight.storage().classify(Kind::Weight, Why::Adapter);
            weight
        })
    }

    /// Makes the matrices from which DoRA computes its first magnitudes, the lengths of the rows of `weight + scaling * (B @ A)`:
    /// the caller holds them until the magnitudes are made, as Python's names do (`DoraLinearLayer.update_layer` of
    /// `peft/tuners/lora/dora.py`, 0.21). The product is the first use of cuBLAS, whose workspace then lies among the weights.
    pub fn before_magnitudes(&self, t: &Tape, [a, b]: [&Tensor; 2], in_4_bits: bool) -> [Tensor; 2] {
        t.in_scope(self.module.made(), || {
            let matrix = |name| t.empty([self.output, self.input], b.dtype(), name);
            let _in_full = in_4_bits.then(|| matrix("4-bit weight in full"));
            let product = t.mm(&b.detach(), &a.detach());
            let scaled = t.scale(&product);
            let sum = matrix("weight + scaling * (B @ A)");
            drop(scaled);
            [sum, product]
        })
    }

    pub fn attach(&self, maps: &[Tensor], dropout: f64) {
        let [a, b, rest @ ..] = maps else {
            unreachable!("an adapter has two maps")
        };
        let lora = Lora {
            a: a.clone(),
            b: b.clone(),
            magnitude: rest.first().cloned(),
            dropout,
        };
        let fresh = self.adapter.set(lora).is_ok();
        debug_assert!(fresh, "adapters are attached once");
    }
}

pub(super) struct Lora {
    a: Tensor,
    b: Tensor,
    /// DoRA's length of each row of the weight.
    magnitude: Option<Tensor>,
    dropout: f64,
}

/// The linear layer beside an adapter.
#[derive(Clone, Copy)]
pub(super) struct Base<'a> {
    pub weight: BaseWeight<'a>,
    pub bias: Option<&'a Tensor>,
}

/// The weight of a linear layer beside an adapter.
#[derive(Clone, Copy)]
pub(super) enum BaseWeight<'a> {
    Dense(&'a Tensor),
    /// One that is kept in 4 bits.
    Nf4(&'a Nf4),
}

impl BaseWeight<'_> {
    /// `dequantize_module_weight`.
    fn in_full(self, t: &Tape) -> Tensor {
        match self {
            Self::Dense(weight) => weight.detach(),
            Self::Nf4(weight) => weight.in_full(t),
        }
    }
}

impl Lora {
    /// `result + lora_B(lora_A(dropout(x))) * scaling`, cast back to the type of the base layer.
    pub fn forward(&self, t: &Tape, x: &Tensor, base: Base<'_>, product: impl FnOnce() -> Tensor) -> Tensor {
        let mut result = t.watched("base_layer", product);
        let dtype = result.dtype();
        // `_cast_input_dtype`
        let x = t.to_dtype(x, self.a.dtype());
        if let Some(magnitude) = &self.magnitude {
            let sum = self.with_decomposed(t, &x, (base, result), magnitude);
            return t.to_dtype(&sum, dtype);
        }
        let scaled = self.delta(t, &x, Tensor::clone);
        result = t.add(&result, &scaled);
        drop(scaled);
        t.to_dtype(&result, dtype)
    }

    /// Forward beside a layer that is split over the GPUs of a group: what `lora_A` makes is summed over them if they share its
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
    pub fn forward_4bit(&self, t: &Tape, x: &Tensor, base: Base<'_>, product: impl FnOnce() -> Tensor) -> Tensor {
        let mut result = t.watched("base_layer", product);
        result = t.clone_of(&result);
        let converts = t.autocast_dtype().is_none();
        let x = if converts {
            t.to_dtype(x, self.a.dtype())
        } else {
            x.clone()
        };
        if let Some(magnitude) = &self.magnitude {
            let dtype = result.dtype();
            let sum = self.with_decomposed(t, &x, (base, result), magnitude);
            return if converts { t.to_dtype(&sum, dtype) } else { sum };
        }
        let mut output = self.delta(t, &x, Tensor::clone);
        if converts {
            output = t.to_dtype(&output, result.dtype());
        }
        result = t.add(&result, &output);
        result
    }

    /// A layer's result and what DoRA adds to it (`DoraLinearVariant.forward`).
    fn with_decomposed(&self, t: &Tape, x: &Tensor, (base, result): (Base<'_>, Tensor), magnitude: &Tensor) -> Tensor {
        let delta = self.decomposed(t, x, (base, &result), magnitude);
        let sum = t.add(&result, &delta);
        drop(delta);
        sum
    }

    /// Computes what DoRA adds to a layer's result (`DoraLinearLayer.forward` of `peft/tuners/lora/dora.py`, 0.21): the
    /// quotient of each row's trained magnitude and its length, less one, times the result, and the quotient times the
    /// adapter's result.
    ///
    /// The lengths are those of the weight beside the adapter's product, which takes matrices of the weight's size: they and a
    /// square one of the inputs live as long as this call, for Python's names hold them until it returns.
    fn decomposed(&self, t: &Tape, x: &Tensor, (base, result): (Base<'_>, &Tensor), magnitude: &Tensor) -> Tensor {
        // Without dropout peft takes the layer's own result, else the layer runs again.
        let (x, own) = match self.dropout > 0.0 {
            true => (t.watched("lora_dropout", || t.dropout(x, self.dropout)), None),
            false => (x.clone(), Some(result)),
        };
        let inputs = self.a.shape()[1];
        let product = {
            let square = t.empty([inputs, inputs], self.a.dtype(), "eye");
            let low = t.watched("lora_A", || t.linear(&square, &self.a, None));
            let product = t.watched("lora_B", || t.linear(&low, &self.b, None));
            drop((low, square));
            t.to_dtype(&t.transpose(&product, 0, 1), x.dtype())
        };
        let weight = t.to_dtype(&base.weight.in_full(t), x.dtype());
        let lengths = {
            let scaled = t.scale(&product.detach());
            let sum = t.add(&weight, &scaled);
            drop(scaled);
            // Autocast makes norms in fp32.
            t.to_dtype(&t.squeeze(&t.norm_last(&sum), 1), sum.dtype())
        };
        let quotient = t.div(magnitude, &lengths);
        let quotient = t.unsqueeze(&quotient, 0);
        let low = t.watched("lora_A", || t.linear(&x, &self.a, None));
        let high = t.watched("lora_B", || t.linear(&low, &self.b, None));
        drop(low);
        let own = match own {
            Some(own) if let Some(bias) = base.bias => t.sub(own, bias),
            Some(own) => own.clone(),
            None => t.linear(&x, &weight, None),
        };
        let excess = t.shift(&quotient);
        let of_base = t.mul(&excess, &own);
        drop(excess);
        let by_quotient = t.mul(&quotient, &high);
        let of_adapter = t.scale(&by_quotient);
        drop(by_quotient);
        let delta = t.add(&of_base, &of_adapter);
        drop((of_base, of_adapter));
        // The order in which the frame's names are dropped.
        drop((x, own, product, weight, lengths, quotient, high));
        delta
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
