//! Cases: rows of a case file, read from JSON.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Model;
use crate::python_json;
use crate::setup::{Parallel, Setup};
use crate::suggest::suggest;

/// One row of a case file: a model's name, overrides of its shape, and a setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Catalogue name of the model.
    pub model: String,
    /// Keys that change the model's own shape (`layers`, `cross`, `patch`), as given.
    pub shape: Map<String, Value>,
    /// The training configuration.
    pub setup: Setup,
    /// Most GiB that the allocator may reserve, if the case gives a limit.
    pub limit_gib: Option<f64>,
    /// Parallel strategy and its options, if the case names one.
    pub parallel: Option<Parallel>,
}

/// Reason that a case could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CaseError(pub String);

/// Keys of a case that describe the model's shape, not the setup.
const SHAPE_KEYS: [&str; 3] = ["layers", "cross", "patch"];

/// Keys of a case that describe the parallel strategy.
const PARALLEL_KEYS: [&str; 7] = ["strategy", "world", "mp", "offload", "bucket", "stage", "zero"];

/// Keys of a case that are its author's notes and change nothing: of measurements (`timed`, `start`, `events`, `alone`,
/// `stages`, `mode`, `new_tokens`), of plans that were kept (`card`, `gb`, `nearest`, `planned`, `recommended`), and
/// free words (`note`).
pub const NOTES: [&str; 13] = [
    "timed",
    "start",
    "events",
    "alone",
    "stages",
    "mode",
    "new_tokens",
    "card",
    "gb",
    "nearest",
    "planned",
    "recommended",
    "note",
];

impl Case {
    /// Reads one JSON object, alone or under a key `case` (then every other key is ignored). `None` for an object with
    /// neither `case` nor `model`: a line of a case file that is no case.
    ///
    /// # Errors
    /// When the text is not JSON, names no model, or holds a key that is not known or a value that is not allowed.
    pub fn from_json(text: &str) -> Result<Option<Self>, CaseError> {
        let value = python_json::read(text).map_err(|e| CaseError(format!("not JSON: {e}")))?;
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
        row.retain(|key, _| !NOTES.contains(&key.as_str()));
        of_front(&mut row);
        optimizer_of_deepspeed(&mut row);
        known(&row)?;
        let mut shape = Map::new();
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
        let states_seq = row.contains_key("seq");
        let mut setup = Setup::deserialize(Value::Object(row)).map_err(|e| CaseError(e.to_string()))?;
        if let (false, Ok(model)) = (states_seq, Model::from_catalogue(&model)) {
            setup.seq = model.default_seq();
        }
        Ok(Some(Self {
            model,
            shape,
            setup,
            limit_gib,
            parallel,
        }))
    }
}

/// Turns a case of `front` "deepspeed", the loop around DeepSpeed's engine of `tests/data/truth/fronts.py`, into one of
/// its strategy.
fn of_front(row: &mut Map<String, Value>) {
    if row.get("front").and_then(Value::as_str) != Some("deepspeed") {
        return;
    }
    row.remove("front");
    if let Some(stage) = row.remove("stage") {
        row.insert("strategy".into(), format!("deepspeed{stage}").into());
    }
    row.entry("clip").or_insert(true.into());
    if row.get("offload") == Some(&Value::Bool(true)) {
        row.insert("offload".into(), "optimizer".into());
    }
}

/// Gives a case of DeepSpeed's engine that names no optimizer the fused AdamW, as `fronts.py` does and DeepSpeed itself:
/// its own Adam is `FusedAdam`.
fn optimizer_of_deepspeed(row: &mut Map<String, Value>) {
    let strategy = row.get("strategy").and_then(Value::as_str);
    if strategy.is_some_and(|strategy| strategy.starts_with("deepspeed")) {
        row.entry("optim").or_insert("adamw_fused".into());
    }
}

