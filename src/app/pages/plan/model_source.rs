//! Selection of the model.

use gloo_file::File;
use leptos::prelude::*;
use vramscope_engine::Model;

use crate::i18n::{t, use_i18n};
use crate::part::truth;
use crate::shell::{Given, Store};
use crate::simulation::{Outcome, Simulation};
use crate::state::{Key, Route};
use crate::widgets::{ComboOption, Combobox, Help, HelpButton, LaunchButton, OpenFiles, dropped, read_text};
use crate::worker::Refusal;

/// Selects the model: from the catalogue, or a `config.json` that is typed, pasted, dropped or opened.
#[component]
pub fn ModelSource() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let by_config = Given::get().by_config;
    // Kept so that the text survives a switch to the catalogue and back.
    let text = RwSignal::new(store.text(Key::Config));
    Effect::new(move || {
        let entered = store.text(Key::Config);
        if !entered.is_empty() {
            by_config.set(true);
            text.set(entered);
        }
    });
    Effect::new(move || {
        let config = if by_config.get() {
            text.get_untracked()
        } else {
            String::new()
        };
        store.set(Key::Config, config);
    });
    view! {
        <section class="group group-single">
            <div class="launch-head">
                <h2>{t!(i18n, plan.model)}</h2>
                <LaunchButton />
            </div>
            <ModelTabs />
            <Show when=move || by_config.get() fallback=CatalogueChoice>
                <ConfigEntry text />
            </Show>
        </section>
    }
}

/// Tabs for the source of the model: the catalogue, a configuration, or a recorded step.
#[component]
pub fn ModelTabs() -> impl IntoView {
    let i18n = use_i18n();
    let by_config = Given::get().by_config;
    let route = Store::get().route();
    let is_recorded = move || route.get() == Route::Recorded;
    let show = move |config: bool| {
        by_config.set(config);
        route.set(Route::Plan);
    };
    let catalogue = Signal::derive(move || !is_recorded() && !by_config.get());
    let config = Signal::derive(move || !is_recorded() && by_config.get());
    view! {
        <div class="segments-row tabs" role="group">
            <Tab on=catalogue pick=move || show(false) testid="from-catalogue">
                {t!(i18n, model.catalogue)}
            </Tab>
            <Tab on=config pick=move || show(true) testid="from-config">
                "config.json"
            </Tab>
            <Tab
                on=Signal::derive(is_recorded)
                pick=move || route.set(Route::Recorded)
                testid="from-recording"
            >
                {t!(i18n, model.recording)}
            </Tab>
        </div>
    }
}

#[component]
fn Tab(on: Signal<bool>, pick: impl Fn() + 'static, testid: &'static str, children: Children) -> impl IntoView {
    view! {
        <button
            type="button"
            class="segment"
            class:segment-on=on
            aria-pressed=crate::part::text(move || on.get().to_string())
            data-testid=testid
            on:click=move |_| pick()
        >
            {children()}
        </button>
    }
}

/// The engine's message, if the model cannot be read.
fn model_error() -> Signal<Option<String>> {
    let outcome = Simulation::get().outcome;
    Signal::derive(move || match outcome.get() {
        Outcome::Refused(Refusal::Model(message)) => Some(message),
        _ => None,
    })
}

#[component]
fn CatalogueChoice() -> impl IntoView {
    let options: Vec<_> = Model::catalogue()
        .into_iter()
        .map(|name| ComboOption {
            value: name.into(),
            detail: String::new(),
            group: String::new(),
        })
        .collect();
    view! { <Combobox key=Key::Model options=Signal::stored(options) error=model_error() /> }
}

#[component]
fn ConfigEntry(text: RwSignal<String>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = model_error();
    let open_help = RwSignal::new(false);
    let enter = move |entered: String| {
        text.set(entered.clone());
        store.set(Key::Config, entered);
    };
    let take = Callback::new(move |files: Vec<File>| {
        if let Some(file) = files.first() {
            read_text(file, enter);
        }
    });
    view! {
        <div
            class="field config"
            class:field-wrong=truth(move || error.get().is_some())
            {..dropped(take)}
        >
            <div class="field-head">
                <label class="field-label" for="control-config">
                    {t!(i18n, setup.config)}
                </label>
                <HelpButton key=Key::Config open=open_help />
            </div>
            <Help key=Key::Config open=open_help />
            <textarea
                id="control-config"
                data-testid="config"
                rows="8"
                spellcheck="false"
                autocomplete="off"
                placeholder=t!(i18n, model.config_hint)
                aria-invalid=crate::part::text(move || error.get().is_some().to_string())
                aria-describedby="error-config help-config"
                prop:value=crate::part::text(move || text.get())
                on:input:target=move |ev| enter(ev.target().value())
            ></textarea>
            <OpenFiles
                label=t!(i18n, model.open).into_any()
                testid="config-file"
                accept=".json,application/json"
                take
            />
            <p class="field-error" id="error-config" role="alert" data-testid="error-config">
                {crate::part::text(move || error.get().unwrap_or_default())}
            </p>
        </div>
    }
}
