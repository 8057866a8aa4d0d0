//! Makes a model on the tape, as a setup configures it.

use super::load::{load, load_quantised};
use crate::dtype::DType;
use crate::model::Model;
use crate::model::forward::Forward;
use crate::nn::{Adapters, Attached, Builder, ByName, LigerPatches, Saved, Trained};
use crate::optim::Ema;
use crate::setup::{AdapterType, CAUSAL_CONV1D, Freeze, Loading, SavedType, Setup};
use crate::tape::{Failure, Gpu, Tape, Tensor};

/// The settings that decide how a model is made, such as types of weights and adapters: setups that agree in them can
/// share one model.
#[derive(Debug, PartialEq)]
pub(super) struct ModelSettings {
    trained: Trained,
    adapters: Option<Adapters>,
    saved: Saved,
    ema: bool,
}

impl ModelSettings {
    /// Returns the settings by which a setup makes its model.
    pub fn of(model: &Model, setup: &Setup) -> Self {
        let adapted = setup.freeze.is_adapted();
        Self {
            trained: trained(model, setup),
            adapters: adapted.then(|| adapters(model, setup)),
            saved: saved(setup),
            ema: setup.ema,
        }
    }
}

/// A model on the GPU, and its averaged copy, if any.
pub(super) struct Built {
    pub forward: Box<dyn Forward>,
    pub params: Vec<Tensor>,
    /// Parameters and buffers of modules that the forward never runs: it does not hold them, the model does.
    pub unused: Vec<Tensor>,
    pub ema: Option<Ema>,
}

/// Makes the model, its adapters, and its averaged copy.
pub(super) fn build(tape: &Tape, model: &Model, setup: &Setup) -> Built {
    build_with(tape, model, setup, Builder::params)
}

/// Makes the model, its adapters, and its averaged copy, with parameters in the order of `params`.
pub(super) fn build_with(tape: &Tape, model: &Model, setup: &Setup, params: fn(&Builder) -> Vec<Tensor>) -> Built {
    let settings = ModelSettings::of(model, setup);
    let is_loaded = is_loaded(tape, setup);
    // Weights outside the 4 bits, as embeddings, are loaded in the type of matrix products. `prepare_model_for_kbit_training`
    // widens them to fp32 before adapters are made: parameters are of that type from the start (`set_recast`), but take memory in
    // it only when the builder recasts them.
    let is_widened = is_loaded && settings.trained.frozen == DType::F32 && tape.recast().is_none();
    let products = settings.trained.nf4.filter(|_| is_widened);
    let trained = products.map_or(settings.trained, |products| Trained {
        dtype: products,
        frozen: products,
        ..settings.trained
    });
    if products.is_some() {
        tape.set_recast(Some(DType::F32));
    }
    let builder = Builder::new(tape, trained)
        .by_name(by_name(setup))
        .saving(settings.saved);
    let forward = match is_loaded {
        true => build_loaded(tape, model, &builder, settings.trained.nf4.is_some()),
        false => model.build(&builder),
    };
    if products.is_some() {
        builder.recast();
        tape.set_recast(None);
    }
    if let Some(adapters) = &settings.adapters {
        attach(&builder, adapters, model, setup);
    }
    let ema = settings.ema.then(|| Ema::new(tape, &builder.contents()));
    builder.recast();
    let params = params(&builder);
    let buffers = builder.saved_buffers();
    drop(builder);
    // The forward holds the parameters that it runs with; of the others `params` has the only handle.
    let unused = params.iter().filter(|param| param.is_only_handle()).cloned();
    let unused = unused.chain(buffers).collect();
    Built {
        forward,
        params,
        unused,
        ema,
    }
}

/// Returns true if the model is loaded straight onto the GPU, as TRL's trainers load it from a folder; one of several
/// processes loads it onto the host, from where it is moved. On one GPU weights in 4 bits are loaded unless the setup
/// says otherwise: bitsandbytes quantises them as they arrive.
fn is_loaded(tape: &Tape, setup: &Setup) -> bool {
    let is_loaded = match setup.loading {
        Loading::Usual => setup.trainer.loads_models() || setup.freeze == Freeze::Qlora,
        Loading::Loaded => true,
        Loading::Moved => false,
    };
    is_loaded && !tape.is_in_launch()
}

/// Makes a model and rewrites the log of its construction into that of its loading. No event is sent to who follows the
/// tape before it is final.
fn build_loaded(tape: &Tape, model: &Model, builder: &Builder, is_quantised: bool) -> Box<dyn Forward> {
    tape.pause_follower();
    let from = tape.mark();
    let forward = model.build(builder);
    if is_quantised {
        load_quantised(tape, from, &builder.made());
    } else {
        load(tape, from, &builder.made());
    }
    tape.resume_follower();
    forward
}

/// Attaches adapters; the tape fails if the model has no module for them, or if its routers cannot have any.
fn attach(builder: &Builder, adapters: &Adapters, model: &Model, setup: &Setup) {
    let tape = builder.tape();
    match builder.attach(adapters) {
        Attached::Everywhere => {}
        Attached::Nowhere => tape.fail(|| Failure::NoTargets {
            targets: String::from(setup.lora_targets.clone()),
            model: model.name.clone(),
        }),
        Attached::WithoutRouters => tape.fail(|| Failure::AdaptedRouter {
            model: model.name.clone(),
        }),
    }
}

