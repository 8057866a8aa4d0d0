//! Controls of a recorded run: the recording, its card and allocator, and the facts that it fixes.

use gloo_file::File;
use leptos::prelude::*;
use vramscope_engine::setup::Setting;

use super::facts::FactList;
use super::page::{RecordedState, State};
use super::sizes::Sizes;
use crate::i18n::{t, use_i18n};
use crate::pages::plan::{CardChoice, Folded, FoldedName, ModelTabs};
use crate::part::{part, text};
use crate::shell::{Given, Store};
use crate::state::Key;
use crate::widgets::{Entry, Intake, OpenFiles, Select};
use crate::words;

/// The recording, what it fixes, and what may change under it: the card and its allocator.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let is_read = Memo::new(move |_| {
        let is_there = page.facts.with(Option::is_some);
        is_there && page.state.with(|state| matches!(state, State::Ready | State::Fault(_)))
    });
    view! {
        <form class="controls" on:submit=|ev| ev.prevent_default() aria-label=t!(i18n, plan.controls)>
            <section class="group group-single">
                <h2>{t!(i18n, plan.model)}</h2>
                <ModelTabs />
                <Chosen />
            </section>
            <Show when=move || is_read.get()>
                <Sizes />
                <CardChoice>
                    <Folded name=FoldedName::Limit keys=&[Key::LimitGib]>
                        <Entry key=Key::LimitGib placeholder="23.5" />
                    </Folded>
                </CardChoice>
                <section class="group">
                    <h2>{t!(i18n, recorded.allocator)}</h2>
                    <Select
                        key=Key::ExpandableSegments
                        choices=Signal::stored(Key::ExpandableSegments.choices().to_vec())
                    />
                </section>
                <OptimizerForms />
                <section class="group">
                    <h2>{t!(i18n, recorded.fixed)}</h2>
                    <p class="muted small">{t!(i18n, recorded.fixed_explain)}</p>
                    <FactList />
                </section>
            </Show>
        </form>
    }
}

/// Name of the recording on screen, and buttons that lead to another one.
#[component]
fn Chosen() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let (store, given) = (Store::get(), Given::get());
    let intake = Intake::get();
    let take = Callback::new(move |files: Vec<File>| intake.take_files(files));
    let leave = move |_| {
        given.file.set(None);
        store.set(Key::Recording, "");
    };
    let is_any = Memo::new(move |_| page.state.with(|state| *state != State::Nothing));
    let name = part(move || {
        is_any.get().then(|| {
            view! {
                <p class="recorded-name" data-testid="recording-name">
                    {text(move || page.name.get())}
                </p>
            }
            .into_any()
        })
    });
    view! {
        {name}
        <p class="muted small">{t!(i18n, recorded.drop)}</p>
        <div class="record-tools">
            <OpenFiles label=t!(i18n, recorded.open).into_any() testid="recording-file" accept=".gz" take />
            <Show when=move || is_any.get()>
                <button type="button" class="tool" data-testid="gallery-back" on:click=leave>
                    {t!(i18n, recorded.back)}
                </button>
            </Show>
        </div>
    }
}

/// Form of the optimizer's update, where others than the recorded one can be derived.
#[component]
fn OptimizerForms() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let choices = Memo::new(move |_| {
        let facts = page.facts.get();
        let forms = facts.map(|facts| facts.optimizer_forms.clone()).unwrap_or_default();
        let is_offered = |choice: &&str| *choice == "recorded" || forms.iter().any(|form| form == choice);
        let choices = Key::OptimizerForm.choices().iter().copied().filter(is_offered);
        choices.collect::<Vec<&'static str>>()
    });
    let is_any = Memo::new(move |_| choices.with(Vec::len) > 2);
    view! {
        <Show when=move || is_any.get()>
            <section class="group">
                <h2>{text(move || words::label(i18n, Key::Setting(Setting::Optim)))}</h2>
                <Select key=Key::OptimizerForm choices />
            </section>
        </Show>
    }
}
