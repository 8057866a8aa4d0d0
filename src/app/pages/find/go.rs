//! Goes to what a name leads to.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{HtmlDetailsElement, HtmlElement};

use super::names::Place;
use crate::events::after;
use crate::shell::{Given, Store};
use crate::state::{Key, Route, world};
use crate::widgets::control_id;

/// Time between two looks for an element that a page or a part is still being made for, and their number.
const LOOK: Duration = Duration::from_millis(60);
const LOOKS: u32 = 60;

/// Goes there; a choice is taken first.
pub fn go(place: Place) {
    let (store, given) = (Store::get(), Given::get());
    match place {
        Place::Page(route) => store.route().set(route),
        Place::Entry(key) => {
            store.route().set(Route::Plan);
            given.all_settings.set(true);
            // The controls of time stand beside the results.
            if key == Key::Strategy || key == Key::Offload {
                share(store);
            }
            reach(format!("#{}", control_id(key)), LOOKS);
        }
        Place::Choice(key, choice) => {
            store.route().set(Route::Plan);
            given.all_settings.set(true);
            if key == Key::Strategy {
                share(store);
            }
            store.set(key, choice);
            reach(format!("#{}", control_id(key)), LOOKS);
        }
        Place::Section(section) => {
            store.route().set(Route::Plan);
            reach(format!("#{}", section.id()), LOOKS);
        }
        Place::Number(testid) => {
            store.route().set(Route::Plan);
            reach(format!("[data-testid='{testid}']"), LOOKS);
        }
    }
}

/// Enters two GPUs where one is entered: the controls of how GPUs share a run are shown for several alone.
fn share(store: Store) {
    if store.reading().with_untracked(|reading| world(&reading.good)) == 1 {
        store.set(Key::World, "2");
    }
}

/// Scrolls to an element and gives it the focus, once it is there; opens what it is folded away in.
fn reach(selector: String, looks: u32) {
    after(LOOK, move || {
        let found = document().query_selector(&selector).ok().flatten();
        let Some(element) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) else {
            if looks > 0 {
                reach(selector, looks - 1);
            }
            return;
        };
        let mut outer = element.parent_element();
        while let Some(around) = outer {
            if let Some(details) = around.dyn_ref::<HtmlDetailsElement>() {
                details.set_open(true);
            }
            outer = around.parent_element();
        }
        element.scroll_into_view();
        // A part of the page takes no focus, and is in sight all the same.
        element.focus().ok();
    });
}
