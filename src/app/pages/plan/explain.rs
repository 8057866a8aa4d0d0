//! Derivation of a number, opened by clicking the number.

mod number;
mod panel;
mod parts;

use leptos::prelude::*;
use vramscope_engine::report::derivation::Quantity;
use web_sys::HtmlElement;

use crate::lazy::{Lazy, LazyPart};
use crate::state::Draft;

pub use number::Explained;
pub use panel::{CloseButton, ExplanationPanel, show};

/// The number being explained, and the trail of numbers that led to it.
#[derive(Debug, Clone, Copy)]
pub struct Explanation {
    trail: RwSignal<Vec<Quantity>>,
    /// Entries of the other run, for a number that compares two.
    changed: RwSignal<Option<Draft>>,
    /// Counter that changes whenever a number is clicked.
    pressed: RwSignal<u32>,
    /// Element clicked last.
    beside: StoredValue<Option<HtmlElement>, LocalStorage>,
}

impl Explanation {
    /// Provides the state to all components below.
    pub fn provide() {
        let this = Self {
            trail: RwSignal::new(Vec::new()),
            changed: RwSignal::new(None),
            pressed: RwSignal::new(0),
            beside: StoredValue::new_local(None),
        };
        provide_context(this);
    }

    /// Returns the state that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Number being explained now.
    fn now(self) -> Option<Quantity> {
        self.trail.with(|trail| trail.last().cloned())
    }

    /// Opens the panel for a number, beside the element that shows it.
    fn open(self, quantity: Quantity, changed: Option<Draft>, beside: HtmlElement) {
        self.changed.set(changed);
        self.trail.set(vec![quantity]);
        self.beside.set_value(Some(beside));
        self.pressed.update(|n| *n += 1);
    }

    /// Moves on to a term of the formula.
    fn enter(self, quantity: Quantity) {
        self.trail.update(|trail| trail.push(quantity));
    }

    /// Returns to the previous number.
    fn back(self) {
        self.trail.update(|trail| {
            trail.pop();
        });
    }
}

/// Placeholder of the panel, which loads once a number is clicked.
#[component]
pub fn ExplanationPlace() -> impl IntoView {
    let explanation = Explanation::get();
    view! {
        <Show when=move || explanation.pressed.get() != 0>
            <LazyPart of=Lazy::Explanation />
        </Show>
    }
}