/// Refuses a key that is neither of a case nor a note: silently ignoring it would answer for another case.
fn known(row: &Map<String, Value>) -> Result<(), CaseError> {
    let setup = match serde_json::to_value(Setup::default()) {
        Ok(Value::Object(setup)) => setup,
        _ => Map::new(),
    };
    let own = SHAPE_KEYS.into_iter().chain(PARALLEL_KEYS).chain(["limit_gib"]);
    let keys: Vec<&str> = setup.keys().map(String::as_str).chain(own).collect();
    if let Some(key) = row.keys().find(|key| !keys.contains(&key.as_str())) {
        let key: String = key.chars().take(60).collect();
        return Err(CaseError(match suggest(&key, &keys).first() {
            Some(nearest) => format!("a case has no key `{key}`; did you mean `{nearest}`?"),
            None => format!("a case has no key `{key}`; leave it out, or write it beside `case`"),
        }));
    }
    let shared = PARALLEL_KEYS.into_iter().find(|key| row.contains_key(*key));
    match shared.filter(|_| !row.contains_key(PARALLEL_KEYS[0])) {
        Some(key) => Err(CaseError(format!(
            "`{key}` is of several GPUs, and the case names no `strategy`; add one, such as \"ddp\", or leave `{key}` out"
        ))),
        None => Ok(()),
    }
}

fn limit(given: &Value) -> Result<f64, CaseError> {
    given.as_f64().filter(|gib| *gib > 0.0).ok_or_else(|| {
        CaseError(format!(
            "`limit_gib` is {given}; give what the allocator may reserve in GiB, above 0, such as 23.5"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Offload, Optimizer, Strategy};

    fn refused(text: &str) -> String {
        Case::from_json(text).expect_err(text).to_string()
    }

    #[test]
    fn a_key_that_is_not_known_is_refused_with_the_nearest() {
        let said = refused(r#"{"model": "gpt2", "bacth": 4}"#);
        assert!(said.contains("`bacth`") && said.contains("`batch`"), "{said}");
        let said = refused(r#"{"case": {"model": "gpt2", "something_else": 1}}"#);
        assert!(said.contains("`something_else`"), "{said}");
        assert!(refused(r#"{"model": "gpt2", "world": 4}"#).contains("`strategy`"));
    }

    #[test]
    fn notes_and_what_stands_beside_a_case_are_passed_over() {
        for note in NOTES {
            let text = format!(r#"{{"case": {{"model": "gpt2", "{note}": 1}}, "bacth": 4, "ms": NaN}}"#);
            assert!(Case::from_json(&text).is_ok_and(|case| case.is_some()), "{note}");
        }
    }

    #[test]
    fn a_case_of_the_loop_around_deepspeed_is_one_of_its_strategy() {
        let text = r#"{"model": "gpt2", "front": "deepspeed", "stage": 2, "world": 8, "offload": true}"#;
        let case = Case::from_json(text).unwrap().unwrap();
        let parallel = case.parallel.unwrap();
        assert_eq!((parallel.strategy, parallel.world), (Strategy::Deepspeed2, 8));
        assert_eq!(parallel.offload, Offload::Optimizer);
        assert!(case.setup.clip);
        assert_eq!(case.setup.optim, Optimizer::AdamwFused);
        let keys = r#"{"model": "gpt2", "strategy": "deepspeed1", "zero": {"zero_quantized_gradients": true}}"#;
        assert!(refused(keys).contains("`zero.zero_quantized_gradients`"));
    }

    #[test]
    fn a_case_of_deepspeed_without_an_optimizer_has_the_fused_one() {
        let optim = |more: &str| {
            let text = format!(r#"{{"model": "gpt2", "world": 8{more}}}"#);
            Case::from_json(&text).unwrap().unwrap().setup.optim
        };
        assert_eq!(optim(r#", "strategy": "deepspeed0""#), Optimizer::AdamwFused);
        assert_eq!(optim(r#", "strategy": "deepspeed2", "optim": "sgd""#), Optimizer::Sgd);
        assert_eq!(optim(r#", "strategy": "ddp""#), Optimizer::Adamw);
    }

    #[test]
    fn a_case_without_a_length_takes_no_more_than_the_model_has() {
        let seq = |text: &str| Case::from_json(text).unwrap().unwrap().setup.seq;
        assert_eq!(seq(r#"{"model": "gpt2"}"#), 1024);
        assert_eq!(seq(r#"{"model": "gpt2", "seq": 4096}"#), 4096);
        assert_eq!(seq(r#"{"model": "llama3.2-1b"}"#), 2048);
    }
}
