//! Copies text to the clipboard.

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;

/// Copies a text to the clipboard, and says afterwards whether it is there. Where the clipboard API is missing or
/// refuses (a page without the permission, a frame), selects the text in a hidden field and runs the browser's copy
/// command.
pub fn copy(text: String, done: impl FnOnce(bool) + 'static) {
    let navigator = window().navigator();
    let has_api = js_sys::Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|c| !c.is_undefined());
    if !has_api {
        return done(copy_by_selection(&text));
    }
    let written = navigator.clipboard().write_text(&text);
    spawn_local(async move { done(JsFuture::from(written).await.is_ok() || copy_by_selection(&text)) });
}

/// Returns true if the browser has copied the text.
fn copy_by_selection(text: &str) -> bool {
    let (Some(body), Ok(field)) = (document().body(), document().create_element("textarea")) else {
        return false;
    };
    let field: web_sys::HtmlTextAreaElement = field.unchecked_into();
    field.set_value(text);
    field.set_class_name("offscreen");
    if body.append_child(&field).is_err() {
        return false;
    }
    field.select();
    let document: web_sys::HtmlDocument = document().unchecked_into();
    let is_copied = document.exec_command("copy").unwrap_or(false);
    field.remove();
    is_copied
}
