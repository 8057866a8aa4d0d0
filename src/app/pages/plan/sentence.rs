//! The setup as a sentence that is the form: model, method, cards, tokens, batch. All other settings stand beside the
//! results once they are asked for.

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_engine::setup::Setting;

use super::controls::card_options;
use super::model_source::{HubPlace, model_options, takes_model};
use super::own_card::{OwnCard, Said};
use super::settings::Shown;
use crate::i18n::{t, use_i18n};
use crate::part::{part, text};
use crate::shell::{Given, Store};
use crate::simulation::Simulation;
use crate::state::Key;
use crate::widgets::{Combobox, SayChoice, SayNumber, error_of};

/// Entries of the sentence.
const SAID: [Key; 4] = [
    Key::World,
    Key::Setting(Setting::Freeze),
    Key::Setting(Setting::Seq),
    Key::Setting(Setting::Batch),
];

/// The sentence, what is wrong in it, and the ways to all settings and to this machine's card.
#[component]
pub fn Sentence() -> impl IntoView {
    let i18n = use_i18n();
    let (store, simulation) = (Store::get(), Simulation::get());
    let shown = Shown::new();
    let other = takes_model(store);
    // A configuration that nobody has named is the model, whatever was chosen before.
    let named = Memo::new(move |_| {
        let reading = store.reading();
        reading.with(|reading| reading.good.model_name().is_none().then(|| "config.json".to_owned()))
    });
    let none: Signal<Option<String>> = Signal::stored(None);
    let own_length = simulation.text(|run| run.inputs.seq.to_string());
    let has_text = Memo::new(move |_| shown.has_text());
    let errors = SAID.map(error_of);
    let card_error = move || {
        let known = store.reading().with(|reading| Device::by_name(&reading.gpu).err());
        known.map(|error| error.to_string())
    };
    let error = Memo::new(move |_| errors.iter().find_map(|error| error.get()).or_else(card_error));
    let trains = Memo::new(move |_| shown.has(Setting::Freeze));
    view! {
        <section class="say" data-testid="sentence">
            <form class="sentence" on:submit=|ev| ev.prevent_default() aria-label=t!(i18n, plan.controls)>
                <Combobox key=Key::Model options=model_options() error=none other inline=true instead=named />
                <Show when=move || trains.get()>
                    <span class="say-mark">"·"</span>
                    <SayChoice key=Setting::Freeze choices=shown.choices(Setting::Freeze) />
                </Show>
                <span class="say-mark">"·"</span>
                <span class="say-words">{t!(i18n, intake.on)}</span>
                <SayNumber key=Key::World />
                <span class="say-words">"×"</span>
                <Combobox key=Key::Gpu options=card_options() error=none inline=true />
                <Show when=move || has_text.get()>
                    <span class="say-mark">"·"</span>
                    <SayNumber key=Setting::Seq step=256 placeholder=own_length />
                    <span class="say-words">{t!(i18n, intake.tokens)}</span>
                </Show>
                <span class="say-mark">"·"</span>
                <span class="say-words">{t!(i18n, intake.batch)}</span>
                <SayNumber key=Setting::Batch />
            </form>
            <SayTools />
            {part(move || {
                let words = error.get()?;
                Some(view! { <p class="field-error" role="alert" data-testid="say-error">{words}</p> }.into_any())
            })}
            <HubPlace take=other />
        </section>
    }
}

/// The ways to all settings and to this machine's card.
#[component]
fn SayTools() -> impl IntoView {
    let i18n = use_i18n();
    let is_open = Given::get().all_settings;
    let said = RwSignal::new(None::<Said>);
    let words = move || said.with(|said| said.as_ref().map_or_else(String::new, |said| said.words(i18n)));
    view! {
        <div class="say-tools">
            <button
                type="button"
                class="tool"
                data-testid="all-settings"
                aria-expanded=text(move || is_open.get().to_string())
                aria-controls="settings"
                on:click=move |_| is_open.update(|open| *open = !*open)
            >
                {t!(i18n, intake.all_settings)}
            </button>
            <OwnCard said />
            <span class="muted small" role="status" data-testid="own-card-said">
                {text(words)}
            </span>
        </div>
    }
}
