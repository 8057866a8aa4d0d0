//! Files that start a run, looked at over the page: what became of each line, and the setup that results.

mod answer;
mod begin;
mod figure;
mod files;
mod lists;
mod phrases;
mod take;

use leptos::html;
use leptos::prelude::*;
use vramscope_engine::Model;
use vramscope_engine::setup::Setting;
use vramscope_engine::simulate::Change;

use crate::hub::{Sought, Taken};
use crate::i18n::use_i18n;
use crate::lazy::{Lazy, LazyPart};
use crate::part::part;
use crate::shell::{Given, LaunchUse, OpenLaunch, Store};
use crate::state::{Draft, Reading};
use crate::widgets::take_way;
use crate::worker::launched::{FoundModel, LaunchAnswer, LaunchText, Launched};
use crate::worker::{Answer, Ask, Engine, Slot};
use answer::AnswerView;
use begin::Begin;
use figure::Figure;
use files::Files;
pub use phrases::Phrases;
use take::Take;

/// Files on screen, and what became of them.
#[derive(Debug, Clone, Copy)]
struct Looked {
    given: Given,
    /// Answer to the files; `None` while there is none.
    answer: RwSignal<Option<LaunchAnswer>>,
    /// Side of the largest square image, once the person takes it.
    square: RwSignal<Option<String>>,
    /// What was found for the name of the files' model.
    found: RwSignal<Option<FoundModel>>,
    /// Ways out of a refusal that the person took.
    ways: RwSignal<Vec<Change>>,
}

impl Looked {
    /// Asks the engine whenever the files or the page's entries change.
    fn provide() -> Self {
        let looked = Self {
            given: Given::get(),
            answer: RwSignal::new(None),
            square: RwSignal::new(None),
            found: RwSignal::new(None),
            ways: RwSignal::default(),
        };
        let (engine, reading) = (Engine::get(), Store::get().reading());
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        let texts = Memo::new(move |_| looked.texts());
        Effect::new(move || {
            let texts = texts.get();
            looked.square.set(None);
            looked.ways.set(Vec::new());
            if texts.is_empty() {
                looked.answer.set(None);
                return engine.cancel(Slot::Launch);
            }
            let launched = Launched {
                texts,
                entries: entries.get(),
                found: looked.found.get(),
            };
            engine.ask(Slot::Launch, Ask::Launch(Box::new(launched)), move |answer, _| {
                if let Some(Answer::Launch(answer)) = answer {
                    looked.answer.try_set(answer.open());
                }
            });
        });
        on_cleanup(move || engine.cancel(Slot::Launch));
        provide_context(looked);
        looked
    }

    fn get() -> Self {
        expect_context()
    }

    /// The setup that the files give, with what the person took of it; `None` where there is none, or another run's.
    fn setup(self) -> Option<Draft> {
        let read = self.answer.get()?.ok()?;
        // Of another run no figure is of use.
        let mut entries = read.entries.ok().filter(|_| read.another_run.is_empty())?;
        if let Some(side) = self.square.get() {
            entries.set(Setting::ImageSizes, format!("{side}x{side}"));
        }
        self.ways
            .with(|ways| ways.iter().for_each(|way| take_way(&mut entries, way)));
        Some(entries)
    }

    /// Name of a model that is looked for: the files' own, or one that was chosen in its place; empty if it is known.
    fn unknown_model(self) -> String {
        let read = self.answer.with(|answer| answer.as_ref()?.as_ref().ok().cloned());
        let Some(name) = read
            .filter(|read| read.model_fault.is_some())
            .and_then(|read| read.model)
        else {
            return String::new();
        };
        match self.found.get().filter(|found| found.name == name) {
            // A configuration that the engine does not read is no matter of names.
            Some(found) if !found.config.is_empty() => String::new(),
            Some(found) => found.id,
            None if Model::catalogue().contains(&name.as_str()) => String::new(),
            None => name,
        }
    }

    /// Says what was found for the name of the files' model.
    fn find(self, taken: Taken) {
        let read = self
            .answer
            .with_untracked(|answer| answer.as_ref()?.as_ref().ok().cloned());
        let Some(name) = read.and_then(|read| read.model) else {
            return;
        };
        self.found.set(Some(FoundModel {
            name,
            id: taken.name,
            config: taken.config,
            bound: taken.bound,
        }));
    }

    /// Files on screen; reactive.
    fn texts(self) -> Vec<LaunchText> {
        self.given
            .launch
            .with(|open| open.as_ref().map_or_else(Vec::new, |open| open.texts.clone()))
    }

    /// What the setup is for; reactive.
    fn use_as(self) -> LaunchUse {
        self.given
            .launch
            .with(|open| open.as_ref().map_or_else(LaunchUse::default, |open| open.use_as))
    }

    /// Changes the files.
    fn edit(self, edit: impl FnOnce(&mut OpenLaunch)) {
        self.given.launch.update(|open| edit(open.get_or_insert_default()));
    }

    fn close(self) {
        self.given.launch.set(None);
    }
}

/// Dialog on the files; the browser closes it on Escape and restores the focus.
#[component]
pub fn LaunchDialog() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let looked = Looked::provide();
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) = dialog.get() {
            // Fails only if it is open already.
            dialog.show_modal().ok();
        }
    });
    let has_files = Memo::new(move |_| !looked.texts().is_empty());
    let name = Memo::new(move |_| looked.unknown_model());
    provide_context(Sought {
        name: name.into(),
        current: Signal::derive(move || {
            let found = looked.found.get();
            found.map_or_else(Default::default, |found| (found.id, !found.config.is_empty()))
        }),
        is_typed: Signal::stored(false),
        take: Callback::new(move |taken| looked.find(taken)),
    });
    // Stays, so that it can say of a model that it has found what a person has to know.
    let is_sought = Memo::new(move |was: Option<&bool>| was == Some(&true) || name.with(|name| !name.is_empty()));
    let model = part(move || is_sought.get().then(|| view! { <LazyPart of=Lazy::Hub /> }.into_any()));
    let body = part(move || {
        Some(match has_files.get() {
            false => view! { <Begin /> }.into_any(),
            true => view! {
                <Files />
                {model.clone()}
                <Figure />
                <AnswerView />
            }
            .into_any(),
        })
    });
    view! {
        <dialog
            class="launch"
            node_ref=dialog
            aria-labelledby="launch-title"
            data-testid="launch"
            on:close=move |_| looked.close()
        >
            <div class="launch-title">
                <h2 id="launch-title">{phrases.live("title")}</h2>
                <button
                    type="button"
                    class="derivation-close"
                    aria-label=phrases.live("close")
                    data-testid="launch-close"
                    on:click=move |_| looked.close()
                >
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                        <path d="M4 4l8 8M12 4l-8 8" />
                    </svg>
                </button>
            </div>
            <div class="launch-body">{body}</div>
            <Take />
        </dialog>
    }
}
