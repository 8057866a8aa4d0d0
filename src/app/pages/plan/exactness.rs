//! How exact the figures are, from the measured steps of the model's family; fetched when someone asks.

mod panel;

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
pub use panel::ExactnessPanel;

/// The question, and its answer below it once it is pressed.
#[component]
pub fn ExactnessPlace() -> impl IntoView {
    let i18n = use_i18n();
    let is_open = RwSignal::new(false);
    let on_toggle = move |event: leptos::ev::Event| {
        let details = event
            .target()
            .and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
        is_open.set(details.is_some_and(|details| details.open()));
    };
    view! {
        <details class="finer exactness" on:toggle=on_toggle>
            <summary data-testid="exactness">{t!(i18n, exactness.how)}</summary>
            <Show when=move || is_open.get()>
                <LazyPart of=Lazy::Exactness />
            </Show>
        </details>
    }
}
