//! How a menu of the header closes: by Escape, and when the focus leaves it.

use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

/// A menu's element.
pub type Menu = NodeRef<html::Details>;

/// Closes a menu.
pub fn close(menu: Menu) {
    if let Some(menu) = menu.get_untracked() {
        menu.set_open(false);
    }
}

/// Closes a menu by Escape.
pub fn on_key(menu: Menu) -> impl Fn(KeyboardEvent) + 'static {
    move |event| {
        if event.key() == "Escape" {
            close(menu);
        }
    }
}

/// Closes a menu when the focus goes elsewhere.
pub fn on_leave(menu: Menu) -> impl Fn(FocusEvent) + 'static {
    move |event| {
        let to = event
            .related_target()
            .and_then(|to| to.dyn_into::<web_sys::Node>().ok());
        let stays = menu.get_untracked().is_some_and(|menu| menu.contains(to.as_ref()));
        // A press on what takes no focus, such as the page's background, has no target.
        if to.is_some() && !stays {
            close(menu);
        }
    }
}
