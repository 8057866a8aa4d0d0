//! Architectures: a Hugging Face `config.json` becomes components whose forward the tape runs.

use std::fmt;

use crate::setup::Case;

/// A model whose training step can be simulated.
#[derive(Debug, Clone)]
pub struct Model {
    /// Catalogue name, or `model_type` for a pasted configuration.
    pub name: String,
}

/// Why a configuration cannot be simulated: what was given, what is allowed, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError(pub String);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ModelError {}

impl Model {
    /// Reads a Hugging Face `config.json`. Unknown keys are ignored.
    ///
    /// # Errors
    /// When the text is not JSON, the `model_type` is not supported, or a required key is missing
    /// or out of range; the message names it.
    pub fn from_config(_text: &str) -> Result<Self, ModelError> {
        Err(ModelError("not yet".into()))
    }

    /// Finds a model of the catalogue by name.
    ///
    /// # Errors
    /// When no model has this name; the message lists near ones.
    pub fn from_catalogue(_name: &str) -> Result<Self, ModelError> {
        Err(ModelError("not yet".into()))
    }

    /// The model of a case, with the case's overrides of its shape.
    ///
    /// # Errors
    /// As [`Model::from_catalogue`], or when an override does not fit the model.
    pub fn from_case(case: &Case) -> Result<Self, ModelError> {
        Self::from_catalogue(&case.model)
    }

    /// Names of the catalogue, in the order in which a menu should show them.
    pub fn catalogue() -> Vec<&'static str> {
        Vec::new()
    }
}
