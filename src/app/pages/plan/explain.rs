//! How a number comes about, opened from the number itself.

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

/// The number that is explained, and those from which the person came to it.
#[derive(Debug, Clone, Copy)]
pub struct Explanation {
    trail: RwSignal<Vec<Quantity>>,
    /// The entries of the run beside the page's that the number is also about.
    changed: RwSignal<Option<Draft>>,
    /// Changes whenever a number is pressed.
    pressed: RwSignal<u32>,
    /// The element that was pressed last.
    beside: StoredValue<Option<HtmlElement>, LocalStorage>,
}

impl Explanation {
    /// Gives it to every component below.
    pub fn provide() {
        let this = Self {
            trail: RwSignal::new(Vec::new()),
            changed: RwSignal::new(None),
            pressed: RwSignal::new(0),
            beside: StoredValue::new_local(None),
        };
        provide_context(this);
    }

    /// What the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The number that is explained now.
    fn now(self) -> Option<Quantity> {
        self.trail.with(|trail| trail.last().cloned())
    }

    /// Explains a number in the panel, beside the element that shows it.
    fn open(self, quantity: Quantity, changed: Option<Draft>, beside: HtmlElement) {
        self.changed.set(changed);
        self.trail.set(vec![quantity]);
        self.beside.set_value(Some(beside));
        self.pressed.update(|n| *n += 1);
    }

    /// Goes into a term of the formula.
    fn enter(self, quantity: Quantity) {
        self.trail.update(|trail| trail.push(quantity));
    }

    /// Goes back to where the person came from.
    fn back(self) {
        self.trail.update(|trail| {
            trail.pop();
        });
    }
}

/// Where the panel is, once a number was pressed.
#[component]
pub fn ExplanationPlace() -> impl IntoView {
    let explanation = Explanation::get();
    view! {
        <Show when=move || explanation.pressed.get() != 0>
            <LazyPart of=Lazy::Explanation />
        </Show>
    }
}
