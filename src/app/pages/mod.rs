//! Pages of the app, one folder per route.

pub mod attention;
pub mod benchmarks;
pub mod course;
pub mod diagnose;
pub mod plan;
pub mod plans;
pub mod recorded;

use crate::shell::Store;
use crate::state::Key;

/// Base name of exported files: model, batch, length and content.
fn stem(store: Store, what: &str) -> String {
    let model = if store.has(Key::Config) {
        "config".to_owned()
    } else {
        store.text(Key::Model)
    };
    let name = format!("{model}-b{}-s{}-{what}", store.text(Key::Batch), store.text(Key::Seq));
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
