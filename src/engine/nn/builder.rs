//! Makes a model's parameters in the order of its constructor.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use regex_lite::Regex;

use super::liger::LigerPatches;
use super::lora::{ADAPTER_MAPS, Adapters, LoraSlot};
use super::wrapped::Wrapped;
use crate::dtype::DType;
use crate::setup::{Freeze, ParameterNames};
use crate::tape::dims::Dims;
use crate::tape::log::ScopeId;
use crate::tape::{Component, Failure, Kind, Module, Tape, Tensor, Why};

/// Trained parameters and their types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained {
    /// Parts that are frozen.
    pub freeze: Freeze,
    /// Type of weights.
    pub dtype: DType,
    /// Type of weights of frozen parts.
    pub frozen: DType,
    /// Type in which 4-bit linear layers are multiplied; `None` if weights are not kept in 4 bits.
    pub nf4: Option<DType>,
    /// True if the package causal-conv1d runs convolutions along a sequence.
    pub causal_conv1d: bool,
    /// Modules whose forward Liger replaces.
    pub liger: LigerPatches,
}

impl Trained {
    const fn trains(self, component: Component) -> bool {
        let frozen = self.freeze.frozen();
        match component {
            Component::VisionTower => !frozen.vision,
            Component::Connector => !frozen.connector,
            Component::LanguageModel | Component::Head | Component::Run => !frozen.language,
        }
    }

    /// Type of the weights of a part of the model.
    const fn dtype_of(self, component: Component) -> DType {
        match self.trains(component) {
            true => self.dtype,
            false => self.frozen,
        }
    }
}

/// Parameters that are frozen or trained by their names, whatever their part of the model is.
#[derive(Debug, Default)]
pub struct ByName {
    frozen: Vec<Regex>,
    trained: Vec<Regex>,
}

impl ByName {
    /// Takes the names of a setup.
    pub fn new(frozen: &ParameterNames, trained: &ParameterNames) -> Self {
        Self {
            frozen: frozen.compiled(),
            trained: trained.compiled(),
        }
    }

    const fn is_empty(&self) -> bool {
        self.frozen.is_empty() && self.trained.is_empty()
    }

    /// Returns whether the parameter of this name is trained, or `None` where no pattern matches it. One that patterns of both
    /// kinds match is trained: tools freeze first and train then (`swift/pipelines/train/tuner.py`, 4.6).
    fn trains(&self, name: &str) -> Option<bool> {
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        match () {
            () if any(&self.trained) => Some(true),
            () if any(&self.frozen) => Some(false),
            () => None,
        }
    }
}

/// Modules that peft copies to train the copies in full beside adapters (`modules_to_save`, `ModulesToSaveWrapper` of
/// `peft/utils/other.py`, 0.21).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Saved {
    /// Their names, or the ends of them.
    pub names: Vec<String>,
    /// Type to which a tool casts the copies; `None` if it leaves them in that of the weights.
    pub dtype: Option<DType>,
    /// True if autocast casts what copies in another type than their inputs are multiplied with.
    pub under_autocast: bool,
}

impl Saved {
    /// The first name with which the dotted path of a module ends, or that of one around it: `norm` is `input_layernorm` too
    /// (`_set_trainable`: `key.endswith(target_key)`).
    fn name_of(&self, path: &str) -> Option<&str> {
        let ends = |name: &str| {
            let around = path.match_indices('.').map(|(dot, _)| &path[..dot]);
            around.chain([path]).any(|path| path.ends_with(name))
        };
        self.names.iter().map(String::as_str).find(|name| ends(name))
    }

    /// Returns true if no adapter is put on the module at this path: its name, or one around it, is one of these as a whole
    /// (`check_target_module_exists`).
    fn leaves_out(&self, path: &str) -> bool {
        let path = format!(".{path}.");
        self.names.iter().any(|name| path.contains(&format!(".{name}.")))
    }
}

