//! Reads the activation that a section of a config.json names.

use super::section::Section;
use crate::model::ModelError;
use crate::nn::Activation;

impl Section<'_> {
    /// Reads the activation named under `key`.
    pub(crate) fn activation(&self, key: &str, default: Activation) -> Result<Activation, ModelError> {
        let Some(given) = self.optional_text(key)? else {
            return Ok(default);
        };
        Activation::named(given).ok_or_else(|| {
            let allowed = Activation::NAMES.map(|(name, _)| name).join(", ");
            self.wrong(key, &given.into(), &format!("one of {allowed}"))
        })
    }
}
