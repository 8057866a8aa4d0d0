//! What is found: a configuration, where it comes from, and what a person has to know of it.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::error::HubError;
use super::object;
use super::store::Stored;
use crate::known::Known;
use crate::own_code::{OwnCode, in_transformers_form, thinker};
use crate::repository::{Hub, Repository};
use crate::weights::Weights;

/// Where a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The models known by name.
    Catalogue,
    /// A file of this machine.
    File(PathBuf),
    /// The cache of another library.
    OtherCache(PathBuf),
    /// This crate's own cache.
    Cache,
    /// The network: the host that answered.
    Network(String),
}

/// A model that is found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Name for people and exports: the id, the name in the catalogue, or the path.
    pub name: String,
    /// Name in the catalogue, if the configuration is one of its entries unchanged.
    pub catalogue: Option<&'static str>,
    /// Its `config.json`, in the form that the engine reads.
    pub config: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What a person has to know: sentences.
    pub remarks: Vec<String>,
    /// Type of its stored weights, as its name tells.
    pub weights: Weights,
    /// Parameters of its checkpoint, where the hub or its files state them.
    pub parameters: Option<u64>,
    /// Code that its repository brings.
    pub own_code: Option<OwnCode>,
    /// True if its repository brings its own code, whether its name is known or its file was read.
    pub has_own_code: bool,
}

/// One entry of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedModel {
    /// Id, with `@REVISION` if one was asked.
    pub name: String,
    /// `model_type` of the configuration.
    pub model_type: String,
    /// Host that it was read from.
    pub host: String,
    /// Days since it was asked.
    pub age_days: u64,
}

/// Where a name stands.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Folders that a path may be relative to, before the working folder.
    pub folders: Vec<PathBuf>,
    /// Hub that a bare id belongs to.
    pub hub: Hub,
}

/// A model that is known by name.
///
/// # Errors
/// If weights of its type are not simulated.
pub(super) fn of_known(known: &Known) -> Result<Found, HubError> {
    let config = known.config().map_err(|error| HubError::Refused(error.to_string()))?;
    let is_own = matches!(config, std::borrow::Cow::Borrowed(_));
    Ok(Found {
        name: if known.remarks.is_empty() {
            known.name.to_owned()
        } else {
            known.id.clone()
        },
        catalogue: is_own.then_some(known.name),
        config: config.into_owned(),
        origin: Origin::Catalogue,
        remarks: known.remarks.clone(),
        weights: known.weights,
        parameters: None,
        own_code: None,
        has_own_code: known.has_own_code(),
    })
}

/// A model of a `config.json`.
pub(super) fn of_config(name: String, text: &str, config: &Map<String, Value>, origin: Origin) -> Found {
    let own_code = OwnCode::of(config);
    let mut remarks = Vec::new();
    let thinker = thinker(config);
    if thinker.is_some() {
        remarks.push(format!(
            "the thinker of {name} is simulated, which is what trains; its talker takes more where it is loaded"
        ));
    }
    let form = in_transformers_form(config).or(thinker);
    if let (Some(code), true) = (&own_code, form.is_some()) {
        remarks.push(format!(
            "{name} brings its own code ({}), which is not simulated: this is the same model in transformers' form",
            code.file
        ));
    }
    Found {
        weights: Repository::parse(&name).map_or(Weights::Plain, |of| Weights::split(of.owner(), of.name()).1),
        name,
        catalogue: None,
        config: form.map_or_else(|| text.to_owned(), |form| Value::Object(form).to_string()),
        origin,
        remarks,
        parameters: None,
        has_own_code: own_code.is_some(),
        own_code,
    }
}

/// An entry of the cache for people.
pub(super) fn of_stored(stored: &Stored) -> CachedModel {
    let config = object(&stored.text);
    let model_type = config.get("model_type").and_then(Value::as_str);
    let name = match &stored.revision {
        Some(revision) => format!("{}@{revision}", stored.id),
        None => stored.id.clone(),
    };
    CachedModel {
        name,
        model_type: model_type.unwrap_or_default().to_owned(),
        host: stored.host.clone(),
        age_days: stored.age_days(),
    }
}
