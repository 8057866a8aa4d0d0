//! One JSON object of a `config.json`, read key by key; errors name the key.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::class_defaults::SizeLog;
use crate::model::ModelError;

/// A JSON object of a configuration, with its path and the family that reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    object: &'a Map<String, Value>,
    name: &'static str,
    family: &'static str,
    sizes_required: bool,
    log: &'a SizeLog,
}

impl<'a> Section<'a> {
    /// Makes the section of the whole file, which must state its sizes; `log` hears of those that its sections leave out.
    pub(crate) fn root(object: &'a Map<String, Value>, family: &'static str, log: &'a SizeLog) -> Self {
        Self {
            object,
            name: "",
            family,
            sizes_required: true,
            log,
        }
    }

    /// Returns the section with transformers' defaults for absent sizes, to be read as another family.
    pub(crate) fn with_defaults(self) -> Self {
        Self {
            sizes_required: false,
            ..self
        }
    }

    /// Reads the object under `key`, in which absent sizes take transformers' defaults.
    pub(crate) fn nested(&self, key: &'static str, family: &'static str) -> Result<Self, ModelError> {
        match self.optional_nested(key, family)? {
            Some(section) => Ok(section),
            None => Err(self.missing(key, "{…}")),
        }
    }

    /// Reads the object under `key`; an absent one counts as empty, with all defaults.
    pub(crate) fn nested_or_empty(&self, key: &'static str, family: &'static str) -> Result<Self, ModelError> {
        static EMPTY: OnceLock<Map<String, Value>> = OnceLock::new();
        let empty = || Self {
            object: EMPTY.get_or_init(Map::new),
            name: key,
            family,
            sizes_required: false,
            log: self.log,
        };
        Ok(self.optional_nested(key, family)?.unwrap_or_else(empty))
    }

