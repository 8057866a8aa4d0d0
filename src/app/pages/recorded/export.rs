//! Export of a recorded run.

use leptos::prelude::*;

use super::page::RecordedState;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::SaveButtons;
use crate::shell::{CopyButton, Store};
use crate::state::Key;
use crate::worker::{Ask, Export, TimeEntries};

/// Shows the command that gives the same figures, and saves the run as files.
#[component]
pub fn ExportCard() -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (RecordedState::get(), Store::get());
    let command = Memo::new(move |_| {
        let file = match page.item() {
            Some(item) => format!("{}.vram.gz", item.id),
            None => page.name.get(),
        };
        let limit = match store.text(Key::LimitGib).as_str() {
            "" => String::new(),
            gib => format!(" --limit-gib {gib}"),
        };
        format!(
            "vramscope estimate --recording \"{file}\" --gpu \"{}\"{limit}",
            store.text(Key::Gpu)
        )
    });
    // The command line replays the allocator as recorded.
    let has_command = Memo::new(move |_| {
        let recorded = page
            .facts
            .with(|facts| facts.as_ref().map(|facts| facts.expandable_segments));
        let chosen = store.text(Key::ExpandableSegments);
        chosen.is_empty() || recorded.is_some_and(|recorded| chosen == recorded.to_string())
    });
    let ask = Callback::new(|(run, file)| match file {
        Export::Json => Ask::RecordedJson { run },
        file => Ask::Export {
            run,
            file,
            entries: TimeEntries::default(),
        },
    });
    view! {
        <section class="card export">
            <h2>{t!(i18n, export.title)}</h2>
            <p class="muted small">{t!(i18n, export.explain)}</p>
            <Show when=move || has_command.get()>
                <pre class="command" tabindex="0" aria-label=t!(i18n, export.command) data-testid="command">
                    <code>{command}</code>
                </pre>
            </Show>
            <div class="export-tools">
                <Show when=move || has_command.get()>
                    <CopyButton
                        text=move || command.get_untracked()
                        label=|i18n| t_string!(i18n, export.copy)
                        testid="copy-command"
                    />
                </Show>
                <SaveButtons ask />
            </div>
        </section>
    }
}
