//! Time of a step and its bottlenecks, in a chunk that loads on request.

mod chart;
mod entries;
mod explained;
mod figures;
mod follow;
mod kernels;
mod panel;
mod source;
mod untimed;
mod waits;

use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsValue;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::shell::{MyCard, Store, preferences};
use crate::state::{Key, Scope};

pub use follow::entries as time_entries;
pub use panel::TimePanel;

/// Preference that records that the user asked for the time before on this machine.
const WANTED: &str = "time";

/// Shows the time of a step, or a button that asks for it, since the first visit should not pay for its download.
#[component]
pub fn TimeCard() -> impl IntoView {
    let i18n = use_i18n();
    let wanted = RwSignal::new(untrack(is_wanted));
    let card = NodeRef::<html::Section>::new();
    let ask = move |_| {
        preferences::write(WANTED, Some("1"));
        // The button that holds the focus is about to disappear.
        if let Some(card) = card.get_untracked() {
            card.focus().ok();
        }
        wanted.set(true);
    };
    view! {
        <section class="card time" node_ref=card tabindex="-1" data-testid="time">
            <h2>{t!(i18n, time.title)}</h2>
            <Show
                when=move || wanted.get()
                fallback=move || {
                    view! {
                        <p class="muted small">{t!(i18n, time.invite)}</p>
                        <button type="button" class="tool" data-testid="estimate-time" on:click=ask>
                            {t!(i18n, time.estimate)}
                        </button>
                    }
                }
            >
                <LazyPart of=Lazy::Time />
            </Show>
        </section>
    }
}

/// Returns true if no request is needed: the code costs no download, or an entry or selection concerns the time.
fn is_wanted() -> bool {
    let is_entered = Key::all().any(|key| key.scope() == Scope::Time && Store::get().has(key));
    let is_file = window().location().protocol().is_ok_and(|protocol| protocol == "file:");
    preferences::read(WANTED).is_some() || MyCard::get().kernels().is_some() || is_entered || is_file || is_kept()
}

/// Returns true if a service worker keeps the whole page on this machine.
fn is_kept() -> bool {
    let of = |object: &JsValue, name: &str| js_sys::Reflect::get(object, &name.into()).ok();
    let workers = of(&window().navigator(), "serviceWorker").filter(|workers| workers.is_object());
    workers
        .and_then(|workers| of(&workers, "controller"))
        .is_some_and(|controller| controller.is_object())
}
