use leptos::prelude::*;

use super::desk::Desk;
use crate::charts::save_text;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{CopyButton, Store};
use crate::simulation::Simulation;
use crate::state::Key;
use crate::worker::{Answer, Ask, Engine, Export, Slot, TimeEntries};

/// The command that gives the same, and the run as files.
#[component]
pub fn ExportCard() -> impl IntoView {
    let i18n = use_i18n();
    let (desk, store) = (Desk::get(), Store::get());
    let (simulation, engine) = (Simulation::get(), Engine::get());
    let command = Memo::new(move |_| {
        let file = match desk.item() {
            Some(item) => format!("{}.vram.gz", item.id),
            None => desk.name.get(),
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
    let save = move |file: Export| {
        let Some(run) = untrack(|| simulation.id()) else { return };
        let entries = TimeEntries::default();
        let ask = match file {
            Export::Json => Ask::RecordedJson { run },
            file => Ask::Export { run, file, entries },
        };
        engine.ask(Slot::Export, ask, move |answer, _| {
            if let Some(Answer::File(text)) = answer {
                save_text(&text, file.media_type(), file.file_name());
            }
        });
    };
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
                <button type="button" class="tool" data-testid="save-json" on:click=move |_| save(Export::Json)>
                    {t!(i18n, export.json)}
                </button>
                <button type="button" class="tool" data-testid="save-breakdown" on:click=move |_| save(Export::Breakdown)>
                    {t!(i18n, export.breakdown)}
                </button>
                <button type="button" class="tool" data-testid="save-tensors" on:click=move |_| save(Export::Tensors)>
                    {t!(i18n, export.tensors)}
                </button>
            </div>
        </section>
    }
}
