//! The two setups beside each other, and what stands there before A is chosen.

use leptos::prelude::*;

use super::Both;
use crate::i18n::{t, use_i18n};
use crate::pages::launch::Phrases;
use crate::pages::plan::compare::{Column, Differences, Figures, Parts, Verdicts};
use crate::pages::plan::pins;
use crate::part::text;
use crate::shell::{Given, LaunchUse, OpenLaunch, Store};
use crate::state::{Draft, Key, Reading, Route};
use crate::worker::view::Compared;

/// Verdicts, needs and peaks of both, and the entries that differ.
#[component]
pub fn Sides(both: Both, compared: Compared) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let columns = || -> Vec<Column> {
        let all = both.iter().zip(&compared.sides).enumerate();
        all.map(|(place, (entries, found))| Column {
            pin: Some(place),
            entries: entries.clone(),
            found: Some(found.clone()),
        })
        .collect()
    };
    let [a, b] = both.each_ref().map(name);
    view! {
        <section class="card compare" data-testid="compared-sides">
            <div class="compared-head">
                <h2>{phrases.live("c_side")}</h2>
                <Tools />
            </div>
            <div class="compare-scroll" tabindex="0" role="region" aria-label=phrases.live("c_side")>
                <table class="compare-table compared-table" style:--columns="2">
                    <thead>
                        <tr>
                            <td></td>
                            <Head letter="A" name=a use_as=LaunchUse::A />
                            <Head letter="B" name=b use_as=LaunchUse::B />
                        </tr>
                    </thead>
                    <tbody>
                        <Verdicts all=columns() />
                        <Parts all=columns() />
                        <Figures all=columns() />
                        <Differences all=columns() />
                    </tbody>
                </table>
            </div>
        </section>
    }
}

/// Name of a setup: its model.
fn name(entries: &Draft) -> String {
    entries.model_name().unwrap_or("config.json").to_owned()
}

#[component]
fn Head(letter: &'static str, name: String, use_as: LaunchUse) -> impl IntoView {
    view! {
        <th scope="col" data-testid="compared-side" data-name=letter>
            <span class="compared-letter">{letter}</span>
            <span class="compared-name">{name}</span>
            <OpenAs letter use_as />
        </th>
    }
}

/// Button that asks for the files of one of the two.
#[component]
fn OpenAs(letter: &'static str, use_as: LaunchUse) -> impl IntoView {
    let i18n = use_i18n();
    let phrases = Phrases::of(i18n);
    let given = Given::get();
    let open = move |_| {
        let texts = Vec::new();
        given.launch.set(Some(OpenLaunch { texts, use_as }));
    };
    view! {
        <button
            type="button"
            class="tool"
            aria-haspopup="dialog"
            aria-label=text(move || phrases.now().say("c_open_as", &[("side", letter)]))
            data-testid=format!("compared-open-{letter}")
            on:click=open
        >
            {t!(i18n, model.launch)}
        </button>
    }
}

/// Buttons that swap the two, and a link to the page where B is edited.
#[component]
fn Tools() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let store = Store::get();
    let pinned = pins(store);
    let swap = move |_| {
        let b = store.reading().with_untracked(Reading::entries);
        let mut pins = pinned.get_untracked();
        let Some(a) = pins.replace(0, b) else { return };
        store.edit(|draft| {
            draft.take(&a, Key::decides_run);
            draft.set(Key::Compare, pins.text());
        });
    };
    view! {
        <div class="launch-tools">
            <button type="button" class="tool" data-testid="compared-swap" on:click=swap>
                {phrases.live("c_swap")}
            </button>
            <button
                type="button"
                class="tool"
                data-testid="compared-edit"
                on:click=move |_| store.route().set(Route::Plan)
            >
                {phrases.live("c_edit")}
            </button>
        </div>
    }
}

/// Ways to choose A: a launch file, or the current setup, which is B's too until one of them is changed.
#[component]
pub fn Empty() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let store = Store::get();
    let pinned = pins(store);
    let take = move |_| {
        let mut pins = pinned.get_untracked();
        pins.add(store.reading().with_untracked(Reading::entries));
        store.set(Key::Compare, pins.text());
    };
    view! {
        <section class="card compared-empty" data-testid="compared-empty">
            <p>{phrases.live("c_empty")}</p>
            <div class="launch-tools">
                <OpenAs letter="A" use_as=LaunchUse::A />
                <button type="button" class="tool" data-testid="compared-take" on:click=take>
                    {phrases.live("c_take")}
                </button>
            </div>
        </section>
    }
}
