//! The model that is trained, traced from what trains it back to what loads it.

use super::call::last;
use super::heap::{Id, Value};
use super::machine::{Deed, Machine};

/// A model, and what was done to it.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The call that loads it.
    pub base: Option<Id>,
    /// Its name, where the trainer loads it.
    pub name: Option<Value>,
    /// Values that stand for it, the outermost first.
    pub chain: Vec<Value>,
    /// Calls that add adapters, with the arguments that describe them: a `LoraConfig`, or unsloth's own.
    pub adapters: Vec<Value>,
    /// Its 4-bit weights are prepared by peft.
    pub prepared: Option<Id>,
    pub is_compiled: bool,
    /// Types that it is cast to, in order from the last.
    pub casts: Vec<Value>,
    /// DeepSpeed's engine around it.
    pub engine: Option<Id>,
    /// Why it cannot be traced.
    pub unreadable: Option<String>,
}

/// Wrappers that change nothing of a model alone.
const WRAPPERS: [&str; 6] = [
    "prepare",
    "prepare_model",
    "DistributedDataParallel",
    "DDP",
    "convert_sync_batchnorm",
    "prepare_data_loader",
];

/// Methods that give back the model.
const SAME: [&str; 12] = [
    "to",
    "cuda",
    "train",
    "eval",
    "half",
    "bfloat16",
    "float",
    "requires_grad_",
    "for_training",
    "module",
    "unwrap_model",
    "merge_and_unload",
];

impl Machine<'_> {
    /// Traces a model.
    pub(super) fn trace(&self, model: &Value) -> Model {
        let mut out = Model::default();
        let mut at = model.clone();
        for _ in 0..32 {
            out.chain.push(at.clone());
            let next = match &at {
                Value::Str(_) => {
                    out.name = Some(at);
                    return out;
                }
                Value::Object(id) => self.trace_call(*id, &mut out),
                Value::Member(id) => {
                    let (owner, name) = &self.heap.members[*id];
                    match name.as_str() {
                        // Some take their model out of an engine, a trainer or a tuple.
                        "module" | "model" | "[0]" => Some(owner.clone()),
                        _ => None,
                    }
                }
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        if out.base.is_none() && out.unreadable.is_none() {
            out.unreadable = Some("which model is trained is not readable".to_owned());
        }
        out
    }

    /// What a call took to make a model; `None` where it loaded it, or nothing is known of it.
    #[expect(clippy::too_many_lines, reason = "one arm for each call that gives back a model")]
    fn trace_call(&self, id: Id, out: &mut Model) -> Option<Value> {
        let object = &self.heap.objects[id];
        let first = object.arguments.places.first();
        let name = self.last_name(&object.callee)?;
        let owner = match &object.callee {
            Value::Member(member) => Some(self.heap.members[*member].0.clone()),
            _ => None,
        };
        match name.as_str() {
            "from_pretrained" => {
                let path = self.path(&object.callee).unwrap_or_default();
                if path.contains("PeftModel") {
                    out.unreadable = Some("it trains adapters that a folder holds, which are not read".to_owned());
                    return None;
                }
                out.base = Some(id);
                None
            }
            "from_config" => {
                out.unreadable = Some("the model is made of a configuration that the script makes".to_owned());
                None
            }
            "get_peft_model" => {
                let config = object.arguments.get("peft_config", 1);
                let is_unsloth = self.path(&object.callee).is_some_and(|path| path.contains("Fast"));
                out.adapters.push(match config {
                    Some(config) if !is_unsloth => config.clone(),
                    _ => Value::Object(id),
                });
                object.arguments.get("model", 0).cloned()
            }
            "prepare_model_for_kbit_training" | "prepare_model_for_int8_training" => {
                out.prepared = Some(id);
                object.arguments.get("model", 0).cloned()
            }
            "compile" => {
                out.is_compiled = true;
                object.arguments.get("model", 0).cloned().or(owner)
            }
            "initialize" => {
                out.engine = Some(id);
                object
                    .arguments
                    .named("model")
                    .or(object.arguments.places.get(1))
                    .cloned()
            }
            name if WRAPPERS.contains(&name) => first.or(object.arguments.named("module")).cloned(),
            name if SAME.contains(&name) => {
                match name {
                    "half" => out.casts.push(Value::text("float16")),
                    "bfloat16" => out.casts.push(Value::text("bfloat16")),
                    "float" => out.casts.push(Value::text("float32")),
                    "to" => {
                        let all = object.arguments.places.iter().chain(object.arguments.named("dtype"));
                        let types = all.filter(
                            |value| matches!(value, Value::Symbol(path) if super::facts::dtype(path).is_some()),
                        );
                        out.casts.extend(types.cloned());
                    }
                    _ => {}
                }
                match name {
                    // `FastLanguageModel.for_training(model)`
                    "for_training" | "unwrap_model" => first.cloned(),
                    _ => owner,
                }
            }
            _ => {
                if let Value::Class(class) = object.callee {
                    let class = self.heap.classes[class].def.name.as_str();
                    out.unreadable = Some(format!(
                        "the model is of the script's own class {class}, which is not read"
                    ));
                } else if let Some(Value::Symbol(path)) = Some(&object.callee) {
                    out.unreadable = Some(format!(
                        "the model is what {} makes, whose code is not here",
                        last(path)
                    ));
                }
                None
            }
        }
    }

    /// Calls of a name, in order, with whether each may not happen.
    pub(super) fn calls<'m>(&'m self, names: &'m [&'m str]) -> impl Iterator<Item = (Id, bool)> + 'm {
        self.events.iter().filter_map(move |event| {
            let Deed::Call(id) = event.deed else { return None };
            let name = self.last_name(&self.heap.objects[id].callee)?;
            (names.contains(&name.as_str()) && !event.is_of_data).then_some((id, event.may_be))
        })
    }

    /// The value whose method a call is.
    pub(super) fn owner(&self, call: Id) -> Option<Value> {
        match self.heap.objects[call].callee {
            Value::Member(member) => Some(self.heap.members[member].0.clone()),
            _ => None,
        }
    }

    /// The path within a model that a value is, such as `model.visual`; empty for the model itself.
    pub(super) fn within(&self, value: &Value, model: &Model) -> Option<Vec<String>> {
        let mut path = Vec::new();
        let mut at = value.clone();
        for _ in 0..32 {
            if model.chain.contains(&at) {
                path.reverse();
                return Some(path);
            }
            at = match at {
                Value::Member(id) => {
                    let (owner, name) = self.heap.members[id].clone();
                    path.push(name);
                    owner
                }
                // `model.get_base_model()`, `model.parameters()`.
                Value::Object(id) => {
                    let name = self.last_name(&self.heap.objects[id].callee).unwrap_or_default();
                    path.push(format!("{name}()"));
                    self.owner(id)?
                }
                _ => return None,
            };
        }
        None
    }
}
