//! Files that start a run, looked at over the page: what became of each line, and the setup that results.

mod answer;
mod begin;
mod files;
mod lists;
mod phrases;
mod take;

use leptos::html;
use leptos::prelude::*;

use crate::i18n::use_i18n;
use crate::part::part;
use crate::shell::{Given, LaunchUse, OpenLaunch, Store};
use crate::state::Reading;
use crate::worker::launched::{LaunchAnswer, LaunchText};
use crate::worker::{Answer, Ask, Engine, Slot};
use answer::AnswerView;
use begin::Begin;
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
}

impl Looked {
    /// Asks the engine whenever the files or the page's entries change.
    fn provide() -> Self {
        let looked = Self {
            given: Given::get(),
            answer: RwSignal::new(None),
            square: RwSignal::new(None),
        };
        let (engine, reading) = (Engine::get(), Store::get().reading());
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        let texts = Memo::new(move |_| looked.texts());
        Effect::new(move || {
            let texts = texts.get();
            looked.square.set(None);
            if texts.is_empty() {
                looked.answer.set(None);
                return engine.cancel(Slot::Launch);
            }
            let entries = entries.get();
            engine.ask(Slot::Launch, Ask::Launch { texts, entries }, move |answer, _| {
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
    let body = part(move || {
        Some(match has_files.get() {
            false => view! { <Begin /> }.into_any(),
            true => view! {
                <Files />
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
