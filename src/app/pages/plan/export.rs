//! Export of the setup and the run.

use leptos::prelude::*;

use super::time::time_entries;
use crate::charts::save_text;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{CopyButton, Store};
use crate::simulation::Simulation;
use crate::state::command;
use crate::worker::{Answer, Ask, Engine, Export, Slot};

/// Exports the setup as a command and the run as files.
#[component]
pub fn ExportCard() -> impl IntoView {
    let i18n = use_i18n();
    let reading = Store::get().reading();
    let command = Memo::new(move |_| reading.with(|r| command(&r.good)));
    let simulation = Simulation::get();
    let is_any = Memo::new(move |_| simulation.id().is_some());
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
                <Show when=move || is_any.get()>
                    <Files />
                </Show>
            </div>
        </section>
    }
}

#[component]
fn Files() -> impl IntoView {
    let entries = time_entries();
    let ask = Callback::new(move |(run, file)| {
        let entries = entries.get_untracked();
        Ask::Export { run, file, entries }
    });
    view! { <SaveButtons ask /> }
}

/// Buttons that save the run on screen as files.
#[component]
pub fn SaveButtons(
    /// Question about a run, by its id, that is answered with the text of a file.
    ask: Callback<(u32, Export), Ask>,
) -> impl IntoView {
    let i18n = use_i18n();
    let (simulation, engine) = (Simulation::get(), Engine::get());
    let save = move |file: Export| {
        let Some(run) = untrack(|| simulation.id()) else { return };
        engine.ask(Slot::Export, ask.run((run, file)), move |answer, _| {
            if let Some(Answer::File(text)) = answer {
                let entries = simulation.entries.get_value();
                save_text(&text, file.media_type(), &file.file_name(&entries));
            }
        });
    };
    view! {
        <button type="button" class="tool" data-testid="save-json" on:click=move |_| save(Export::Json)>
            {t!(i18n, export.json)}
        </button>
        <Show when=move || simulation.run().is_some()>
            <button type="button" class="tool" data-testid="save-breakdown" on:click=move |_| save(Export::Breakdown)>
                {t!(i18n, export.breakdown)}
            </button>
            <button type="button" class="tool" data-testid="save-tensors" on:click=move |_| save(Export::Tensors)>
                {t!(i18n, export.tensors)}
            </button>
        </Show>
    }
}
