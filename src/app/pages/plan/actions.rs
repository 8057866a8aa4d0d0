//! What one does next with the setup on screen: make it fit, take its launch file, share it. One of them is primary.

use leptos::prelude::*;
use vramscope_engine::verdict::Verdict;

use super::pin::PinButton;
use crate::i18n::{t, t_string, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::text;
use crate::shell::{CopyButton, History, Store};
use crate::simulation::Simulation;

/// True while the search for other setups, or the launch file, is shown.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// The search and what it found.
    pub make_fit: RwSignal<bool>,
    /// The launch file.
    pub file: RwSignal<bool>,
}

/// Buttons beside the verdict, and what they open below it. What was found stays when one of it is applied and fits.
#[component]
pub fn Actions(
    /// True if the setup trains: other setups are searched for training alone.
    trains: bool,
) -> impl IntoView {
    let i18n = use_i18n();
    let (store, simulation) = (Store::get(), Simulation::get());
    let opened = Opened {
        make_fit: RwSignal::new(false),
        file: RwSignal::new(false),
    };
    provide_context(opened);
    let is_short = Memo::new(move |_| {
        let card = simulation.card().and_then(Result::ok);
        card.is_some_and(|card| card.fit.verdict == Verdict::Oom)
    });
    let history = store.history();
    view! {
        <div class="actions">
            {trains
                .then(|| {
                    view! {
                        <button
                            type="button"
                            class=move || if is_short.get() { "primary" } else { "tool" }
                            data-testid="make-fit"
                            aria-expanded=text(move || opened.make_fit.get().to_string())
                            on:click=move |_| opened.make_fit.update(|open| *open = !*open)
                        >
                            {move || match is_short.get() {
                                true => t_string!(i18n, make_fit.go),
                                false => t_string!(i18n, make_fit.better),
                            }}
                        </button>
                        <button
                            type="button"
                            class=move || if is_short.get() { "tool" } else { "primary" }
                            data-testid="launch-file"
                            aria-expanded=text(move || opened.file.get().to_string())
                            on:click=move |_| opened.file.update(|open| *open = !*open)
                        >
                            {t!(i18n, make_fit.file)}
                        </button>
                    }
                })}
            <CopyButton
                testid="share-link"
                label=|i18n| t_string!(i18n, header.share)
                text=move || store.link_to_keep()
            />
            <PinButton />
            <UndoHere history />
        </div>
        <Show when=move || opened.file.get()>
            <LazyPart of=Lazy::LaunchFile />
        </Show>
        <Show when=move || opened.make_fit.get()>
            <LazyPart of=Lazy::MakeFit />
        </Show>
    }
}

/// The last change undone, beside what it changed; absent before the first one.
#[component]
fn UndoHere(history: History) -> impl IntoView {
    let i18n = use_i18n();
    view! {
        <Show when=move || history.can_undo()>
            <button type="button" class="tool" data-testid="undo-here" on:click=move |_| history.undo()>
                {t!(i18n, header.undo)}
            </button>
        </Show>
    }
}
