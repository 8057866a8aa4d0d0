//! Text of an entry's value.

use crate::i18n::{Words, t_string};
use crate::state::{Form, Key};
use crate::words;

/// Formats a value as the controls show it.
pub fn shown(i18n: Words, key: Key, value: String) -> String {
    match (key.form(), value.as_str()) {
        (Form::Switch, "true") => t_string!(i18n, what_if.on).to_string(),
        (Form::Switch, "false") => t_string!(i18n, what_if.off).to_string(),
        _ => words::choice(i18n, key, &value),
    }
}
