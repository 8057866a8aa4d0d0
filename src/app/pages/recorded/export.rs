//! Export of a recorded run.

use leptos::prelude::*;

use super::page::RecordedState;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::{SaveButtons, time_entries};
use crate::shell::{CopyButton, Store};
use crate::state::recorded_command;
use crate::worker::Ask;

/// Shows the command that gives the same figures, and saves the run as files.
#[component]
pub fn ExportCard() -> impl IntoView {
    let i18n = use_i18n();
    let page = RecordedState::get();
    let reading = Store::get().reading();
    let command = Memo::new(move |_| {
        let file = match page.item() {
            Some(item) => format!("{}.vram.gz", item.id),
            None => page.name.get(),
        };
        reading.with(|reading| recorded_command(&reading.good, &file))
    });
    let entries = time_entries();
    let ask = Callback::new(move |(run, file)| Ask::Export {
        run,
        file,
        entries: entries.get_untracked(),
    });
    view! {
        <section class="card export">
            <h2>{t!(i18n, export.title)}</h2>
            <p class="muted small">{t!(i18n, export.explain)}</p>
            <pre class="command" tabindex="0" aria-label=t!(i18n, export.command) data-testid="command">
                <code>{command}</code>
            </pre>
            <div class="export-tools">
                <CopyButton
                    text=move || command.get_untracked()
                    label=|i18n| t_string!(i18n, export.copy)
                    testid="copy-command"
                />
                <SaveButtons ask />
            </div>
        </section>
    }
}
