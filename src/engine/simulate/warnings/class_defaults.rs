//! Warning of sizes that a `config.json` leaves to transformers' configuration classes.

use crate::Model;
use crate::report::{Severity, Warning};

/// Tells which sizes are those of transformers' classes: all of a section, which makes another model of most files, or
/// some.
pub(super) fn of(model: &Model) -> Option<Warning> {
    let defaults = &model.class_defaults;
    if defaults.sizes.is_empty() {
        return None;
    }
    let sizes = defaults.sizes.iter().map(|(path, size)| format!("`{path}` {size}"));
    let sizes = sizes.collect::<Vec<_>>().join(", ");
    let sections = defaults.sections.iter().map(|section| format!("`{section}`"));
    let sections = sections.collect::<Vec<_>>().join(" and ");
    let (code, severity, message) = match sections.is_empty() {
        false => (
            "sizes-are-defaults",
            Severity::Warning,
            format!(
                "This config.json states no size of {sections}. Every figure is of a model with the defaults of \
                 transformers' configuration class: {sizes}. State the sizes of your model, or take its own config.json."
            ),
        ),
        true => (
            "some-sizes-are-defaults",
            Severity::Note,
            format!(
                "This config.json leaves sizes out, which take the defaults of transformers' configuration class: \
                 {sizes}. State them if your model has others."
            ),
        ),
    };
    Some(Warning {
        code: code.into(),
        severity,
        message,
        args: vec![("sections".into(), sections), ("sizes".into(), sizes)],
    })
}
