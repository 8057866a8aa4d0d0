//! What a person prefers on this machine. Storage that is full or forbidden is survived.

use gloo_storage::{LocalStorage, Storage};
use leptos::prelude::window;

/// A stored preference.
pub fn read(name: &str) -> Option<String> {
    if !is_allowed() {
        return None;
    }
    let name = stored(name);
    // Earlier versions kept the text alone, where it is JSON now.
    LocalStorage::get(&name)
        .ok()
        .or_else(|| LocalStorage::raw().get_item(&name).ok()?)
}

/// Stores a preference, or removes it.
pub fn write(name: &str, value: Option<&str>) {
    if !is_allowed() {
        return;
    }
    match value {
        // A preference that cannot be stored still holds until the page is left.
        Some(value) => drop(LocalStorage::set(stored(name), value)),
        None => LocalStorage::delete(stored(name)),
    }
}

/// Whether there is storage at all: in a frame, and by a person's choice, a browser throws at whoever asks for it, and
/// [`LocalStorage`] would stop the page.
fn is_allowed() -> bool {
    matches!(window().local_storage(), Ok(Some(_)))
}

fn stored(name: &str) -> String {
    format!("vramscope.{name}")
}