/// A parameter or buffer of a module that peft copies: what the module has from its constructor, which is frozen, and the copy that
/// the forward reads. The copy has no memory until [`Builder::attach`].
struct Copied {
    original: Tensor,
    copy: Tensor,
    scope: ScopeId,
    name: &'static str,
    is_parameter: bool,
    is_table: Cell<bool>,
}

/// Success in finding the places of adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    /// All places have one.
    Everywhere,
    /// Routers that peft adapts too are not among the places.
    WithoutRouters,
    /// There is no such place.
    Nowhere,
}

/// A place for an adapter.
#[derive(Clone)]
enum Slot {
    /// A linear layer.
    Map(Rc<LoraSlot>),
    /// A parameter, by its name.
    Parameter(Rc<Wrapped>),
}

/// Makes parameters and keeps the list that the optimizer gets (`model.parameters()`).
pub struct Builder {
    tape: Tape,
    policy: Trained,
    by_name: ByName,
    params: RefCell<Vec<Tensor>>,
    buffers: RefCell<Vec<Tensor>>,
    slots: RefCell<Vec<Slot>>,
    /// Parameters of another type than a library gives them once the model is made.
    recast: RefCell<Vec<(Tensor, &'static str)>>,
    /// True while modules are made that their constructor freezes.
    freezes: Cell<bool>,
    /// What a byte stands for in bitsandbytes, once a weight is quantised.
    byte_values: OnceCell<Tensor>,
    saved: Saved,
    copied: RefCell<Vec<Copied>>,
}

impl Builder {
    /// Makes a builder that writes to `tape`.
    pub fn new(tape: &Tape, policy: Trained) -> Self {
        Self {
            tape: tape.clone(),
            policy,
            by_name: ByName::default(),
            params: RefCell::default(),
            buffers: RefCell::default(),
            slots: RefCell::default(),
            recast: RefCell::default(),
            freezes: Cell::new(false),
            byte_values: OnceCell::new(),
            saved: Saved::default(),
            copied: RefCell::default(),
        }
    }

    /// Copies these modules when adapters are attached.
    pub fn saving(self, saved: Saved) -> Self {
        Self { saved, ..self }
    }

    /// Freezes and trains parameters by their names too.
    pub fn by_name(self, by_name: ByName) -> Self {
        Self { by_name, ..self }
    }

    /// Tape that the builder writes to.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// The module that is being made, which keeps it to enter it when it is called.
    pub fn module(&self) -> Module {
        self.tape.module()
    }

    /// Type of weights of the part of the model that is being made.
    pub fn dtype(&self) -> DType {
        match self.freezes.get() {
            true => self.policy.frozen,
            false => self.policy.dtype_of(self.tape.component_now()),
        }
    }

    /// Type in which a linear layer of this name is multiplied if its weight is kept in 4 bits: transformers excludes the
    /// head (`get_keys_to_not_convert`).
    pub(super) fn nf4(&self, name: &str) -> Option<DType> {
        self.policy.nf4.filter(|_| name != "lm_head")
    }

    /// Returns true if the package causal-conv1d runs convolutions along a sequence. Fails the run if it refuses one of
    /// these sizes, or an activation other than SiLU.
    pub fn has_causal_conv1d(&self, [channels, kernel]: [u64; 2], is_silu: bool) -> bool {
        if self.policy.causal_conv1d && !(channels.is_multiple_of(8) && (2..=4).contains(&kernel) && is_silu) {
            self.tape.fail(|| Failure::CausalConv1d { channels, kernel });
        }
        self.policy.causal_conv1d
    }

    /// Returns true if Liger replaces the function that rotates queries and keys (RoPE) of the module under construction.
    pub fn has_liger_rope(&self) -> bool {
        self.policy.liger.rope(self.tape.component_now())
    }

    /// Returns true if Liger replaces the gated MLP under construction.
    pub fn has_liger_mlp(&self) -> bool {
        self.policy.liger.mlp(self.tape.component_now())
    }

