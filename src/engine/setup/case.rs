use serde::Deserialize;
use serde_json::Value;
use std::fmt;

use super::{Parallel, Setup};

/// One row of a case file: a model's name, overrides of its shape, and a setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Catalogue name of the model.
    pub model: String,
    /// Keys that change the model's own shape (`layers`, `cross`, `patch`), as given.
    pub shape: serde_json::Map<String, Value>,
    /// The training configuration.
    pub setup: Setup,
    /// What the allocator may reserve (GiB), where the case says so.
    pub limit_gib: Option<f64>,
    /// How several GPUs share the step, where the case names a strategy.
    pub parallel: Option<Parallel>,
}

/// Why a case could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseError(pub String);

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CaseError {}

/// Keys of a case that describe the model's shape, not the setup.
const SHAPE_KEYS: [&str; 3] = ["layers", "cross", "patch"];

/// Keys of a case that say how several GPUs share the step.
const PARALLEL_KEYS: [&str; 6] = ["strategy", "world", "mp", "offload", "bucket", "stage"];

impl Case {
    /// Reads one JSON object, alone or under a key `case` (then every other key is ignored).
    ///
    /// # Errors
    /// When the text is not JSON, names no model, or holds a value that is not allowed.
    pub fn from_json(text: &str) -> Result<Option<Self>, CaseError> {
        let value: Value = serde_json::from_str(text).map_err(|e| CaseError(format!("not JSON: {e}")))?;
        let Value::Object(mut row) = value else {
            return Err(CaseError(
                "a case is a JSON object, such as {\"model\": \"gpt2\", \"batch\": 1, \"seq\": 512}".into(),
            ));
        };
        if let Some(inner) = row.remove("case") {
            let Value::Object(inner) = inner else {
                return Err(CaseError("`case` must be a JSON object".into()));
            };
            row = inner;
        } else if !row.contains_key("model") {
            return Ok(None);
        }
        let Some(Value::String(model)) = row.remove("model") else {
            return Err(CaseError("a case needs `model`, the name of a model".into()));
        };
        let mut shape = serde_json::Map::new();
        for key in SHAPE_KEYS {
            if let Some(v) = row.remove(key) {
                shape.insert(key.into(), v);
            }
        }
        let limit_gib = match row.remove("limit_gib") {
            None => None,
            Some(given) => Some(limit(&given)?),
        };
        let parallel = if row.contains_key("strategy") {
            let keys = PARALLEL_KEYS.into_iter();
            let given = keys
                .filter_map(|key| Some((key.to_owned(), row.remove(key)?)))
                .collect();
            let parallel = Parallel::deserialize(Value::Object(given));
            Some(parallel.map_err(|e| CaseError(e.to_string()))?)
        } else {
            None
        };
        let setup = Setup::deserialize(Value::Object(row)).map_err(|e| CaseError(e.to_string()))?;
        Ok(Some(Self {
            model,
            shape,
            setup,
            limit_gib,
            parallel,
        }))
    }
}

fn limit(given: &Value) -> Result<f64, CaseError> {
    given.as_f64().filter(|gib| *gib > 0.0).ok_or_else(|| {
        CaseError(format!(
            "`limit_gib` is {given}; give what the allocator may reserve in GiB, above 0, such as 23.5"
        ))
    })
}
