//! What is found: a configuration, where it comes from, and what a person has to know of it.

use std::path::PathBuf;

use serde_json::{Map, Value};
use vramscope_engine::Model;
use vramscope_engine::simulate::parameters;

use super::error::HubError;
use super::inquiry::Description;
use super::known::Known;
use super::own_code::{OwnCode, in_transformers_form, larger_form, thinker};
use super::remark::Remark;
use super::repository::Repository;
use super::weights::Weights;

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
    /// A person, who pasted it or opened a link with it.
    Given,
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
    /// What a person has to know.
    pub remarks: Vec<Remark>,
    /// Type of its stored weights, as its name tells.
    pub weights: Weights,
    /// Parameters of its checkpoint, where the hub or its files state them.
    pub parameters: Option<u64>,
    /// Code that its repository brings.
    pub own_code: Option<OwnCode>,
    /// True if its repository brings its own code, whether its name is known or its file was read.
    pub has_own_code: bool,
}

impl Found {
    /// Why an estimate is of at most as much memory as the run needs; `None` if it is of the model itself.
    pub fn bound(&self) -> Option<&'static str> {
        self.remarks.iter().find_map(Remark::bound)
    }

    /// What a person has to know of it once the engine has read its configuration: also that of its parameters and of code
    /// that its repository brings.
    pub fn remarks_on(&self, model: Option<&Model>) -> Vec<Remark> {
        let mut remarks = self.remarks.clone();
        let Some(model) = model.filter(|model| model.has_forward()) else {
            return remarks;
        };
        let id = || self.name.clone();
        let is_own = self.remarks.iter().all(|remark| matches!(remark, Remark::Pixels(_)));
        if let (Some(code), true) = (&self.own_code, is_own) {
            remarks.push(Remark::AlsoOwnCode {
                id: id(),
                file: code.file.clone(),
            });
        }
        // A larger model is meant to have more.
        let stated = self.parameters.filter(|_| self.bound().is_none());
        if let Some(stated) = stated {
            let simulated = parameters(model);
            if simulated != stated {
                remarks.push(Remark::Parameters {
                    id: id(),
                    stated,
                    simulated,
                });
            }
        }
        remarks
    }
}

/// A model that is known by name.
///
/// # Errors
/// If weights of its type are not simulated.
pub(crate) fn of_known(known: &Known) -> Result<Found, HubError> {
    let config = known.config()?;
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
pub(crate) fn of_config(name: String, text: &str, config: &Map<String, Value>, origin: Origin) -> Found {
    let own_code = OwnCode::of(config);
    let mut remarks = Vec::new();
    let thinker = thinker(config);
    if thinker.is_some() {
        remarks.push(Remark::Thinker { id: name.clone() });
    }
    let larger = larger_form(config);
    remarks.extend(larger.is_some().then(|| Remark::Larger { id: name.clone() }));
    let form = in_transformers_form(config).or(thinker);
    if let (Some(code), true) = (&own_code, form.is_some()) {
        remarks.push(Remark::OwnCode {
            id: name.clone(),
            file: Some(code.file.clone()),
        });
    }
    Found {
        weights: Repository::parse(&name).map_or(Weights::Plain, |of| Weights::split(of.owner(), of.name()).1),
        name,
        catalogue: None,
        config: form
            .or(larger)
            .map_or_else(|| text.to_owned(), |form| Value::Object(form).to_string()),
        origin,
        remarks,
        parameters: None,
        has_own_code: own_code.is_some(),
        own_code,
    }
}

/// What a description leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Leads {
    /// The model.
    Model(Box<Found>),
    /// Another model, which it was made from.
    Base {
        /// Its id, or a path.
        base: String,
        /// What a person has to know.
        remark: Remark,
    },
}

impl Description {
    /// What a repository's description leads to.
    ///
    /// # Errors
    /// If it describes no model and names none.
    pub fn leads(&self, of: &Repository, origin: Origin) -> Result<Leads, HubError> {
        let config = self.config();
        if let Some((base, remark)) = adapters_base(&of.id, &config) {
            return Ok(Leads::Base { base, remark });
        }
        if self.file != "config.json" {
            // A repository of files for inference: its base trains.
            let base = self.info.base_models.first();
            let base = base.filter(|base| **base != of.id).ok_or_else(|| HubError::NoConfig {
                repository: of.clone().into(),
            })?;
            return Ok(Leads::Base {
                base: base.clone(),
                remark: Remark::MadeFrom {
                    id: of.id.clone(),
                    base: base.clone(),
                    weights: Weights::split(of.owner(), of.name()).1,
                },
            });
        }
        let mut found = of_config(of.to_string(), &self.text, &config, origin);
        found.parameters = self.info.plain_parameters();
        found.remarks.extend(self.max_pixels.map(Remark::Pixels));
        Ok(Leads::Model(Box::new(found)))
    }
}

/// Model that an `adapter_config.json` is for, with what a person has to know; `None` if it is none.
pub(crate) fn adapters_base(given: &str, config: &Map<String, Value>) -> Option<(String, Remark)> {
    config.get("peft_type")?;
    let base = config.get("base_model_name_or_path")?.as_str()?;
    let remark = Remark::Adapter {
        id: given.to_owned(),
        base: base.to_owned(),
        rank: config.get("r").and_then(Value::as_u64),
    };
    Some((base.to_owned(), remark))
}
