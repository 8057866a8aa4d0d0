//! Single changes to the setup, or to a recorded step, with their effects before any is applied.

mod changed;
mod group;
mod trials;

use leptos::prelude::*;

use crate::i18n::{t, use_i18n};
use crate::part::{part, text};
use crate::widgets::ProgressLine;
pub use changed::{Changed, NoEffect};
pub use group::Group;
use group::of_entry;
pub use trials::Trials;
use trials::{Row, of_setup};

/// Lists the changes by entry, the group with the largest saving first. Nothing changes its place under the pointer.
#[component]
pub fn WhatIf() -> impl IntoView {
    let trials = of_setup();
    let groups = move || {
        let groups = trials.groups(|row| row.key, Row::cost, Row::name).into_iter();
        Some(groups.map(|(key, rows)| of_entry(key, rows)).collect_view().into_any())
    };
    listed(trials, groups)
}

/// Shows the progress of trying changes, and their groups.
pub fn listed<R: Clone + Send + Sync>(
    trials: Trials<R>,
    groups: impl FnMut() -> Option<AnyView> + Send + 'static,
) -> AnyView {
    let i18n = use_i18n();
    let groups = part(groups);
    view! {
        <p class="muted small">{t!(i18n, what_if.explain)}</p>
        <ProgressLine progress=trials.progress stop=move || trials.end() />
        <div
            class="what-if"
            on:pointerenter=move |_| trials.is_held.set(true)
            on:pointerleave=move |_| trials.is_held.set(false)
            aria-busy=text(move || trials.progress.get().is_some().to_string())
            data-over=text(move || trials.over.get().to_string())
            data-testid="what-if"
        >
            {groups}
        </div>
    }
    .into_any()
}
