//! Copies text to the clipboard.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

/// Copies a text to the clipboard. If the clipboard API is unavailable, selects the text in a hidden field and runs the
/// browser's copy command.
pub fn copy(text: &str) {
    let navigator = window().navigator();
    let allowed = js_sys::Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|c| !c.is_undefined());
    if allowed {
        // A refusal leaves the clipboard unchanged and loses nothing.
        let _ = navigator.clipboard().write_text(text);
    } else {
        copy_by_selection(text);
    }
}

fn copy_by_selection(text: &str) {
    let Some(body) = document().body() else { return };
    let Ok(field) = document().create_element("textarea") else {
        return;
    };
    let field: web_sys::HtmlTextAreaElement = field.unchecked_into();
    field.set_value(text);
    field.set_class_name("offscreen");
    if body.append_child(&field).is_ok() {
        field.select();
        let document: web_sys::HtmlDocument = document().unchecked_into();
        // Ignore a refusal for the same reason.
        let _ = document.exec_command("copy");
        field.remove();
    }
}
