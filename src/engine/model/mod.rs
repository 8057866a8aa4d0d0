//! Models: turns a Hugging Face `config.json` into modules whose forward runs on the tape.

pub(crate) mod answers;
mod architectures;
mod build;
mod case;
mod catalogue;
pub mod config;
pub mod decoder;
mod error;
mod facts;
pub mod families;
pub(crate) mod family;
pub(crate) mod forward;
mod hidden_size;
mod images;
mod lazy;
pub(crate) mod libraries;
mod liger;
mod needs;
mod no_split;
mod overrides;
pub mod parts;
mod positions;
mod quantised;
mod reading;
mod run;
mod stops;
mod takes;

use serde_json::{Map, Value};

use crate::dtype::DType;
use crate::nn::LigerPatches;
use crate::python_json;
use crate::setup::{AdapterPlaces, Freeze, Setup};
use crate::suggest::suggest;
use answers::Fidelity;
pub use answers::{Size, Sizes};
pub use case::{Case, CaseError};
pub use catalogue::hub_id;
pub use config::ClassDefaults;
pub use error::ModelError;
use facts::UseCache;
pub use families::ModelConfig;
pub use lazy::{LazyGroup, LazyModels};
use libraries::Liger;
pub use libraries::NoFlash;
pub use quantised::Stored;
pub use takes::Takes;

/// A model whose training step can be simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Catalogue name, or `model_type` for a pasted configuration.
    pub name: String,
    /// `model_type` of its configuration.
    pub model_type: &'static str,
    /// Weights as they are in memory.
    pub stored: Stored,
    /// Type of the weights in the model's files.
    pub files: DType,
    /// Typed configuration.
    pub config: ModelConfig,
    /// True if Llama's forward stands in for one that makes a few tensors more; parameters are exact.
    pub generic: bool,
    /// True if the configuration asks for a cache of keys and values in every forward, training included.
    pub use_cache: bool,
    /// Sizes that its `config.json` leaves to transformers' classes; none for a model known by name, whose file is the
    /// published one.
    pub class_defaults: ClassDefaults,
    /// Width of which transformers makes DeepSpeed's sizes that are "auto"; `None` if the `config.json` does not say it.
    pub hidden_size: Option<u64>,
    /// Rows of its table of tokens; `None` if the `config.json` does not say it.
    pub vocabulary: Option<u64>,
    /// Elements of keys and values of a position in all layers; `None` if the `config.json` does not say it.
    pub cached: Option<u64>,
}

impl Model {
    /// Reads a Hugging Face `config.json`. Unknown keys are ignored.
    ///
    /// # Errors
    /// When the text is not JSON, the `model_type` is not supported, or a required key is missing
    /// or out of range; the message names it.
    pub fn from_config(text: &str) -> Result<Self, ModelError> {
        Self::read(None, &parse(text)?)
    }

    /// Reads a Hugging Face `config.json`, with the image size and number of frames that `setup` gives.
    ///
    /// # Errors
    /// Returns the errors of [`Model::from_config`], or an error if the setup's sizes do not fit the model.
    pub fn from_config_for(text: &str, setup: &Setup) -> Result<Self, ModelError> {
        let mut config = parse(text)?;
        overrides::apply_setup(&mut config, setup);
        Self::read(None, &config)
    }

    /// Finds a model of the catalogue by name.
    ///
    /// # Errors
    /// When no model has this name; the message lists near ones.
    pub fn from_catalogue(name: &str) -> Result<Self, ModelError> {
        Self::read(Some(name), &parse(Self::catalogue_config(name)?)?)
    }

    /// Makes the model of a case, with the case's overrides of its shape.
    ///
    /// # Errors
    /// Returns the errors of [`Model::from_catalogue`], or an error if an override does not fit the model.
    pub fn from_case(case: &Case) -> Result<Self, ModelError> {
        Self::from_case_with(case, Self::catalogue_config(&case.model)?)
    }

    /// Makes the model of a case from the `config.json` that belongs to the case's name, with the case's overrides of its shape.
    ///
    /// # Errors
    /// Returns the errors of [`Model::from_config`], or an error if an override does not fit the model.
    pub fn from_case_with(case: &Case, config: &str) -> Result<Self, ModelError> {
        let mut config = parse(config)?;
        overrides::apply(&mut config, case);
        Self::read(Some(&case.model), &config)
    }

