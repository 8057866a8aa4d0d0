//! Modules that get adapters, as peft names them.

use serde_json::{Value, json};
use vramscope_engine::setup::Targets;

/// Names of the linear layers in a decoder layer, attention's first.
const PROJECTIONS: [&str; 7] = [
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
];

/// Begin and end of a regular expression for modules of the language model alone, around their names.
const LANGUAGE_MODEL: [&str; 2] = [r".*(language_model|model\.layers)\..*\.(", ")"];

/// peft's `exclude_modules` for adapters in the language model alone.
const OUTSIDE_LANGUAGE_MODEL: &str = r"(?!.*(language_model|model\.layers)\.).*";

/// Names of the linear layers that get adapters, without the path of their submodel.
pub(super) fn names(targets: &Targets) -> Vec<String> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match targets {
        Targets::Projections => names(&PROJECTIONS),
        Targets::Attention => names(&PROJECTIONS[..4]),
        Targets::AllLinear | Targets::LanguageModel => names(&["all-linear"]),
        Targets::Named(own) => own.clone(),
    }
}

/// peft's `target_modules`. Projections of the language model alone need a regular expression over whole paths: a list
/// of names would also match the vision tower's.
pub(super) fn target_modules(targets: &Targets) -> Value {
    match targets {
        Targets::Projections | Targets::Attention => {
            let [begin, end] = LANGUAGE_MODEL;
            json!(format!("{begin}{}{end}", names(targets).join("|")))
        }
        Targets::AllLinear | Targets::LanguageModel => json!("all-linear"),
        Targets::Named(own) => json!(own),
    }
}

/// peft's `exclude_modules` beside [`target_modules`], if some are excluded.
pub(super) const fn exclude_modules(targets: &Targets) -> Option<&'static str> {
    match targets {
        Targets::LanguageModel => Some(OUTSIDE_LANGUAGE_MODEL),
        _ => None,
    }
}

/// Returns the targets that put adapters on modules of these names in the language model alone, if there are some.
pub fn targets_in_language_model(names: &[String]) -> Option<Targets> {
    let among = |all: &[&str]| names.len() == all.len() && all.iter().all(|name| names.iter().any(|own| own == name));
    match () {
        () if among(&PROJECTIONS) => Some(Targets::Projections),
        () if among(&PROJECTIONS[..4]) => Some(Targets::Attention),
        () => None,
    }
}

/// Reads the regular expression of an export, for modules of the language model alone, back into their names.
pub fn names_in_language_model(pattern: &str) -> Option<Vec<String>> {
    let [begin, end] = LANGUAGE_MODEL;
    let names = pattern.strip_prefix(begin)?.strip_suffix(end)?.split('|');
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_read_back() {
        for targets in [Targets::Projections, Targets::Attention] {
            let pattern = target_modules(&targets);
            let names = names_in_language_model(pattern.as_str().expect("a pattern")).expect("it is an export's");
            assert_eq!(targets_in_language_model(&names), Some(targets));
        }
        assert_eq!(names_in_language_model(".*q_proj"), None);
        assert_eq!(targets_in_language_model(&["q_proj".to_owned()]), None);
    }
}
