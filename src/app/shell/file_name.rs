//! Names of exported files.

use vramscope_engine::setup::Setting;

use super::store::Store;
use crate::state::Key;

/// Base name of exported files: model, batch, length if entered, and content.
pub fn stem(store: Store, what: &str) -> String {
    let model = if store.has(Key::Config) {
        "config".to_owned()
    } else {
        store.text(Key::Model)
    };
    let seq = match store.text(Setting::Seq) {
        seq if seq.is_empty() => seq,
        seq => format!("-s{seq}"),
    };
    let name = format!("{model}-b{}{seq}-{what}", store.text(Setting::Batch));
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect()
}