    /// Names of the catalogue, in the order in which a menu should show them.
    pub fn catalogue() -> Vec<&'static str> {
        catalogue::menu()
    }

    /// The `config.json` of a model of the catalogue.
    ///
    /// # Errors
    /// When no model has this name; the message lists near ones.
    pub fn catalogue_config(name: &str) -> Result<&'static str, ModelError> {
        match (catalogue::entry(name), catalogue::known(name)) {
            (Some(entry), _) => Ok(entry.config),
            (None, Some(_)) => Err(ModelError::not_loaded(name)),
            (None, None) => Err(unknown(name)),
        }
    }

    fn read(name: Option<&str>, config: &Map<String, Value>) -> Result<Self, ModelError> {
        // Without one, `reading::read` fails below.
        let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
        let is_published = name.is_some();
        let name = name.unwrap_or(model_type).to_string();
        let (use_cache, stored, files) = (use_cache(config), quantised::read(config)?, file_type(config));
        let (hidden_size, vocabulary) = (hidden_size::hidden_size(config), hidden_size::vocabulary(config));
        let cached = hidden_size::cached(config);
        let (config, class_defaults) = reading::read(config)?;
        Ok(Self {
            name,
            model_type: families::known(model_type).map_or("", |known| known.model_type.name),
            stored,
            files,
            generic: config.family().fidelity() == Fidelity::StandIn,
            config,
            use_cache,
            class_defaults: match is_published {
                true => ClassDefaults::default(),
                false => class_defaults,
            },
            hidden_size,
            vocabulary,
            cached,
        })
    }

    /// Parts of a setup that apply to this model.
    pub fn takes(&self) -> Takes {
        self.config.family().takes()
    }

    /// Linear layers and parameters on which peft puts the adapters of a setup.
    pub(crate) fn adapter_places(&self, setup: &Setup) -> AdapterPlaces {
        AdapterPlaces {
            targets: setup.lora_targets.clone(),
            experts: setup.lora_experts,
            former: libraries::former_names(self.model_type),
        }
    }

    /// Returns true if its linear layers are `nn.Linear` itself, which alone bitsandbytes replaces: Falcon's are of a
    /// subclass.
    pub(crate) fn has_plain_maps(&self) -> bool {
        self.model_type != "falcon"
    }

    /// Returns true if peft may put adapters of a setup on fused weights of experts, or on routers.
    pub(crate) fn adapts_experts(&self, setup: &Setup) -> bool {
        matches!(setup.freeze, Freeze::Lora | Freeze::Qlora)
            && matches!(
                self.config.family().support().adapters,
                libraries::AdapterMaps::BesideExperts | libraries::AdapterMaps::BesideExpertsAndRouter
            )
            && self.adapter_places(setup).may_take_parameters()
    }

    /// Packages that replace a part of the model's forward where they are installed, and that are simulated as absent.
    pub fn absent_packages(&self) -> &'static [&'static str] {
        match self.config.family().fidelity() {
            Fidelity::ExactWithout(packages) => packages,
            Fidelity::Exact | Fidelity::WithoutPartialSums | Fidelity::StandIn | Fidelity::ReadOnly => &[],
        }
    }

    /// Returns true if the model's convolutions take memory inside that is not all simulated.
    pub fn lacks_partial_sums(&self) -> bool {
        self.config.family().fidelity() == Fidelity::WithoutPartialSums
    }

    /// Returns true if FlashAttention runs the model in its libraries, and is not simulated for it.
    pub fn lacks_flash_attention(&self) -> bool {
        self.config.family().support().no_flash == Some(NoFlash::NotSimulated)
    }

    /// Returns true if Liger's fused loss takes the place of the model's own, and is simulated.
    pub fn has_fused_loss(&self) -> bool {
        self.config.family().support().liger == Liger::Replaces
    }

    /// Returns true if Liger knows models of this type.
    pub fn is_known_to_liger(&self) -> bool {
        liger::knows(self.model_type)
    }

    /// Patches that a setup's Liger kernels make in the model; `None` if Liger does not know it.
    pub fn liger_patches(&self, setup: &Setup) -> Option<LigerPatches> {
        let text_type = self.config.family().text_type();
        let patches = liger::patches(self.model_type, text_type, setup.liger.before)?;
        Some(patches.of(setup.liger))
    }

    /// Returns true if the model's forward can be simulated; otherwise only its configuration is read.
    pub fn has_forward(&self) -> bool {
        self.config.family().fidelity() != Fidelity::ReadOnly
    }
}

/// Returns `use_cache` of the configuration that the language model reads.
fn use_cache(config: &Map<String, Value>) -> bool {
    let flag = |section: &Map<String, Value>| section.get("use_cache").and_then(Value::as_bool);
    let own = flag(config);
    let model_type = config.get("model_type").and_then(Value::as_str);
    let known = model_type.and_then(families::known);
    match (
        known.and_then(|known| Some(known.facts()?.use_cache)),
        config.get("text_config"),
    ) {
        (None, _) => false,
        (Some(UseCache::OfModel), _) => own.unwrap_or(true),
        (Some(UseCache::OfText), Some(Value::Object(text))) => flag(text).unwrap_or(false),
        (Some(UseCache::OfText), _) => own.unwrap_or(false),
    }
}

/// Type of the weights in the files, of the configuration or its language model; bf16, as most are published, if neither says it.
fn file_type(config: &Map<String, Value>) -> DType {
    let of = |section: &Map<String, Value>| {
        let given = section.get("dtype").or_else(|| section.get("torch_dtype"))?;
        match given.as_str()?.trim_start_matches("torch.") {
            "float32" | "float" => Some(DType::F32),
            "float16" | "half" => Some(DType::F16),
            "bfloat16" => Some(DType::Bf16),
            _ => None,
        }
    };
    let text = config.get("text_config").and_then(Value::as_object);
    of(config).or_else(|| of(text?)).unwrap_or(DType::Bf16)
}

fn parse(text: &str) -> Result<Map<String, Value>, ModelError> {
    match python_json::read(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(ModelError(
            "a config.json is a JSON object, such as {\"model_type\": \"llama\", …}".into(),
        )),
        Err(e) => Err(ModelError(format!("config.json is not valid JSON: {e}"))),
    }
}

fn unknown(name: &str) -> ModelError {
    let names = Model::catalogue();
    let given: String = name.chars().take(60).collect();
    let close = suggest(name, &names).join(", ");
    let others = match close.as_str() {
        "" => format!("{} are known by name, which `vramscope models` lists", names.len()),
        close => format!("did you mean: {close}"),
    };
    ModelError(format!(
        "no model is named \"{given}\"; {others}; any other is read from its config.json"
    ))
}

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;
