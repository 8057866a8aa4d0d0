//! Pins setups for comparison with the current one.

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::shell::Store;
use crate::state::{Key, Pins, Reading};
use crate::widgets::error_of;

/// Pinned setups; reactive.
pub fn pins(store: Store) -> Memo<Pins> {
    let reading = store.reading();
    Memo::new(move |_| reading.with(|r| Pins::read(r.good.get(Key::Compare)).unwrap_or_default()))
}

/// Button that pins the current setup.
#[component]
pub fn PinButton() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let pinned = pins(store);
    let full = move || !pinned.with(|p| p.has_room());
    let pin = move |_| {
        let entries = store.reading().with_untracked(Reading::entries);
        let mut pins = pinned.get_untracked();
        pins.add(entries);
        store.set(Key::Compare, pins.text());
    };
    let title = move || full().then(|| t_string!(i18n, compare.full));
    view! {
        <button type="button" class="tool pin" data-testid="pin" disabled=full title=title on:click=pin>
            {t!(i18n, compare.pin)}
        </button>
    }
}

/// Comparison table; empty if nothing is pinned.
#[component]
pub fn Pinned() -> impl IntoView {
    let pinned = pins(Store::get());
    let error = error_of(Key::Compare);
    let is_any = move || pinned.with(|p| !p.all().is_empty()) || error.get().is_some();
    view! {
        <Show when=is_any>
            <LazyPart of=Lazy::Compare />
        </Show>
    }
}
