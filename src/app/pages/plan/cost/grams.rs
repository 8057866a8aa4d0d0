//! Grams of CO₂ for a kilowatt-hour where the run takes place: this browser's own, since no number holds everywhere.

use leptos::prelude::*;

use super::editor::amount;
use crate::i18n::{t, use_i18n};
use crate::shell::preferences;

/// Name of the preference that keeps the number.
const KEPT: &str = "co2";

/// The number, if the person has given one.
pub fn kept() -> RwSignal<Option<f64>> {
    RwSignal::new(preferences::read(KEPT).and_then(|text| amount(&text)))
}

/// Entry of the number; an empty one takes it back.
#[component]
pub fn GramsField(grams: RwSignal<Option<f64>>) -> impl IntoView {
    let i18n = use_i18n();
    let shown = move || grams.get().map_or_else(String::new, |grams| grams.to_string());
    let change = move |typed: String| {
        // Text that is no number changes nothing: the field shows the kept number again.
        if let Some(given) = amount(&typed) {
            grams.set(Some(given));
        } else if typed.trim().is_empty() {
            grams.set(None);
        }
        preferences::write(KEPT, grams.get_untracked().map(|grams| grams.to_string()).as_deref());
    };
    view! {
        <label class="cost-samples">
            <span>{t!(i18n, cost.grams)}</span>
            <input
                class="say-field say-number"
                type="text"
                inputmode="decimal"
                autocomplete="off"
                data-testid="cost-grams"
                prop:value=shown
                on:change:target=move |ev| {
                    change(ev.target().value());
                    ev.target().set_value(&untrack(shown));
                }
            />
        </label>
    }
}
