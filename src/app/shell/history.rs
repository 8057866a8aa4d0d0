//! Steps through the setups of a visit: entries of the browser's history, so that its Back and Forward undo and redo.

use leptos::prelude::*;
use wasm_bindgen::JsValue;

use crate::state::Key;

/// Milliseconds within which changes of one entry are one step: a number that is typed, a stepper that is held.
const TOGETHER: f64 = 1500.0;

/// Position among the steps of this visit.
#[derive(Debug, Clone, Copy)]
pub struct History {
    /// Number of the step on screen.
    place: RwSignal<u32>,
    /// Number of the newest step that can be redone.
    newest: RwSignal<u32>,
    /// Entries that the newest step changed, and the time of its last change.
    change: StoredValue<(Vec<Key>, f64)>,
}

impl History {
    /// Takes the browser's current entry as the first step, or as the step that it was before a reload.
    pub fn begin() -> Self {
        let place = number_of_entry().unwrap_or_default();
        // So that it is known again when one comes back to it.
        number_entry(place);
        Self {
            place: RwSignal::new(place),
            newest: RwSignal::new(place),
            change: StoredValue::new((Vec::new(), 0.0)),
        }
    }

    /// Writes a fragment to the URL. What changed of the entries makes a new step, unless it continues the last one;
    /// `None` makes none. Returns true for a new step.
    pub fn write(self, fragment: &str, changed: Option<Vec<Key>>) -> bool {
        let now = js_sys::Date::now();
        let is_new = changed.is_some_and(|changed| {
            let (keys, at) = self.change.get_value();
            let continues = keys == changed && now - at < TOGETHER;
            self.change.set_value((changed, now));
            !continues
        });
        if is_new {
            self.place.update(|place| *place += 1);
            self.newest.set(self.place.get_untracked());
        }
        let number = JsValue::from(self.place.get_untracked());
        let history = window().history();
        // If a frame forbids changing the history, the page still works.
        let _ = history.and_then(|history| match is_new {
            true => history.push_state_with_url(&number, "", Some(fragment)),
            false => history.replace_state_with_url(&number, "", Some(fragment)),
        });
        is_new
    }

    /// Follows a navigation: to a step of this visit, or by a link, which is a new step.
    pub fn follow(self) {
        self.change.set_value((Vec::new(), 0.0));
        match number_of_entry() {
            Some(place) => self.place.set(place),
            None => {
                self.place.update(|place| *place += 1);
                self.newest.set(self.place.get_untracked());
                let number = JsValue::from(self.place.get_untracked());
                let _ = window()
                    .history()
                    .and_then(|history| history.replace_state(&number, ""));
            }
        }
    }

    /// Returns true if there is a step to go back to; reactive.
    pub fn can_undo(self) -> bool {
        self.place.get() > 0
    }

    /// Returns true if there is a step to go forward to; reactive.
    pub fn can_redo(self) -> bool {
        self.place.get() < self.newest.get()
    }

    /// Goes back one step, if there is one.
    pub fn undo(self) {
        if untrack(|| self.can_undo()) {
            let _ = window().history().and_then(|history| history.back());
        }
    }

    /// Goes forward one step, if there is one.
    pub fn redo(self) {
        if untrack(|| self.can_redo()) {
            let _ = window().history().and_then(|history| history.forward());
        }
    }
}

/// Gives the browser's current entry a number.
fn number_entry(place: u32) {
    // If a frame forbids changing the history, the page still works.
    let history = window().history();
    let _ = history.and_then(|history| history.replace_state(&JsValue::from(place), ""));
}

/// Number that this page gave the browser's current entry.
fn number_of_entry() -> Option<u32> {
    let state = window().history().ok()?.state().ok()?;
    state.as_f64().map(|number| number as u32)
}