    /// Returns how Liger replaces a norm of this name: true if its backward writes over the incoming gradient. `None` if
    /// it does not.
    pub(super) fn liger_norm(&self, name: &str) -> Option<bool> {
        let liger = &self.policy.liger;
        liger.norm(self.tape.component_now(), name).then_some(liger.in_place)
    }

    /// Makes a parameter of the module under construction.
    pub fn weight(&self, name: &'static str, shape: impl Into<Dims>) -> Tensor {
        self.weight_of(name, shape, self.dtype_of(name))
    }

    /// Type of a weight of the module under construction.
    fn dtype_of(&self, name: &str) -> DType {
        if self.by_name.is_empty() || self.policy.dtype == self.policy.frozen {
            return self.dtype();
        }
        match self.trains(name) {
            true => self.policy.dtype,
            false => self.policy.frozen,
        }
    }

    /// Returns true if a parameter of the module under construction is trained.
    fn trains(&self, name: &str) -> bool {
        let by_part = || self.policy.trains(self.tape.component_now()) && !self.freezes.get();
        if self.by_name.is_empty() {
            return by_part();
        }
        let module = self.tape.path_of_scope(self.tape.scope_id());
        let path = match module.as_str() {
            "" => name.to_owned(),
            module => format!("{module}.{name}"),
        };
        self.by_name.trains(&path).unwrap_or_else(by_part)
    }

    /// Makes a parameter that is never trained (`requires_grad=False`).
    pub fn frozen_weight(&self, name: &'static str, shape: impl Into<Dims>) -> Tensor {
        self.frozen_weight_of(name, shape, self.policy.frozen)
    }

    /// Makes a parameter in the given type that is never trained.
    pub fn frozen_weight_of(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        let tensor = self.made_as(shape, dtype, name);
        tensor.storage().classify(Kind::Weight, Why::Parameter);
        let tensor = self.to_recast(tensor, name);
        self.params.borrow_mut().push(tensor.clone());
        tensor
    }

    /// Makes modules that their constructor freezes if `frozen`.
    pub fn frozen<R>(&self, frozen: bool, make: impl FnOnce() -> R) -> R {
        let before = self.freezes.replace(self.freezes.get() || frozen);
        let made = make();
        self.freezes.set(before);
        made
    }

    /// Makes a parameter by an expression of `before` operations and the last, such as `nn.Parameter(scale *
    /// torch.randn(n))`: each result lives until the next exists. Parameters after it reuse the memory that they free.
    pub fn weight_computed(&self, name: &'static str, shape: impl Into<Dims>, before: usize) -> Tensor {
        let shape = shape.into();
        let mut last = None;
        for _ in 0..before {
            last = Some(self.tape.empty(shape, self.dtype(), "initial values"));
        }
        let weight = self.weight(name, shape);
        drop(last);
        weight
    }

    /// Makes a parameter in the given type.
    pub fn weight_of(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        let tensor = self.made_as(shape, dtype, name);
        tensor.storage().classify(Kind::Weight, Why::Parameter);
        let tensor = self.to_recast(tensor, name);
        if self.is_saved() {
            self.params.borrow_mut().push(tensor.clone());
            return self.copied(&tensor, name, true);
        }
        let tensor = match self.trains(name) {
            true => self.tape.require_grad(&tensor),
            false => tensor,
        };
        self.params.borrow_mut().push(tensor.clone());
        tensor
    }

    /// Makes a tensor of the model that is never trained and not counted as a parameter; the module holds it.
    pub fn buffer(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        let dtype = match self.tape.buffer_type() {
            Some(low) if dtype == DType::F32 => low,
            _ => dtype,
        };
        let tensor = self.tape.as_kind(Kind::Weight, || self.tape.empty(shape, dtype, name));
        tensor.storage().classify(Kind::Weight, Why::Buffer);
        self.buffers.borrow_mut().push(tensor.clone());
        match self.is_saved() {
            true => self.copied(&tensor, name, false),
            false => tensor,
        }
    }

