//! Single changes to the setup with their effects, before any is applied.

mod group;
mod row;
mod trials;

use leptos::prelude::*;

use crate::i18n::{t, use_i18n};
use crate::part::text;
use crate::widgets::ProgressLine;
use group::Group;
use trials::Trials;

/// Lists the changes by entry, the group with the largest saving first.
#[component]
pub fn WhatIf() -> impl IntoView {
    let i18n = use_i18n();
    let trials = Trials::follow();
    let groups = move || {
        let groups = trials.groups();
        groups
            .into_iter()
            .map(|(key, rows)| view! { <Group key rows /> })
            .collect_view()
    };
    view! {
        <p class="muted small">{t!(i18n, what_if.explain)}</p>
        <ProgressLine progress=trials.progress stop=move || trials.end() />
        <div
            class="what-if"
            aria-busy=text(move || trials.progress.get().is_some().to_string())
            data-over=text(move || trials.over.get().to_string())
            data-testid="what-if"
        >
            {groups}
        </div>
    }
}
