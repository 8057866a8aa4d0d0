use leptos::prelude::*;
use wasm_bindgen::JsCast;

/// Puts a text on the clipboard. Without the right to, the text is selected in a field of its own,
/// ready to be copied by hand.
pub fn copy(text: &str) {
    let navigator = window().navigator();
    let allowed = js_sys::Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|c| !c.is_undefined());
    if allowed {
        // A refusal shows as a clipboard that has not changed; nothing is lost by it.
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
        // As above.
        let _ = document.exec_command("copy");
        field.remove();
    }
}
