//! Selection of the model.

use gloo_file::File;
use leptos::prelude::*;
use vramscope_engine::Model;

use crate::hub::{Sought, Taken};
use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::{part, truth};
use crate::shell::{Given, Store};
use crate::simulation::{Outcome, Simulation};
use crate::state::{Grouped, Key, Reading, Route, Source, grouped};
use crate::widgets::{
    ComboOption, Combobox, Help, HelpButton, LaunchButton, OpenFiles, TakesOther, dropped, read_text,
};
use crate::worker::Refusal;

/// Selects the model: from the catalogue, or a `config.json` that is typed, pasted, dropped or opened.
#[component]
pub fn ModelSource(
    /// True where what is known of a name is told elsewhere on the page.
    #[prop(optional)]
    is_told_elsewhere: bool,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let by_config = Given::get().by_config;
    // Kept so that the text survives a switch to the catalogue and back.
    let text = RwSignal::new(store.text(Key::Config));
    let id = config_id(store);
    Effect::new(move || {
        let entered = store.text(Key::Config);
        if !entered.is_empty() {
            // One that was found for an id stands for that name.
            by_config.update(|by_config| *by_config |= id.get().is_none());
            text.set(entered);
        }
    });
    Effect::new(move || match by_config.get() {
        true => store.set(Key::Config, text.get_untracked()),
        false if id.get_untracked().is_none() => store.set(Key::Config, ""),
        false => {}
    });
    view! {
        <section class="group group-single">
            <div class="launch-head">
                <h2>{t!(i18n, plan.model)}</h2>
                <LaunchButton />
            </div>
            <ModelTabs />
            <Show when=move || by_config.get() fallback=move || view! { <CatalogueChoice is_told_elsewhere /> }>
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

/// Id whose configuration is used.
fn config_id(store: Store) -> Memo<Option<String>> {
    let reading = store.reading();
    Memo::new(move |_| reading.with(|reading| reading.good.config_id().map(str::to_owned)))
}

#[component]
fn CatalogueChoice(is_told_elsewhere: bool) -> impl IntoView {
    let store = Store::get();
    let other = takes_model(store);
    let name = sought_name(store);
    let error = model_error();
    // What is said of a name that is unknown stands below, with what can be done.
    let error = Signal::derive(move || error.get().filter(|_| name.with(String::is_empty)));
    view! {
        <Combobox key=Key::Model options=model_options() error other />
        {(!is_told_elsewhere).then(|| view! { <HubPlace take=other /> })}
    }
}

/// All models of the catalogue, grouped by their families.
pub fn model_options() -> Signal<Vec<ComboOption>> {
    let option = |Grouped { name, vendor, group }: Grouped| ComboOption {
        value: name.into(),
        detail: String::new(),
        words: format!("{vendor} {name}"),
        group,
    };
    Signal::stored(grouped(&Model::catalogue()).into_iter().map(option).collect())
}

/// Takes any name as the model, also one that the catalogue has not.
pub fn takes_model(store: Store) -> TakesOther {
    let given = Given::get();
    let typing = given.names_model;
    on_cleanup(move || typing.set(false));
    let take = Callback::new(move |(name, is_typed)| {
        if is_typed {
            store.continue_typing(Key::Model);
        }
        given.by_config.set(false);
        use_model(
            store,
            Taken {
                name,
                ..Taken::default()
            },
        );
    });
    TakesOther { take, typing }
}

/// Name that is looked for; empty if it is known.
fn sought_name(store: Store) -> Memo<String> {
    let reading = store.reading();
    Memo::new(move |_| reading.with(|reading| unknown_name(&reading.source)))
}

/// What is known of the model's name, and the offer to get its configuration.
#[component]
pub fn HubPlace(
    /// What takes a name.
    take: TakesOther,
) -> impl IntoView {
    let store = Store::get();
    let reading = store.reading();
    let name = sought_name(store);
    let current = Memo::new(move |_| {
        reading.with(|Reading { good, .. }| {
            let name = good.model_name().unwrap_or_default().to_owned();
            (name, good.config_id().is_some())
        })
    });
    provide_context(Sought {
        name: name.into(),
        current: current.into(),
        is_typed: take.typing.into(),
        take: Callback::new(move |taken| use_model(store, taken)),
    });
    // Stays, so that it can say of a model that it has found what a person has to know.
    let is_wanted = Memo::new(move |was: Option<&bool>| {
        was == Some(&true) || current.with(|(_, has_config)| *has_config) || name.with(|name| !name.is_empty())
    });
    part(move || is_wanted.get().then(|| view! { <LazyPart of=Lazy::Hub /> }.into_any()))
}

/// Name that the catalogue does not have; empty if it has it, or there is a configuration.
fn unknown_name(source: &Source) -> String {
    match source {
        Source::Catalogue(name) if !Model::catalogue().contains(&name.as_str()) => name.clone(),
        _ => String::new(),
    }
}

/// Makes a model that of the page.
fn use_model(store: Store, taken: Taken) {
    store.edit(|draft| {
        draft.set(Key::Model, taken.name);
        draft.set(Key::Config, taken.config);
        draft.stand_in(taken.bound.as_deref());
    });
}

#[component]
fn ConfigEntry(text: RwSignal<String>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let error = model_error();
    let open_help = RwSignal::new(false);
    let enter = move |entered: String| {
        text.set(entered.clone());
        store.edit(|draft| draft.set_config(entered));
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