    /// Returns true if peft copies the module under construction.
    fn is_saved(&self) -> bool {
        let path = || self.tape.path_of_scope(self.tape.scope_id());
        !self.saved.names.is_empty() && self.saved.name_of(&path()).is_some()
    }

    /// Fails the run, since a library stops with this error at the copy of a module.
    fn fail_to_save(&self, module: &str, error: &str) {
        self.tape.fail(|| Failure::NotSaved {
            module: module.to_owned(),
            error: error.to_owned(),
        });
    }

    /// Fails the run if peft copies the module under construction, whose weight is in 4 bits.
    pub(super) fn check_saved_in_4_bits(&self) {
        if self.is_saved() {
            let path = self.tape.path_of_scope(self.tape.scope_id());
            self.fail_to_save(
                &path,
                "only Tensors of floating point and complex dtype can require gradients",
            );
        }
    }

    /// Makes the copy of a parameter or buffer of the module under construction, which the module's forward reads from then on.
    fn copied(&self, original: &Tensor, name: &'static str, is_parameter: bool) -> Tensor {
        let dtype = self.saved.dtype.filter(|_| is_parameter).unwrap_or(original.dtype());
        if dtype != original.dtype() && !self.saved.under_autocast {
            let path = self.tape.path_of_scope(self.tape.scope_id());
            self.fail_to_save(&path, "mat1 and mat2 must have the same dtype");
        }
        let empty = self.tape.without_memory(original.shape(), dtype);
        let copy = match is_parameter {
            true => self.tape.require_grad(&empty),
            false => empty,
        };
        self.copied.borrow_mut().push(Copied {
            original: original.clone(),
            copy: copy.clone(),
            scope: self.tape.scope_id(),
            name,
            is_parameter,
            is_table: Cell::new(false),
        });
        copy
    }

    /// Notes that a weight is the table of an `nn.Embedding`, which its copy is too.
    pub(super) fn note_table(&self, weight: &Tensor) {
        self.tape.note_table(weight);
        if let Some(copied) = self.copied.borrow().iter().find(|copied| copied.copy.is(weight)) {
            copied.is_table.set(true);
        }
    }

    /// `copy.deepcopy` of the modules that are saved, in the type of their weights.
    fn make_copies(&self) {
        for copied in &*self.copied.borrow() {
            let place = (copied.scope, copied.name);
            self.tape.give_memory(&copied.copy, copied.original.dtype(), place);
            let kept = if copied.is_parameter {
                &self.params
            } else {
                &self.buffers
            };
            kept.borrow_mut().push(copied.copy.clone());
        }
    }

    /// Casts the copies to the type that the tool trains them in.
    fn cast_copies(&self) {
        for copied in &*self.copied.borrow() {
            if copied.copy.dtype() != copied.original.dtype() {
                self.tape.move_to(&copied.copy, copied.name);
            }
            if copied.is_table.get() {
                self.tape.note_table(&copied.copy);
            }
        }
    }

    /// Buffers of modules that are saved, which their wrappers hold beside the copies.
    pub fn saved_buffers(&self) -> Vec<Tensor> {
        let copied = self.copied.borrow();
        let buffers = copied.iter().filter(|copied| !copied.is_parameter);
        buffers.map(|copied| copied.original.clone()).collect()
    }

    /// Names of modules to save that no module has, as far as they have parameters.
    pub fn unmatched_saved(&self) -> Vec<String> {
        let copied = self.copied.borrow();
        let paths = copied.iter().map(|copied| self.tape.path_of_scope(copied.scope));
        let found: Vec<String> = paths
            .filter_map(|path| self.saved.name_of(&path).map(str::to_owned))
            .collect();
        let is_missing = |name: &&String| !found.contains(name);
        self.saved.names.iter().filter(is_missing).cloned().collect()
    }

