//! What limits the samples of a script.

use super::Finder;
use crate::python::heap::{Arguments, Id, Value};
use crate::python::source::Place;
use crate::tool::Tool;

impl Finder<'_, '_> {
    /// The longest sample, by what cuts it: the trainer's own limit holds for what it prepares itself.
    pub(super) fn lengths(&mut self, arguments: &Arguments, config: Option<Id>, tool: Option<Tool>) {
        let collator = arguments
            .named("data_collator")
            .filter(|value| **value != Value::None)
            .cloned();
        let kwargs = config.and_then(|id| {
            let value = Value::Object(id);
            let named = self.machine.heap.objects[id].arguments.named("dataset_kwargs").cloned();
            self.machine.heap.attribute(&value, "dataset_kwargs").cloned().or(named)
        });
        let skips = match kwargs {
            Some(Value::Dict(id)) => {
                self.machine.heap.dicts[id].get("skip_prepare_dataset") == Some(&Value::Bool(true))
            }
            Some(Value::None) | None => false,
            Some(_) => true,
        };
        let library = collator
            .as_ref()
            .map(|value| self.object(value).map(|(_, path, ..)| path).unwrap_or_default());
        // unsloth's collator cuts at its own limit or at the model's (`UnslothVisionDataCollator`, 2026).
        let is_unsloth = library.as_ref().is_some_and(|path| path.starts_with("unsloth"));
        let is_library = library
            .as_ref()
            .is_none_or(|path| ["transformers.", "trl."].iter().any(|of| path.starts_with(of)));
        if is_unsloth {
            let own = collator.as_ref().and_then(|value| self.object(value));
            let own = own.and_then(|(_, _, arguments, _)| arguments.get("max_seq_length", 2).cloned());
            let limit = own.or(self.model_limit.clone()).unwrap_or(Value::Int(2048));
            let place = collator
                .as_ref()
                .and_then(|value| self.object(value))
                .map_or(Place::default(), |of| of.3);
            self.say("samples.max_length", &limit, place);
            return;
        }
        if self.is_unsloth && tool == Some(Tool::TrlSft) && !skips {
            // A longer limit of the settings is that of the model.
            let told = self
                .facts
                .entries
                .iter()
                .rev()
                .find(|entry| matches!(entry.key.as_str(), "max_length" | "max_seq_length"));
            let told = told.and_then(|entry| entry.value.as_u64());
            let model = match self.model_limit {
                Some(Value::Int(limit)) => u64::try_from(limit).ok(),
                None => Some(2048),
                Some(_) => None,
            };
            if let Some(limit) = model.filter(|model| told.is_none_or(|told| told > *model)) {
                self.tell("samples.max_length", limit, Place { line: 1, cell: None });
            }
        }
        let prepares = tool.is_some_and(Tool::is_trl) && !skips && is_library;
        if prepares {
            return;
        }
        let told = collator.as_ref().and_then(|value| self.limit_of_collator(value));
        match told.or_else(|| self.limit_of_samples()) {
            Some((limit, place)) => self.tell("samples.max_length", limit, place),
            None => self.facts.is_unlimited = true,
        }
    }

    /// The limit that a collator is told, with truncation.
    pub(super) fn limit_of_collator(&self, collator: &Value) -> Option<(i64, Place)> {
        let (_, _, arguments, place) = self.object(collator)?;
        let is_cut = arguments.named("truncation") == Some(&Value::Bool(true));
        match arguments.named("max_length") {
            Some(Value::Int(limit)) if is_cut && *limit > 0 => Some((*limit, place)),
            _ => None,
        }
    }

    /// The limit at which functions that the script hands over cut samples.
    pub(super) fn limit_of_samples(&self) -> Option<(i64, Place)> {
        let heap = &self.machine.heap;
        let mut best: Option<i64> = None;
        for value in &self.machine.handed {
            let ids = match value {
                Value::Dict(id) => heap.dicts[*id].get("input_ids").cloned(),
                other => Some(other.clone()),
            };
            let limit = ids.and_then(|ids| self.limit_of(&ids));
            best = best.max(limit);
        }
        let place = self
            .machine
            .events
            .iter()
            .find(|event| event.is_of_data)
            .map(|event| event.place);
        Some((best?, place.unwrap_or_default()))
    }

    /// The most elements of a value.
    pub(super) fn limit_of(&self, value: &Value) -> Option<i64> {
        let mut at = value.clone();
        for _ in 0..8 {
            match at {
                Value::Cut(limit) => return Some(limit),
                Value::Member(id) => at = self.machine.heap.members[id].0.clone(),
                Value::Object(id) => {
                    let object = &self.machine.heap.objects[id];
                    let truncates = match object.arguments.named("truncation") {
                        Some(Value::Bool(true)) => true,
                        Some(Value::Str(word)) => &**word != "do_not_truncate",
                        _ => false,
                    };
                    match object.arguments.named("max_length") {
                        Some(Value::Int(limit)) if truncates && *limit > 0 => return Some(*limit),
                        // What turns lists into tensors.
                        _ if self.machine.last_name(&object.callee).is_some_and(|name| {
                            matches!(
                                name.as_str(),
                                "tensor" | "LongTensor" | "as_tensor" | "squeeze" | "clone" | "to" | "pad"
                            )
                        }) =>
                        {
                            at = match self.machine.owner(id) {
                                Some(owner @ (Value::Object(_) | Value::Member(_))) => owner,
                                _ => object.arguments.places.first()?.clone(),
                            };
                        }
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        None
    }

    // Loops.
}
