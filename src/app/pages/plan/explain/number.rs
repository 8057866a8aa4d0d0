//! A number that can be explained.

use leptos::prelude::*;
use vramscope_engine::report::derivation::Quantity;
use wasm_bindgen::JsCast;

use super::Explanation;
use crate::i18n::{t, use_i18n};
use crate::part;
use crate::state::Draft;

/// A number that opens its derivation when clicked.
#[component]
pub fn Explained(
    /// Quantity that the number shows.
    quantity: Quantity,
    /// Entries of the other run, for a number that compares two.
    #[prop(optional_no_strip)]
    changed: Option<Draft>,
    /// Formatted number.
    #[prop(into)]
    text: Signal<String>,
    /// Id by which tests and scripts find it.
    #[prop(optional, into)]
    testid: Option<&'static str>,
    /// Exact value.
    #[prop(optional, into)]
    value: Option<Signal<u64>>,
) -> impl IntoView {
    let i18n = use_i18n();
    // What was recorded is not explained: there is no formula to show.
    let Some(explanation) = use_context::<Explanation>() else {
        return view! {
            <span data-testid=testid data-value=value.map(|value| part::text(move || value.get().to_string()))>
                {part::text(move || text.get())}
            </span>
        }
        .into_any();
    };
    let open = move |event: leptos::ev::MouseEvent| {
        let element = event.current_target().and_then(|target| target.dyn_into().ok());
        if let Some(element) = element {
            explanation.open(quantity.clone(), changed.clone(), element);
        }
    };
    view! {
        <button
            type="button"
            class="explained"
            aria-haspopup="dialog"
            title=t!(i18n, derivation.open)
            data-testid=testid
            data-value=value.map(|value| part::text(move || value.get().to_string()))
            on:click=open
        >
            {part::text(move || text.get())}
        </button>
    }
    .into_any()
}