    /// The values that a byte stands for in bitsandbytes, made for the first weight.
    pub(super) fn byte_values(&self) -> Tensor {
        let make = || self.buffer("values of a byte", [256], DType::F32);
        self.byte_values.get_or_init(make).clone()
    }

    /// Makes the memory of a parameter of this type, which a wrapper replaces if it is of another.
    fn made_as(&self, shape: impl Into<Dims>, dtype: DType, name: &'static str) -> Tensor {
        let made = self.tape.made_types()[0].filter(|_| dtype.is_half());
        let tensor = self
            .tape
            .as_kind(Kind::Weight, || self.tape.empty(shape, made.unwrap_or(dtype), name));
        match made {
            Some(_) => self.gathered_as(&tensor, dtype, name),
            None => tensor,
        }
    }

    /// A parameter in the type that a library gathers it in, or casts it to.
    fn gathered_as(&self, tensor: &Tensor, dtype: DType, name: &'static str) -> Tensor {
        let gathered = self.tape.empty_to_recast(tensor, dtype);
        if self.tape.recast().is_some() {
            self.recast.borrow_mut().push((gathered.clone(), name));
        }
        gathered
    }

    /// Returns a parameter as it is once a library has given it another type, which it does in [`Self::recast`].
    fn to_recast(&self, tensor: Tensor, name: &'static str) -> Tensor {
        let other = |dtype: &DType| tensor.dtype().is_float() && *dtype != tensor.dtype();
        let Some(dtype) = self.tape.recast().filter(other) else {
            return tensor;
        };
        let cast = self.tape.empty_to_recast(&tensor, dtype);
        self.recast.borrow_mut().push((cast.clone(), name));
        cast
    }

    /// Gives parameters the type that a library wants, one after the other.
    pub fn recast(&self) {
        for (tensor, name) in self.recast.borrow_mut().drain(..) {
            self.tape.move_to(&tensor, name);
        }
    }

    /// Gives the parameter that was made last other memory (`param.data = …`).
    pub(super) fn set_data(&self, data: &Tensor) {
        if let Some(last) = self.params.borrow_mut().last_mut() {
            *last = data.clone();
        }
    }

    /// Makes a head as the constructor does, then replaces it by the weight that it shares.
    pub fn tied(&self, name: &'static str, weight: &Tensor) -> Tensor {
        if self.tape.is_wrapped_apart(weight) {
            return self.weight(name, *weight.shape());
        }
        // peft copies the module that is named: the other one keeps the frozen weight, or has a copy of its own.
        let original = {
            let copied = self.copied.borrow();
            let of_copy = copied.iter().find(|copied| copied.copy.is(weight));
            of_copy.map_or_else(|| weight.clone(), |copied| copied.original.clone())
        };
        drop(self.made_as(*weight.shape(), original.dtype(), name));
        self.tape.note_tie(&original);
        match self.is_saved() {
            true => self.copied(&original, name, true),
            false => original,
        }
    }

    /// Makes modules whose constructors run before those of others that come before them in `parameters()`.
    pub fn early<A, B>(&self, early: impl FnOnce() -> A, others: impl FnOnce() -> B) -> (A, B) {
        let start = self.params.borrow().len();
        let early = early();
        let made = self.params.borrow().len() - start;
        let others = others();
        self.params.borrow_mut()[start..].rotate_left(made);
        (early, others)
    }

    pub(super) fn slot(&self, module: Module, shape: [u64; 2], language: bool) -> Rc<LoraSlot> {
        self.pushed(LoraSlot::new(module, shape, language))
    }

    /// Makes the slot of a linear layer whose weight has a type of its own.
    pub(super) fn slot_in(&self, module: Module, shape: [u64; 2], dtype: DType) -> Rc<LoraSlot> {
        self.pushed(LoraSlot::new(module, shape, false).beside(dtype))
    }

    fn pushed(&self, slot: LoraSlot) -> Rc<LoraSlot> {
        let slot = Rc::new(slot);
        self.slots.borrow_mut().push(Slot::Map(slot.clone()));
        slot
    }