    /// Reads the object under `key`, or `None` if it is absent or null.
    pub(crate) fn optional_nested(&self, key: &'static str, family: &'static str) -> Result<Option<Self>, ModelError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(Self {
                object,
                name: key,
                family,
                sizes_required: false,
                log: self.log,
            })),
            Some(other) => Err(self.wrong(key, other, "a JSON object")),
        }
    }

    /// Returns the value under `key`; null counts as absent, as in transformers.
    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|v| !v.is_null())
    }

    /// Returns true if `key` is present, null or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// Reads a whole number from 0 to `limit`, or `None` if absent.
    pub(crate) fn optional_count(&self, key: &str, limit: u64) -> Result<Option<u64>, ModelError> {
        let allowed = || format!("a whole number from 0 to {limit}");
        self.value(key)
            .map(|v| {
                v.as_u64()
                    .filter(|n| *n <= limit)
                    .ok_or_else(|| self.wrong(key, v, &allowed()))
            })
            .transpose()
    }

    /// Reads a size that defines the model: required in a whole file, else `default`.
    pub(crate) fn size(&self, key: &str, default: u64, limit: u64) -> Result<u64, ModelError> {
        match self.optional_size(key, limit)? {
            Some(n) => {
                self.log.state(self.name);
                Ok(n)
            }
            None if self.sizes_required => Err(self.missing(key, &default.to_string())),
            None => {
                self.log.take(self.name, self.path(key), default);
                Ok(default)
            }
        }
    }

    /// Reads a size that defines the model and that whole files leave out too: the default of the class is noted.
    pub(crate) fn size_of_class(&self, key: &str, default: u64, limit: u64) -> Result<u64, ModelError> {
        let given = self.optional_size(key, limit)?;
        if given.is_none() {
            self.log.take(self.name, self.path(key), default);
        }
        Ok(given.unwrap_or(default))
    }

    /// Reads a size that defines the model, under a key or its older spelling.
    pub(crate) fn size_of_either(&self, keys: [&str; 2], default: u64, limit: u64) -> Result<u64, ModelError> {
        let key = if self.value(keys[0]).is_none() && self.value(keys[1]).is_some() {
            keys[1]
        } else {
            keys[0]
        };
        self.size(key, default, limit)
    }

    /// Reads a size with a default that is safe to take.
    pub(crate) fn size_or(&self, key: &str, default: u64, limit: u64) -> Result<u64, ModelError> {
        Ok(self.optional_size(key, limit)?.unwrap_or(default))
    }

    /// Reads a whole number from 1 to `limit`, or `None` if absent.
    pub(crate) fn optional_size(&self, key: &str, limit: u64) -> Result<Option<u64>, ModelError> {
        self.value(key).map(|v| self.as_size(key, v, limit)).transpose()
    }

    /// Reads a token's index, under the first of two spellings that is present.
    pub(crate) fn index_of_either(&self, keys: [&str; 2], default: u64) -> Result<u64, ModelError> {
        for key in keys {
            if let Some(index) = self.optional_count(key, super::limits::VOCAB)? {
                return Ok(index);
            }
        }
        Ok(default)
    }

    /// Reads a side in pixels, given as `n` or as `[n, n]`.
    pub(crate) fn side(&self, key: &str, default: u64, limit: u64) -> Result<u64, ModelError> {
        let Some(value) = self.value(key) else {
            return self.size(key, default, limit);
        };
        self.log.state(self.name);
        match value {
            Value::Array(sides) => match sides.as_slice() {
                [a, b] if a == b => self.as_size(key, a, limit),
                [a] => self.as_size(key, a, limit),
                _ => Err(self.wrong(
                    key,
                    value,
                    "one number, or two equal ones: only square images are simulated",
                )),
            },
            _ => self.as_size(key, value, limit),
        }
    }

    /// Reads the colour channels, under any of the three names in use.
    pub(crate) fn channels(&self) -> Result<u64, ModelError> {
        for key in ["num_channels", "in_channels", "in_chans"] {
            if let Some(channels) = self.optional_size(key, super::limits::COUNT)? {
                return Ok(channels);
            }
        }
        Ok(3)
    }

    /// Counts the classes of a classifier: as many as `id2label` names, else `num_labels`, else 2.
    pub(crate) fn labels(&self) -> Result<u64, ModelError> {
        match self.value("id2label").and_then(Value::as_object) {
            Some(labels) if !labels.is_empty() => Ok(labels.len() as u64),
            _ => self.size_or("num_labels", 2, super::limits::VOCAB),
        }
    }

    /// Reads the length of the list under `key`, or `None` if absent.
    pub(crate) fn optional_len(&self, key: &str) -> Result<Option<u64>, ModelError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Array(list)) if !list.is_empty() => Ok(Some(list.len() as u64)),
            Some(other) => Err(self.wrong(key, other, "a list that is not empty")),
        }
    }

    /// Reads a list of whole numbers from 0 to `limit`, or `None` if absent.
    pub(crate) fn optional_indices(&self, key: &str, limit: u64) -> Result<Option<Vec<u64>>, ModelError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        let wrong = || self.wrong(key, value, &format!("a list of whole numbers from 0 to {limit}"));
        let items = value.as_array().ok_or_else(wrong)?;
        items
            .iter()
            .map(|v| v.as_u64().filter(|n| *n <= limit).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Reads a flag.
    pub(crate) fn flag(&self, key: &str, default: bool) -> Result<bool, ModelError> {
        match self.value(key) {
            None => Ok(default),
            Some(Value::Bool(b)) => Ok(*b),
            Some(other) => Err(self.wrong(key, other, "true or false")),
        }
    }

    /// Reads a text, or `None` if absent.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(key, other, "a text")),
        }
    }

    /// Reads a dropout probability: at least 0, below 1.
    pub(crate) fn probability(&self, key: &str, default: f64) -> Result<f64, ModelError> {
        match self.optional_number(key)? {
            None => Ok(default),
            Some(p) if (0.0..1.0).contains(&p) => Ok(p),
            Some(_) => Err(self.wrong(key, &self.object[key], "a probability from 0, below 1")),
        }
    }

    /// Reads a finite number, or `None` if absent.
    pub(crate) fn optional_number(&self, key: &str) -> Result<Option<f64>, ModelError> {
        match self.value(key) {
            None => Ok(None),
            Some(v) => v
                .as_f64()
                .filter(|x| x.is_finite())
                .map(Some)
                .ok_or_else(|| self.wrong(key, v, "a number")),
        }
    }

    /// Returns `whole` ÷ `parts`, which must divide evenly.
    pub(crate) fn divide(&self, whole: (&str, u64), parts: (&str, u64)) -> Result<u64, ModelError> {
        if whole.1.is_multiple_of(parts.1) {
            return Ok(whole.1 / parts.1);
        }
        Err(ModelError(format!(
            "`{}` is {} and `{}` is {}: a {} model needs the first to be a multiple of the second",
            self.path(whole.0),
            whole.1,
            self.path(parts.0),
            parts.1,
            self.family
        )))
    }

    /// Reads `tie_word_embeddings`, which must be as `text` says, the value under `text_config`.
    pub(crate) fn same_tie(&self, default: bool, text: bool) -> Result<(), ModelError> {
        let key = "tie_word_embeddings";
        match self.flag(key, default)? {
            tied if tied == text => Ok(()),
            tied => Err(self.wrong(key, &tied.into(), "the value of `text_config.tie_word_embeddings`")),
        }
    }

    /// Refuses two sizes that must be equal and are not.
    pub(crate) fn equal(&self, one: (&str, u64), other: (&str, u64)) -> Result<(), ModelError> {
        if one.1 == other.1 {
            return Ok(());
        }
        Err(ModelError(format!(
            "`{}` is {} and `{}` is {}: a {} model runs only where they are equal",
            self.path(one.0),
            one.1,
            self.path(other.0),
            other.1,
            self.family
        )))
    }

    /// Refuses a padding token outside the vocabulary, on which `torch.nn.Embedding` asserts.
    pub(crate) fn padding(&self, vocab: u64) -> Result<(), ModelError> {
        let key = "pad_token_id";
        let outside = |v: &&Value| {
            v.as_i64()
                .is_some_and(|id| id.unsigned_abs() > vocab || id == vocab as i64)
        };
        match self.value(key).filter(outside) {
            Some(given) => Err(self.wrong(
                key,
                given,
                &format!("a token of its vocabulary of {vocab}, or null: PyTorch makes no embedding table otherwise"),
            )),
            None => Ok(()),
        }
    }

    /// Refuses a nested configuration of another family than `allowed`; an absent type is allowed.
    pub(crate) fn expect_model_type(&self, allowed: &[&str]) -> Result<(), ModelError> {
        match self.optional_text("model_type")? {
            Some(given) if !allowed.contains(&given) => {
                Err(self.wrong("model_type", &given.into(), &format!("one of {}", allowed.join(", "))))
            }
            _ => Ok(()),
        }
    }

    /// Makes the error for a value that is not allowed: the value given, and the values allowed.
    pub(crate) fn wrong(&self, key: &str, given: &Value, allowed: &str) -> ModelError {
        ModelError(format!(
            "`{}` is {}; a {} model needs {allowed}",
            self.path(key),
            shown(given),
            self.family
        ))
    }

    /// Refuses an absent `key`, and null, where transformers fails without a value.
    pub(crate) fn required(&self, key: &str, allowed: &str) -> Result<(), ModelError> {
        match self.value(key) {
            Some(_) => Ok(()),
            None => Err(self.wrong(key, &Value::Null, allowed)),
        }
    }

    /// Refuses any value of `key` but an absent one, null and those that `is_allowed` accepts.
    pub(crate) fn only(
        &self,
        key: &str,
        allowed: &str,
        is_allowed: impl FnOnce(&Value) -> bool,
    ) -> Result<(), ModelError> {
        match self.value(key) {
            Some(value) if !is_allowed(value) => Err(self.wrong(key, value, allowed)),
            _ => Ok(()),
        }
    }

    fn as_size(&self, key: &str, value: &Value, limit: u64) -> Result<u64, ModelError> {
        let allowed = || format!("a whole number from 1 to {limit}");
        value
            .as_u64()
            .filter(|n| (1..=limit).contains(n))
            .ok_or_else(|| self.wrong(key, value, &allowed()))
    }

    fn missing(&self, key: &str, example: &str) -> ModelError {
        let path = self.path(key);
        ModelError(format!(
            "`{path}` is missing; a {} config.json states it, such as \"{key}\": {example}",
            self.family
        ))
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.name)
        }
    }
}

/// Formats a value as JSON, cut to a length that fits in a message.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}
