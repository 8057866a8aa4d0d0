//! A fault of the program's own: the page says so and keeps what was entered, which is in the URL.

use leptos::prelude::{document, window};

/// From now on a panic is shown, not only logged.
pub fn watch() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        // What cannot be shown is at least in the console.
        show(&info.to_string());
    }));
}

pub fn show(what: &str) -> Option<()> {
    let document = document();
    if document.get_element_by_id("fault").is_some() {
        return None;
    }
    let panel = document.create_element("section").ok()?;
    panel.set_id("fault");
    panel.set_class_name("fault");
    panel.set_attribute("role", "alert").ok()?;
    let title = document.create_element("h2").ok()?;
    title.set_text_content(Some("VRAMscope stopped at a fault of its own · VRAMscope 自身出错"));
    let report = document.create_element("pre").ok()?;
    let address = window().location().href().unwrap_or_default();
    report.set_text_content(Some(&format!("{what}\n{address}")));
    panel.append_child(&title).ok()?;
    panel.append_child(&report).ok()?;
    document.body()?.prepend_with_node_1(&panel).ok()
}