/// Number of the model's own parameters, tied ones once, as a checkpoint states them.
pub fn parameters(model: &Model) -> u64 {
    let tape = Tape::new(Gpu::default());
    let built = build(&tape, model, &Setup::default());
    built.params.iter().map(elements).sum()
}

/// Numbers of parameters of a model whose linear layers bitsandbytes keeps in 4 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct In4Bits {
    /// Parameters in 4 bits.
    pub packed: u64,
    /// Parameters of the largest linear layer in 4 bits.
    pub largest: u64,
    /// All others.
    pub others: u64,
    /// Those of all others that are vectors, as norms and biases are.
    pub vectors: u64,
}

/// Counts the model's own parameters as bitsandbytes keeps them.
pub fn parameters_in_4_bits(model: &Model) -> In4Bits {
    let tape = Tape::new(Gpu::default());
    let setup = Setup {
        freeze: Freeze::Qlora,
        ..Setup::default()
    };
    let builder = Builder::new(&tape, trained(model, &setup));
    let forward = model.build(&builder);
    let made = builder.made();
    drop(forward);
    let vectors = made.iter().filter(|p| p.dim() == 1 && p.dtype() != DType::U8);
    let vectors = vectors.map(elements).sum();
    let (packed, others): (Vec<&Tensor>, Vec<&Tensor>) = made.iter().partition(|p| p.dtype() == DType::U8);
    In4Bits {
        packed: packed.iter().map(|p| elements(p)).sum(),
        largest: packed.iter().map(|p| elements(p)).max().unwrap_or_default(),
        others: others.iter().map(|p| elements(p)).sum(),
        vectors,
    }
}

/// Parameters that are frozen or trained by their names.
fn by_name(setup: &Setup) -> ByName {
    ByName::new(&setup.frozen_names, &setup.trained_names)
}

/// Modules that are trained in full beside adapters.
fn saved(setup: &Setup) -> Saved {
    if !setup.freeze.is_adapted() {
        return Saved::default();
    }
    Saved {
        names: setup.saved_modules.names().to_vec(),
        dtype: match setup.saved_dtype {
            SavedType::AsWeights => None,
            SavedType::Fp32 => Some(DType::F32),
        },
        under_autocast: setup.precision.autocast().is_some(),
    }
}

/// Patterns of parameters' names that no parameter of a model has.
pub(super) struct UnmatchedNames {
    pub patterns: Vec<String>,
    /// The names of some of its parameters.
    pub known: Vec<String>,
}

/// Patterns of a setup that match no parameter; `None` if all do.
pub(super) fn unmatched_names(model: &Model, setup: &Setup) -> Option<UnmatchedNames> {
    let given = [&setup.frozen_names, &setup.trained_names];
    let saved = saved(setup);
    if given.iter().all(|names| names.is_empty()) && saved.names.is_empty() {
        return None;
    }
    let tape = Tape::new(Gpu::default());
    let builder = Builder::new(&tape, trained(model, &Setup::default())).saving(saved);
    let forward = model.build(&builder);
    let names: Vec<String> = builder.made().iter().map(|param| tape.path_of(param)).collect();
    drop(forward);
    let unmatched = given.iter().flat_map(|given| given.unmatched(&names));
    let patterns: Vec<String> = unmatched.chain(builder.unmatched_saved()).collect();
    // The first, the last and one in between tell how modules are nested.
    let known = [0, names.len() / 2, names.len().saturating_sub(1)];
    let known = known.iter().filter_map(|at| names.get(*at).cloned()).collect();
    (!patterns.is_empty()).then_some(UnmatchedNames { patterns, known })
}

/// Returns the trained parts and the types of weights. Weights that QLoRA does not quantise are widened to fp32
/// (`prepare_model_for_kbit_training`), but by TRL, which leaves them as they are.
fn trained(model: &Model, setup: &Setup) -> Trained {
    let quantised = setup.freeze == Freeze::Qlora;
    let [dtype, frozen] = match quantised && !setup.trainer.is_trl() {
        true => [DType::F32; 2],
        false => [setup.precision.weights(), setup.frozen_dtype()],
    };
    Trained {
        freeze: setup.freeze,
        dtype,
        frozen,
        nf4: quantised.then_some(setup.precision.products()),
        causal_conv1d: setup.packages.packages().contains(&CAUSAL_CONV1D),
        liger: model.liger_patches(setup).unwrap_or(LigerPatches::NOTHING),
    }
}

/// Adapters of a setup.
pub(super) fn adapters(model: &Model, setup: &Setup) -> Adapters {
    Adapters {
        rank: setup.rank,
        dropout: setup.lora_dropout,
        dora: setup.dora,
        dtype: match setup.lora_dtype {
            // TRL casts adapters beside weights in 4 bits.
            AdapterType::Fp32 if setup.freeze == Freeze::Qlora && setup.trainer.is_trl() => DType::Bf16,
            AdapterType::Fp32 => DType::F32,
            // The weights' own type.
            AdapterType::Bf16 if setup.precision.weights() == DType::F16 => DType::F16,
            AdapterType::Bf16 => DType::Bf16,
        },
        places: model.adapter_places(setup),
    }
}

/// Number of weights in a tensor: two per byte if they are packed.
pub(super) fn elements(p: &Tensor) -> u64 {
    let packed = if p.dtype() == DType::U8 { 2 } else { 1 };
    packed * p.numel()
}
