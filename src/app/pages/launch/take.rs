//! Buttons that take the setup of the files.

use leptos::prelude::*;

use super::Looked;
use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::part::part;
use crate::shell::{LaunchUse, Store};
use crate::state::{Draft, Key, Pins, Route};
use crate::worker::launched::{LaunchRead, ReadFate};

/// Buttons below the answer, as soon as there is a setup to take.
#[component]
pub fn Take() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let looked = Looked::get();
    let store = Store::get();
    part(move || {
        let read = looked.answer.get()?.ok()?;
        let entries = looked.setup()?;
        let words = phrases.now();
        let use_as = looked.use_as();
        let rest = leaves_out(&read);
        let label = words.word(match (use_as, rest) {
            (LaunchUse::A, _) => "use_a",
            (LaunchUse::B, _) => "use_b",
            (LaunchUse::Plan, true) => "use_rest",
            (LaunchUse::Plan, false) => "use",
        });
        let also = entries.clone();
        let take = move |_| {
            apply(store, use_as, &entries);
            looked.close();
        };
        let compare = move |_| {
            apply(store, LaunchUse::A, &also);
            looked.close();
        };
        let compare = (use_as == LaunchUse::Plan).then(|| {
            view! {
                <button type="button" class="tool" data-testid="launch-against" on:click=compare>
                    {words.word("against")}
                </button>
            }
        });
        let note = rest.then(|| view! { <p class="muted small">{words.word("rest")}</p> });
        let view = view! {
            <div class="launch-take">
                {note}
                <div class="launch-tools">
                    <button type="button" class="primary" data-testid="launch-use" on:click=take>
                        {label}
                    </button>
                    {compare}
                </div>
            </div>
        };
        Some(view.into_any())
    })
}

/// Returns true if something that changes memory, or may, is left out of the setup.
fn leaves_out(read: &LaunchRead) -> bool {
    let is_open = |fate: &ReadFate| {
        matches!(
            fate,
            ReadFate::NotSimulated(_) | ReadFate::Wrong(_) | ReadFate::Unknown(_)
        )
    };
    !read.not_simulated.is_empty() || read.lines.iter().any(|line| is_open(&line.fate))
}

/// Makes a setup the current one, or the first of two that are compared: one step to undo.
fn apply(store: Store, use_as: LaunchUse, entries: &Draft) {
    let is_own = store.route().get_untracked() == Route::Diagnose;
    store.edit(|draft| match use_as {
        LaunchUse::A => {
            let mut pins = Pins::read(draft.get(Key::Compare)).unwrap_or_default();
            if pins.replace(0, entries.clone()).is_none() {
                pins.add(entries.clone());
            }
            draft.set(Key::Compare, pins.text());
        }
        LaunchUse::Plan | LaunchUse::B => draft.take(entries, Key::decides_run),
    });
    match use_as {
        LaunchUse::Plan if is_own => {}
        LaunchUse::Plan => store.route().set(Route::Plan),
        LaunchUse::A | LaunchUse::B => store.route().set(Route::Compare),
    }
}