    /// Lets adapters be put on a parameter by its name.
    pub(super) fn wrappable(&self, parameter: Wrapped) -> Rc<Wrapped> {
        let parameter = Rc::new(parameter);
        self.slots.borrow_mut().push(Slot::Parameter(parameter.clone()));
        parameter
    }

    /// `get_peft_model`: makes adapters for every linear layer and parameter that the targets name.
    ///
    /// peft makes those of linear layers first, in the type of the weights beside them; then `cast_adapter_dtype` remakes
    /// the 16-bit ones in fp32, one by one, and a user who wants another type casts again. The memory that this frees is
    /// cached when training begins.
    pub fn attach(&self, adapters: &Adapters) -> Attached {
        let slots = self.slots.borrow();
        let found: Vec<Found<'_>> = self.targets(&slots, adapters);
        let attached = self.attached(&found, adapters);
        let [of_weights, of_adapters] = self.tape.made_types();
        // Beside a weight in 4 bits, which has no floating-point type, they stay as `nn.Linear` makes them.
        let beside = self.policy.nf4.map_or(self.policy.frozen, |_| DType::F32);
        let mut made: Vec<Vec<Tensor>> = vec![Vec::new(); found.len()];
        for parameters in [false, true] {
            for (target, maps) in found.iter().zip(&mut made) {
                if matches!(target.slot, Slot::Parameter(_)) == parameters {
                    let dtype = of_weights.unwrap_or_else(|| target.dtype(beside));
                    maps.extend([0, 1].map(|map| target.map(&self.tape, map, dtype)));
                    if let (Slot::Map(slot), true) = (target.slot, adapters.dora) {
                        let before =
                            slot.before_magnitudes(&self.tape, [&maps[0], &maps[1]], self.policy.nf4.is_some());
                        maps.push(target.map(&self.tape, 2, dtype));
                        drop(before);
                    }
                }
            }
        }
        self.make_copies();
        for next in [DType::F32, of_adapters.unwrap_or(adapters.dtype)] {
            for (target, maps) in found.iter().zip(&mut made) {
                for (map, tensor) in maps.iter_mut().enumerate().filter(|(_, tensor)| tensor.dtype() != next) {
                    *tensor = target.map(&self.tape, map, next);
                }
            }
        }
        self.cast_copies();
        if of_adapters.is_some() {
            for maps in &mut made {
                // Their paths say which module each is of, by which DeepSpeed gathers them.
                for (tensor, name) in maps.iter_mut().zip(ADAPTER_MAPS) {
                    let gathered = self.gathered_as(tensor, adapters.dtype, name);
                    *tensor = self.tape.require_grad(&gathered);
                }
            }
        }
        for (target, maps) in found.iter().zip(made) {
            self.params.borrow_mut().extend(maps.clone());
            match target.slot {
                Slot::Map(slot) => slot.attach(&maps, adapters.dropout),
                Slot::Parameter(parameter) => parameter.attach(&maps),
            }
        }
        attached
    }

