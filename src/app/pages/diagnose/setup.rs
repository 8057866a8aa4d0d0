//! Setup of the run that the input belongs to.

use leptos::prelude::*;
use serde_json::json;

use super::reader::Reader;
use crate::i18n::{t, use_i18n};
use crate::pages::plan::Controls;
use crate::part::part;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Address, Key, Reading, Route};

/// Form for model, card and setup of the run; initially open if the person has named one.
#[component]
pub fn RunSetup() -> impl IntoView {
    let i18n = use_i18n();
    let (store, reader) = (Store::get(), Reader::get());
    // The setup on which a visit opens is an example: its findings would be about another run than the one that crashed.
    let is_named = untrack(|| {
        store
            .reading()
            .with(|reading| reading.entries().entries().next().is_some() && !reading.good.is_as_opened())
    });
    let open = RwSignal::new(is_named);
    let run = Memo::new(move |_| if open.get() { named(store) } else { String::new() });
    Effect::new(move || reader.know(run.get()));
    let on_toggle = move |event: leptos::ev::Event| {
        let details: web_sys::HtmlDetailsElement = event_target(&event);
        open.set(details.open());
    };
    let controls = part(move || {
        open.get().then(|| {
            Simulation::provide(store);
            view! { <Controls /> }.into_any()
        })
    });
    view! {
        <details class="card diagnose-setup" prop:open=is_named on:toggle=on_toggle data-testid="diagnose-setup">
            <summary>{t!(i18n, diagnose.setup)}</summary>
            <p class="muted small">{t!(i18n, diagnose.setup_explain)}</p>
            {controls}
            {part(move || {
                let fault = reader.answer.with(|answer| answer.as_ref()?.fault.clone())?;
                Some(view! { <p class="refusal" role="alert" data-testid="setup-fault">{fault}</p> }.into_any())
            })}
        </details>
    }
}

/// JSON of the named run, as the diagnoser expects it.
fn named(store: Store) -> String {
    let is_chosen = store.has(Key::Gpu);
    store.reading().with(|Reading { good, gpu, .. }| {
        json!({
            "model": good.get(Key::Model).trim(),
            "config": good.get(Key::Config),
            "gpu": gpu,
            "gpu_is_chosen": is_chosen,
            "setup": good.setup_values(),
        })
        .to_string()
    })
}

/// Link to the planner with the run's entries changed.
pub fn planner(store: Store, changes: &[(String, String)]) -> String {
    let mut address = Address {
        route: Route::Plan,
        ..store.address()
    };
    for (key, value) in changes {
        if let Some(key) = Key::named(key) {
            address.draft.set(key, value.clone());
        }
    }
    address.to_fragment()
}
