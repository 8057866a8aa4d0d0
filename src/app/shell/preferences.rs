//! What a person prefers on this machine. Storage that is full or forbidden is survived.

use leptos::prelude::window;

/// A stored preference.
pub fn read(name: &str) -> Option<String> {
    window().local_storage().ok()??.get_item(&stored(name)).ok()?
}

/// Stores a preference, or removes it.
pub fn write(name: &str, value: Option<&str>) {
    let Ok(Some(storage)) = window().local_storage() else {
        return;
    };
    // A preference that cannot be stored still holds until the page is left.
    let _ = match value {
        Some(value) => storage.set_item(&stored(name), value),
        None => storage.remove_item(&stored(name)),
    };
}

fn stored(name: &str) -> String {
    format!("vramscope.{name}")
}
