//! Stores the user's preferences on this machine; full or forbidden storage is tolerated.

use gloo_storage::{LocalStorage, Storage};
use leptos::prelude::window;

/// Reads a preference.
pub fn read(name: &str) -> Option<String> {
    if !is_allowed() {
        return None;
    }
    let name = stored(name);
    // Earlier versions stored plain text instead of JSON.
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
        // A preference that cannot be stored still applies until the page is left.
        Some(value) => drop(LocalStorage::set(stored(name), value)),
        None => LocalStorage::delete(stored(name)),
    }
}

/// Returns true if local storage is accessible. Browsers may throw on access, in a frame or by the user's choice, and
/// [`LocalStorage`] would then panic.
fn is_allowed() -> bool {
    matches!(window().local_storage(), Ok(Some(_)))
}

fn stored(name: &str) -> String {
    format!("vramscope.{name}")
}
