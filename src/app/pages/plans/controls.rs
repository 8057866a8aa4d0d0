//! Controls of the recommendations page.

use leptos::prelude::*;
use vramscope_engine::setup::Setting;
use vramscope_plan::search::Entry as Of;

use super::entries::name;
use super::page::PlansState;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::{CardChoice, ModelSource, SequenceLength};
use crate::shell::Store;
use crate::state::Key;
use crate::widgets::{Control, Entry, Number};
use crate::worker::plans::open;

/// Controls for model, card, samples, and the entries that may change.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let page = PlansState::get();
    let any = Signal::derive(move || t_string!(i18n, recommend.as_many).to_string());
    view! {
        <form
            id="plan-form"
            class="controls"
            on:submit=move |event| {
                event.prevent_default();
                page.search();
            }
            aria-label=move || t_string!(i18n, nav.recommend)
        >
            <ModelSource />
            <CardChoice />
            <section class="group">
                <h2>{t!(i18n, recommend.sample)}</h2>
                <div class="pair">
                    <SequenceLength />
                    <Control of=Setting::Images />
                </div>
                <Control of=Setting::ImageSizes />
                <Control of=Setting::Frames />
            </section>
            <section class="group">
                <h2>{t!(i18n, recommend.target)}</h2>
                <Number key=Key::Effective step=8 placeholder=any />
                <div class="pair">
                    <Number key=Key::Gpus />
                    <Entry key=Key::Margin />
                </div>
            </section>
            <MayChange />
        </form>
    }
}

/// Selects the entries that may change; all others keep their values from the plan page.
#[component]
fn MayChange() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let now = Memo::new(move |_| open(&store.text(Key::Open)));
    let row = move |entry: Of| {
        view! {
            <label class="plans-open">
                <input
                    type="checkbox"
                    data-testid=format!("open-{}", entry.name())
                    prop:checked=move || now.with(|now| now.contains(&entry))
                    on:change:target=move |event| store.set(Key::Open, changed(&now.get_untracked(), entry, event.target().checked()))
                />
                <span>{move || name(i18n, entry.name())}</span>
            </label>
        }
    };
    view! {
        <fieldset class="group plans-fieldset">
            <legend>{t!(i18n, recommend.open)}</legend>
            <p class="muted small">{t!(i18n, recommend.open_explain)}</p>
            <div class="plans-entries">{Of::ALL.map(row)}</div>
        </fieldset>
    }
}

/// Text of the selection after adding or removing an entry; empty for the default selection.
fn changed(now: &[Of], entry: Of, is_open: bool) -> String {
    let wanted = |other: &Of| if *other == entry { is_open } else { now.contains(other) };
    let all: Vec<Of> = Of::ALL.into_iter().filter(wanted).collect();
    if all == open("") {
        return String::new();
    }
    if all.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<&str> = all.into_iter().map(Of::name).collect();
    names.join(",")
}
