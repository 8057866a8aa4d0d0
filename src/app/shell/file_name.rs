//! Names of exported files.

use vramscope_engine::setup::Setting;

use super::store::Store;

/// Base name of exported files: model, batch, length if entered, and content.
pub fn stem(store: Store, what: &str) -> String {
    let draft = store.address().draft;
    let model = draft.model_name().unwrap_or("config");
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
