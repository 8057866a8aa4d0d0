//! Parameters that peft puts adapters on by their names: fused weights of experts, and routers
//! (`ParamWrapper` in `peft/tuners/lora/layer.py`).

use std::cell::OnceCell;
use std::rc::Rc;

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Kind, Module, Tape, Tensor, Why};

/// A parameter that an adapter may be put on.
pub struct Wrapped {
    weight: Tensor,
    module: Module,
    name: &'static str,
    /// True if its inputs come before its outputs (`is_transposed`).
    inputs_first: bool,
    adapter: OnceCell<[Tensor; 2]>,
}

impl Wrapped {
    /// Makes a parameter of the module under construction: [experts, outputs, inputs], or [outputs, inputs].
    pub fn new(b: &Builder, name: &'static str, shape: impl Into<Dims>) -> Rc<Self> {
        Self::of(b, name, b.weight(name, shape))
    }

    /// Makes a parameter [experts, inputs, outputs].
    pub fn with_inputs_first(b: &Builder, name: &'static str, shape: impl Into<Dims>) -> Rc<Self> {
        let weight = b.weight(name, shape);
        b.wrappable(Self::here(b, name, weight, true))
    }

    /// Lets adapters be put on a parameter of the module under construction.
    pub fn of(b: &Builder, name: &'static str, weight: Tensor) -> Rc<Self> {
        b.wrappable(Self::here(b, name, weight, false))
    }

    fn here(b: &Builder, name: &'static str, weight: Tensor, inputs_first: bool) -> Self {
        Self {
            weight,
            module: b.module(),
            name,
            inputs_first,
            adapter: OnceCell::new(),
        }
    }

    /// The parameter without its adapter.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// Dotted path.
    pub(super) fn path(&self, t: &Tape) -> String {
        t.path_of_scope(self.module.made()) + "." + self.name
    }

    /// Returns true if the same module has both.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.module.made() == other.module.made()
    }

    /// Makes the first or second matrix of an adapter, which `outside` wrappers of the same module enclose.
    pub(super) fn map(&self, t: &Tape, which: usize, rank: u64, dtype: DType, outside: usize) -> Tensor {
        let shape = self.weight.shape();
        let experts = if shape.len() == 3 { shape[0] } else { 1 };
        let [mut outputs, mut inputs] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        if self.inputs_first {
            (outputs, inputs) = (inputs, outputs);
        }
        let (shape, name) = match (which, outside) {
            (0, 0) => ([rank * experts, inputs], "lora_A.weight"),
            (0, _) => ([rank * experts, inputs], "base_layer.lora_A.weight"),
            (_, 0) => ([outputs, rank * experts], "lora_B.weight"),
            _ => ([outputs, rank * experts], "base_layer.lora_B.weight"),
        };
        t.in_scope(self.module.made(), || {
            let weight = t.as_kind(Kind::Weight, || t.parameter(shape, dtype, name));
            weight.storage().classify(Kind::Weight, Why::Adapter);
            weight
        })
    }

    pub(super) fn attach(&self, maps: &[Tensor]) {
        let [a, b, ..] = maps else {
            unreachable!("an adapter has two maps")
        };
        let fresh = self.adapter.set([a.clone(), b.clone()]).is_ok();
        debug_assert!(fresh, "adapters are attached once");
    }

    /// Registers the adapter as a parametrization for one forward (`_activate_lora`).
    pub fn activate(&self, t: &Tape) -> Active<'_> {
        let update = self.adapter.get().map(|[a, b]| match self.weight.dim() {
            3 => self.factors(t, a, b),
            _ => Update::Whole(delta(t, a, b, self.weight.dtype())),
        });
        if let Some(update) = &update {
            // `register_parametrization` evaluates it once to check its shape and type.
            drop(update.added_to(t, &self.weight));
        }
        Active {
            weight: &self.weight,
            cached: OnceCell::new(),
            update,
        }
    }

    /// `get_delta_factors`.
    fn factors(&self, t: &Tape, a: &Tensor, b: &Tensor) -> Update {
        let experts = self.weight.size(0);
        let a = t.view(a, [experts, a.size(0) / experts, a.last()]);
        let b = t.permute(&t.view(b, [b.size(0), b.last() / experts, experts]), &[2, 0, 1]);
        let [lhs, rhs] = match self.inputs_first {
            true => [t.transpose(&a, 1, 2), t.transpose(&b, 1, 2)],
            false => [b, a],
        };
        let dtype = self.weight.dtype();
        let lhs = t.to_dtype(&lhs, dtype);
        let rhs = t.to_dtype(&rhs, dtype);
        Update::Factors(lhs, rhs)
    }
}

/// `get_delta_weight` of one matrix.
fn delta(t: &Tape, a: &Tensor, b: &Tensor, dtype: DType) -> Tensor {
    let scaled = t.scale(&t.matmul(b, a));
    t.to_dtype(&scaled, dtype)
}

/// What is added to a parameter.
enum Update {
    /// Two factors of it (`_LoraFactorsProxy`).
    Factors(Tensor, Tensor),
    /// A whole tensor (`_LoraParameterProxy`).
    Whole(Tensor),
}

impl Update {
    fn added_to(&self, t: &Tape, weight: &Tensor) -> Tensor {
        match self {
            Self::Factors(lhs, rhs) => t.scaled_baddbmm(weight, lhs, rhs),
            Self::Whole(delta) => t.add(weight, delta),
        }
    }
}

/// A parameter during a forward of its module, with its adapter added when it is first read. Fields are freed in order.
pub struct Active<'a> {
    weight: &'a Tensor,
    cached: OnceCell<Tensor>,
    update: Option<Update>,
}

impl Active<'_> {
    /// The parameter as the module reads it.
    pub fn get(&self, t: &Tape) -> &Tensor {
        match &self.update {
            None => self.weight,
            Some(update) => self.cached.get_or_init(|| update.added_to(t, self.weight)),
        }
    }

    /// Leaves the forward: frees the factors, and returns the tensor that is cached until an enclosing one ends.
    pub fn end(self) -> Option<Tensor> {
        self.cached.into_inner()
    }
}
