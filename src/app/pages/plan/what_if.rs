//! Single changes to the setup, or to a recorded step, with their effects before any is applied.

mod changed;
mod group;
mod trials;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::Key;
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
        // What is not simulated says nothing of itself: a dry run does, of all of it.
        let (mut lines, mut unsimulated) = (Vec::new(), 0);
        for (key, mut rows) in groups {
            let all = rows.len();
            rows.retain(|row| !row.is_unsimulated());
            unsimulated += all - rows.len();
            if !rows.is_empty() {
                lines.push(of_entry(key, rows));
            }
        }
        let dry_run = (unsimulated > 0).then(|| dry_run(unsimulated));
        Some(view! { {lines} {dry_run} }.into_any())
    };
    listed(trials, groups)
}

/// How many changes are not simulated, and the command that tells of them.
fn dry_run(unsimulated: usize) -> AnyView {
    let i18n = use_i18n();
    let store = Store::get();
    // Read in a text of its own: here the whole list would follow the entries, and be drawn anew at each of them.
    let command = text(move || format!("vramscope dry-run --gpu \"{}\" train.sh", store.text(Key::Gpu)));
    view! {
        <p class="muted small what-if-dry-run" data-testid="what-if-dry-run" data-value=unsimulated.to_string()>
            {t_string!(i18n, what_if.dry_run, n = unsimulated.to_string())}
            " "
            <code>{command}</code>
        </p>
    }
    .into_any()
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