    fn attached(&self, found: &[Found<'_>], adapters: &Adapters) -> Attached {
        let count = |name: &str| {
            let paths = found.iter().map(|found| match found.slot {
                Slot::Parameter(parameter) => parameter.path(&self.tape),
                Slot::Map(map) => map.path(&self.tape),
            });
            paths.filter(|path| path.ends_with(name)).count()
        };
        // HunYuan's router is a linear layer inside its gate.
        let routers = count(".gate.weight") + count(".gate.wg");
        match found.len() {
            0 => Attached::Nowhere,
            _ if adapters.places.take_routers() && routers < count(".gate_up_proj") => Attached::WithoutRouters,
            _ => Attached::Everywhere,
        }
    }

    /// Places that the targets name, in the order of modules.
    fn targets<'a>(&self, slots: &'a [Slot], adapters: &Adapters) -> Vec<Found<'a>> {
        let t = &self.tape;
        let maps = slots.iter().filter_map(|slot| match slot {
            Slot::Map(map) => Some(map.path(t)),
            Slot::Parameter(_) => None,
        });
        let names = adapters.places.parameters(&maps.collect::<Vec<String>>());
        let mut found: Vec<Found<'_>> = Vec::new();
        for slot in slots {
            let path = match slot {
                Slot::Map(map) => map.path(t),
                Slot::Parameter(parameter) => parameter.path(t),
            };
            if self.saved.leaves_out(&path) {
                continue;
            }
            let times = match slot {
                Slot::Map(map) => adapters.places.take_map(&path, map.place(t)).then_some(1),
                Slot::Parameter(_) => names.times_of(&path),
            };
            let Some(times) = times else { continue };
            if self.saved.name_of(&path).is_some() {
                self.fail_to_save(
                    &path,
                    "modules_to_save cannot be applied to modules of type lora.Linear",
                );
            }
            if let Slot::Parameter(parameter) = slot {
                // A module's later parameters are wrapped around its earlier ones.
                let beside =
                    |found: &&mut Found<'_>| matches!(found.slot, Slot::Parameter(other) if other.is_beside(parameter));
                found.iter_mut().filter(beside).for_each(|found| found.outside += 1);
            }
            found.push(Found {
                slot,
                rank: adapters.rank * times,
                outside: 0,
            });
        }
        found
    }

    /// All tensors of the module: parameters, then buffers.
    pub fn contents(&self) -> Vec<Tensor> {
        let mut all = self.params();
        all.extend(self.buffers.borrow().iter().cloned());
        all
    }

    /// All parameters, each once, in the order in which they were made.
    pub fn made(&self) -> Vec<Tensor> {
        self.params.borrow().clone()
    }

    /// All parameters, each once, in the order of `model.parameters()`: a module's own come before those of its
    /// children, whichever were made first.
    pub fn params(&self) -> Vec<Tensor> {
        let mut root = Node::default();
        for param in &*self.params.borrow() {
            root.place(&self.tape.path_of(param), param);
        }
        let mut ordered = Vec::new();
        root.collect(&mut ordered);
        ordered
    }
}

/// A place that gets an adapter.
struct Found<'a> {
    slot: &'a Slot,
    rank: u64,
    /// Wrappers of the same module around this one.
    outside: usize,
}

impl Found<'_> {
    /// Makes the first or second matrix, or, of a linear layer, DoRA's magnitudes.
    fn map(&self, t: &Tape, which: usize, dtype: DType) -> Tensor {
        match self.slot {
            Slot::Map(slot) => slot.weight(t, which, self.rank, dtype),
            Slot::Parameter(parameter) => parameter.map(t, which, self.rank, dtype, self.outside),
        }
    }

    /// Type in which peft makes the adapter first, on a model of this type.
    fn dtype(&self, model: DType) -> DType {
        match self.slot {
            Slot::Map(slot) => slot.dtype().unwrap_or(model),
            Slot::Parameter(parameter) => parameter.weight().dtype(),
        }
    }
}

/// A module with its parameters, as `named_parameters` walks it.
#[derive(Default)]
struct Node {
    own: Vec<Tensor>,
    children: Vec<(String, Self)>,
}

impl Node {
    /// Inserts a parameter at its dotted path.
    fn place(&mut self, path: &str, param: &Tensor) {
        let Some((child, rest)) = path.split_once('.') else {
            return self.own.push(param.clone());
        };
        let known = self.children.iter().rposition(|(name, _)| name == child);
        let at = known.unwrap_or_else(|| {
            self.children.push((child.to_owned(), Self::default()));
            self.children.len() - 1
        });
        self.children[at].1.place(rest, param);
    }

    fn collect(self, into: &mut Vec<Tensor>) {
        into.extend(self.own);
        for (_, child) in self.children {
            child.collect(into);
        }
    }
}
